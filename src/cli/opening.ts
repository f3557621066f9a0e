/**
 * Opens the store of a command. Most commands do not create or migrate it: a mistyped name is
 * reported, and the schema changes only by `pawl db migrate` and commands that say so.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Logger } from '../core/ports.ts'
import { withoutSecrets } from '../core/redact.ts'
import { createPawl } from '../engine/create-pawl.ts'
import type { JobDefinition } from '../engine/define-job.ts'
import type { NotifyOptions } from '../engine/effects/notify.ts'
import { storeStatus } from '../engine/open-store.ts'
import type { PawlOptions } from '../engine/options.ts'
import type { Pawl } from '../engine/pawl.ts'
import type { RetentionOptions } from '../engine/retention/options.ts'
import type { ScheduleDefinition } from '../engine/schedules/define-schedule.ts'
import { placeOf } from '../engine/store-options.ts'
import type { PawlEvent } from '../engine/watching/events.ts'
import type { Metrics } from '../engine/watching/metrics.ts'
import { StoreMissing, StoreOutdated } from './errors.ts'
import type { Call } from './spec.ts'
import { visible } from './visible.ts'

export interface Opening {
  /** Creates or migrates the store if needed. */
  readonly create?: boolean
  readonly jobs?: readonly JobDefinition[]
  readonly schedules?: readonly ScheduleDefinition[]
  /** Prints warnings also without --verbose. */
  readonly warns?: boolean
  /** Receives log lines instead of stderr. */
  readonly logger?: Logger
  /** Waits until the store can be reached, or the command is interrupted. */
  readonly wait?: boolean
  /** Receives events, also before the store is open. */
  readonly onEvent?: (event: PawlEvent) => void
  /** The receiver of notices. */
  readonly notify?: NotifyOptions
  /** Receives measurements. */
  readonly metrics?: Metrics
  /** How long ended jobs are kept; a worker removes older ones. */
  readonly retention?: RetentionOptions | undefined
  /** 'warn' for commands that claim nothing: a damaged store must not stop them. */
  readonly onFindings?: 'block' | 'warn'
}

/** Opens the store, calls `work`, and closes the store. */
export async function withPawl<T>(
  call: Call,
  work: (pawl: Pawl) => Promise<T>,
  opening: Opening = {},
): Promise<T> {
  const { create = false, jobs = [], warns = false, onFindings = 'block' } = opening
  const { wait, onEvent, notify, metrics } = opening
  const { settings, environment } = call
  const { value: store, from } = settings.store
  const shown = visible(withoutSecrets(store))
  call.output.explain(`store: ${shown} (from ${visible(from)})`)
  const place = placeOf(store)
  if (create) {
    if (place.kind === 'sqlite') createOwnFolder(place.options.path)
  } else {
    const { applied, pending } = await storeStatus(store, environment)
    if (applied.length === 0) throw new StoreMissing(shown)
    if (pending.length > 0) throw new StoreOutdated(shown, pending)
  }
  await using pawl = await createPawl({
    store,
    jobs,
    schedules: opening.schedules ?? [],
    onFindings,
    logger: opening.logger ?? loggerOf(call, warns),
    ...(wait && { connect: 'wait', signal: call.interrupted }),
    ...(onEvent && { onEvent }),
    ...(notify && { notify }),
    ...(metrics && { metrics }),
    ...(opening.retention && { retention: opening.retention }),
    ...signalTokensOf(call),
  })
  return await work(pawl)
}

/** The first secret signs, and all are accepted. */
function signalTokensOf({ settings }: Call): Pick<PawlOptions, 'signalTokens'> {
  const { value: secret } = settings.signalSecret
  const { value: url } = settings.signalUrl
  if (secret === undefined) return {}
  return { signalTokens: { secret: secret.split(','), ...(url !== undefined && { url }) } }
}

/** Creates the folder of a file if it is `.pawl`, which git then ignores. Others must exist. */
export function createOwnFolder(path: string): void {
  const folder = dirname(path)
  if (basename(folder) !== '.pawl' || existsSync(folder)) return
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, '.gitignore'), '*\n')
}

type Fields = Readonly<Record<string, unknown>>

/** How many lines of a stack the log shows; the ledger has more. */
const FRAMES_MAX = 5

/** The job that a line is about, and when it is tried again. */
function aboutJob({ job_id: id, kind, retry_at: at }: Fields): string {
  if (typeof id !== 'string') return ''
  const next = typeof at === 'number' ? `, next try ${new Date(at).toISOString()}` : ''
  const what = typeof kind === 'string' ? `, ${visible(kind)}` : ''
  return `  (job ${visible(id)}${what}${next})`
}

function stackOf({ stack }: Fields): string[] {
  return typeof stack === 'string' ? stack.split('\n').slice(0, FRAMES_MAX) : []
}

/** A logger that writes to stderr. */
export function loggerOf({ output }: Call, warns: boolean): Logger {
  const say = (level: string) => (fields: Fields, message: string) => {
    output.say(`${level}: ${visible(message)}${aboutJob(fields)}`)
    for (const line of stackOf(fields)) output.say(`    ${visible(line)}`)
  }
  const explain = (level: string) => (_fields: object, message: string) =>
    output.explain(`${level}: ${visible(message)}`)
  return {
    debug: () => {},
    info: explain('info'),
    warn: warns ? say('warning') : explain('warning'),
    error: say('error'),
  }
}
