/** Follows the ledger: all facts after a position, and new ones when they are written. */
import type { Timers } from '../core/ports.ts'
import type { Store, TailEntry, UnreadableFact } from '../stores/contract/store.ts'

/** How a ledger is followed. */
export interface FollowOptions {
  /** The position to go on from; the beginning of the ledger if absent. */
  readonly after: string | undefined
  readonly timers: Timers
  /** Ends the iteration. */
  readonly signal: AbortSignal
  /** Whether to wait for new facts at the end; true if absent. */
  readonly wait?: boolean
}

const BATCH = 500
/** A wake-up is a hint that can be missed, so the ledger is also read in this interval. */
const POLL_MS = 1000

/** Yields facts in batches, in the order of the ledger. */
export async function* followLedger(
  store: Store,
  { after, timers, signal, wait = true }: FollowOptions,
): AsyncGenerator<(TailEntry | UnreadableFact)[]> {
  let position = after
  while (!signal.aborted) {
    const entries = await store.tail(position, BATCH)
    const last = entries[entries.length - 1]
    if (last !== undefined) {
      position = last.pos
      yield entries
    } else if (wait) await untilWoken(store, timers, signal)
    else return
  }
}

/** Waits for a hint of the store, for a second, or for the signal. */
export function untilWoken(
  store: Pick<Store, 'onWake'>,
  timers: Timers,
  signal: AbortSignal,
  waitMs = POLL_MS,
): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const end = () => {
      timer.cancel()
      stopListening()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = timers.after(waitMs, end)
    const stopListening = store.onWake(end)
    signal.addEventListener('abort', end)
  })
}
