/**
 * Opening a store that may not be there yet. With `connect: 'wait'` the states are those of the
 * worker machine: Connecting, after a failure ErrorWait for five seconds, then Connecting again.
 *
 * Only what passes by itself is waited for: a database that cannot be reached, and a file that
 * another process keeps locked. A wrong password, an unknown database, a missing folder, a file
 * that is no store or a schema that is too new would be waited for in vain, and fail at once.
 */
import { CommandInvalid, type PawlError } from '../core/errors.ts'
import type { Logger } from '../core/ports.ts'
import { ERROR_WAIT_MS } from '../core/worker.ts'
import type { Environment } from '../environment/system.ts'
import { StoreBusy, StoreUnavailable } from '../stores/errors.ts'
import type { Trouble } from '../stores/outage.ts'
import type { Store } from '../stores/store.ts'
import { ConnectAborted } from './errors.ts'
import type { PawlEvent } from './watching/events.ts'

/** Whether a store that is away is waited for. */
export interface ConnectOptions {
  /** 'fail', the default, gives up after the store's time-out; 'wait' tries until it is there. */
  readonly connect?: 'fail' | 'wait'
  /** Ends the wait; `createPawl` then rejects with `ConnectAborted`. */
  readonly signal?: AbortSignal
}

/** Told of an outage while a store is opened. */
interface Hearing {
  readonly onTrouble: (trouble: Trouble) => void
}

/** Opens a store; with `connect: 'wait'` as soon as it is there. */
export async function openWhenThere(
  { connect = 'fail', signal }: ConnectOptions,
  { environment, observe }: { environment: Environment; observe: (event: PawlEvent) => void },
  open: (hearing: Hearing) => Promise<Store>,
): Promise<Store> {
  if (connect !== 'fail' && connect !== 'wait') {
    throw new CommandInvalid('connect', "must be 'fail' or 'wait'")
  }
  if (connect === 'fail') return open({ onTrouble() {} })
  const start = environment.clock.now()
  let isOpen = false
  const tell = (state: 'Connecting' | 'ErrorWait' | 'Connected', error?: PawlError) => {
    const waitedMs = environment.clock.now() - start
    observe({ type: 'connection', state, waitedMs, ...(error !== undefined && { error }) })
  }
  // The store tries for some seconds before it gives up, and reports meanwhile.
  const onTrouble = (trouble: Trouble) => {
    if (!isOpen && trouble.kind === 'away') tell('Connecting', trouble.error)
  }
  for (let tries = 0; ; tries++) {
    if (tries > 0) tell('Connecting')
    try {
      const store = await untilAborted(open({ onTrouble }), signal)
      isOpen = true
      if (tries > 0) tell('Connected')
      return store
    } catch (error) {
      if (!(error instanceof StoreUnavailable || error instanceof StoreBusy)) throw error
      tell('ErrorWait', error)
    }
    const slept = new Promise<void>((done) => environment.timers.after(ERROR_WAIT_MS, done))
    await untilAborted(slept, signal)
  }
}

/** Rejects when the signal is aborted; a store that is opened after that is closed again. */
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
