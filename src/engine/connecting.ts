/**
 * Opens a store that may not be reachable yet. With `connect: 'wait'` the states are those of the
 * worker's state machine: Connecting, after a failure ErrorWait for five seconds, then Connecting
 * again.
 *
 * Only two causes can pass without help: a database that cannot be reached, and a file that another
 * process has locked. Everything else fails at once: a wrong password, an unknown database, a
 * missing folder, a file that is not a store, or a schema that is too new.
 */

import type { Duration } from '../core/durations.ts'
import { CommandInvalid, type PawlError } from '../core/errors.ts'
import type { Logger } from '../core/ports.ts'
import { ERROR_WAIT_MS } from '../core/worker.ts'
import type { Environment } from '../environment/system.ts'
import type { Store } from '../stores/contract/store.ts'
import { StoreBusy, StoreUnavailable } from '../stores/errors.ts'
import type { Trouble } from '../stores/outage.ts'
import { ConnectAborted } from './errors.ts'
import type { PawlEvent } from './watching/events.ts'

/** What to do if the store cannot be reached. */
export interface ConnectOptions {
  /**
   * What to do if the store cannot be reached: 'fail' fails after `connectTimeout` or
   * `storeTimeout`, 'wait' retries until the store is open.
   * @defaultValue `'fail'`
   */
  readonly connect?: 'fail' | 'wait'
  /**
   * How long to try if nothing listens at the address of the database, or its host is unknown.
   * @defaultValue `'1s'`; `storeTimeout` if that is set or the address names several hosts
   */
  readonly connectTimeout?: Duration
  /**
   * Ends the wait: `createPawl` then rejects with `ConnectAborted`.
   * @defaultValue none
   */
  readonly signal?: AbortSignal
}

interface OpenHooks {
  /** Called during an outage while the store is being opened. */
  readonly onTrouble: (trouble: Trouble) => void
}

/** Opens a store. With `connect: 'wait'` it retries until that succeeds. */
export async function openWhenThere(
  { connect = 'fail', signal }: Omit<ConnectOptions, 'connectTimeout'>,
  { environment, observe }: { environment: Environment; observe: (event: PawlEvent) => void },
  open: (hooks: OpenHooks) => Promise<Store>,
): Promise<Store> {
  if (connect !== 'fail' && connect !== 'wait') {
    throw new CommandInvalid('connect', "must be 'fail' or 'wait'")
  }
  if (connect === 'fail') return open({ onTrouble() {} })
  const start = environment.clock.now()
  let isOpen = false
  const emit = (state: 'Connecting' | 'ErrorWait' | 'Connected', error?: PawlError) => {
    const waitedMs = environment.clock.now() - start
    observe({ type: 'connection', state, waitedMs, ...(error !== undefined && { error }) })
  }
  // The store retries for some seconds before it fails, and reports the outage meanwhile.
  const onTrouble = (trouble: Trouble) => {
    if (!isOpen && trouble.kind === 'away') emit('Connecting', trouble.error)
  }
  for (let tries = 0; ; tries++) {
    if (tries > 0) emit('Connecting')
    try {
      const store = await untilAborted(open({ onTrouble }), signal)
      isOpen = true
      if (tries > 0) emit('Connected')
      return store
    } catch (error) {
      if (!(error instanceof StoreUnavailable || error instanceof StoreBusy)) throw error
      emit('ErrorWait', error)
    }
    const slept = new Promise<void>((done) => environment.timers.after(ERROR_WAIT_MS, done))
    await untilAborted(slept, signal)
  }
}

/** Rejects when the signal is aborted. A store that is opened after that is closed. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  let stop: () => void = () => {}
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(new ConnectAborted())
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
  })
  try {
    return await Promise.race([work, aborted])
  } catch (error) {
    if (error instanceof ConnectAborted) {
      work.then(
        (late) => (late as Partial<Store> | undefined)?.close?.(),
        () => {},
      )
    }
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Writes outages of a store to the log. */
export function logTroubles(store: Store, logger: Logger): () => void {
  const stop = store.onTrouble?.((trouble) => {
    const fields = { event: `store.${trouble.kind}`, for_ms: trouble.forMs }
    if (trouble.kind === 'back') return logger.info(fields, 'The database answers again')
    logger.warn({ ...fields, code: trouble.error.code }, trouble.error.message)
  })
  return stop ?? (() => {})
}
