/**
 * Opening the store that a command works on. Most commands do not make or migrate one: whoever
 * mistypes a name should learn of it, and a schema changes when somebody says so.
 */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Logger } from '../core/ports.ts'
import { createPawl } from '../engine/create-pawl.ts'
import type { JobDefinition } from '../engine/define-job.ts'
import type { NotifyOptions } from '../engine/effects/notify.ts'
import { placeOf, storeStatus } from '../engine/open-store.ts'
import type { Pawl } from '../engine/pawl.ts'
import type { PawlEvent } from '../engine/watching/events.ts'
import { withoutSecrets } from '../stores/redact.ts'
import { StoreMissing, StoreOutdated } from './errors.ts'
import { DEFAULT_STORE } from './settings.ts'
import type { Call } from './spec.ts'
import { visible } from './visible.ts'

/** How to open. */
export interface Opening {
  /** Make or migrate the store where it must be. */
  readonly create?: boolean
  readonly jobs?: readonly JobDefinition[]
  /** Told of warnings also without --verbose. */
  readonly warns?: boolean
  /** Waits for a store that is away, until the command is interrupted. */
  readonly wait?: boolean
  /** Told of what happens, also before the store is open. */
  readonly onEvent?: (event: PawlEvent) => void
  /** Where notices of jobs are sent. */
  readonly notify?: NotifyOptions
  /** Whoever claims nothing need not be kept from it. */
  readonly onFindings?: 'block' | 'warn'
}

/** Opens the store, does the work, and closes it. */
export async function withPawl<T>(
  call: Call,
  work: (pawl: Pawl) => Promise<T>,
  opening: Opening = {},
): Promise<T> {
  const { create = false, jobs = [], warns = false, onFindings = 'block' } = opening
  const { wait, onEvent, notify } = opening
  const { settings, environment } = call
  const { value: store, from } = settings.store
  const shown = visible(withoutSecrets(store))
  call.output.explain(`store: ${shown} (from ${visible(from)})`)
  const place = placeOf(store)
  if (create) {
    if (store === DEFAULT_STORE && place.kind === 'sqlite') {
      mkdirSync(dirname(place.path), { recursive: true })
    }
  } else {
    const { applied, pending } = await storeStatus(store, environment)
    if (applied.length === 0) throw new StoreMissing(shown)
    if (pending.length > 0) throw new StoreOutdated(shown, pending)
  }
  await using pawl = await createPawl({
    store,
    jobs,
    onFindings,
    logger: loggerOf(call, warns),
    ...(wait && { connect: 'wait', signal: call.interrupted }),
    ...(onEvent && { onEvent }),
    ...(notify && { notify }),
  })
  return await work(pawl)
}

/** What the library has to say, on stderr. */
export function loggerOf({ output }: Call, warns: boolean): Logger {
  const say = (level: string) => (_fields: object, message: string) =>
    output.say(`${level}: ${visible(message)}`)
  const explain = (level: string) => (_fields: object, message: string) =>
    output.explain(`${level}: ${visible(message)}`)
  return {
    debug: () => {},
    info: explain('info'),
    warn: warns ? say('warning') : explain('warning'),
    error: say('error'),
  }
}
