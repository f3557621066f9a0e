/** Reads the numbers of a store again and again, also across outages. */
import { messageOf, PawlError } from '../../core/errors.ts'
import type { Logger } from '../../core/ports.ts'
import type { Pawl } from '../../engine/pawl.ts'
import { isOutage } from '../../stores/errors.ts'
import { withPawl } from '../opening.ts'
import type { Call } from '../spec.ts'
import { endedRates, readStats, type Stats } from './stats.ts'

/** One reading, or why there is none. */
export type Reading =
  | {
      readonly kind: 'stats'
      readonly stats: Stats
      readonly rates: ReadonlyMap<string, number>
    }
  | { readonly kind: 'outage'; readonly code: string; readonly message: string }

export interface Following {
  readonly intervalMs: number
  readonly signal: AbortSignal
  readonly onReading: (reading: Reading) => void | Promise<void>
}

/** Messages would damage the screen; an outage is shown as a reading. */
const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} }

/** Reads until the signal; throws errors that are no outages, such as a missing store. */
export async function follow(call: Call, following: Following): Promise<void> {
  const { signal } = following
  while (!signal.aborted) {
    await orOutage(call, following, () =>
      withPawl(call, (pawl) => readOn(call, pawl, following), {
        onFindings: 'warn',
        logger: SILENT,
      }),
    )
  }
}

async function readOn(call: Call, pawl: Pawl, following: Following): Promise<void> {
  const { signal, intervalMs, onReading } = following
  let before: Stats | undefined
  while (!signal.aborted) {
    await orOutage(call, following, async () => {
      const stats = await readStats(pawl, call)
      if (signal.aborted) return
      await onReading({ kind: 'stats', stats, rates: endedRates(before, stats) })
      before = stats
      await pauseOf(call, intervalMs, signal)
    })
  }
}

/** Reports an outage and waits for the interval. */
async function orOutage(call: Call, following: Following, work: () => Promise<void>) {
  const { signal, intervalMs, onReading } = following
  try {
    await work()
  } catch (error) {
    if (!isOutage(error)) throw error
    if (signal.aborted) return
    const code = error instanceof PawlError ? error.code : 'E_UNEXPECTED'
    await onReading({ kind: 'outage', code, message: messageOf(error) })
    await pauseOf(call, intervalMs, signal)
  }
}

/** Waits for the time or the signal. */
export function pauseOf(
  { environment: { timers } }: Call,
  ms: number,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const end = () => {
      timer.cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = timers.after(ms, end)
    signal.addEventListener('abort', end, { once: true })
  })
}
