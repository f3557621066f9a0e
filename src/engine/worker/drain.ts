/**
 * Stops a worker. It claims nothing more, waits for its handlers, and aborts them after `drain`. It
 * releases unfinished jobs, and sends reports until the store has recorded all of them or the time
 * for that is over. If a report could not be sent, its lease expires and another worker recovers
 * the job.
 */
import { ERROR_WAIT_MS } from '../../core/worker.ts'
import { isLasting } from '../../stores/errors.ts'
import type { Nudge } from '../nudge.ts'
import type { WorkerParts } from './parts.ts'
import type { Reports } from './reports.ts'
import type { RunningAttempts } from './running.ts'

/** How long a stopping worker tries to send its reports. */
const GIVE_UP_MS = 15_000
/** The same if a retry will not help, for example because the disk is full. */
const LASTING_GIVE_UP_MS = 1000
const LASTING_RETRY_MS = 250

export interface Draining {
  readonly parts: WorkerParts
  readonly running: RunningAttempts
  readonly reports: Reports
  readonly nudge: Nudge
  /** Shows other processes that the worker is draining, and that it is alive. */
  readonly reportRow: () => Promise<void>
  readonly noteError: (error: unknown) => void
}

/** Resolves when no attempt is left, or when the time for reports is over. */
export async function drain(draining: Draining): Promise<void> {
  const { parts, running, reports, nudge, reportRow, noteError } = draining
  const { environment, settings, dispatcher, store } = parts
  const now = () => environment.clock.now()
  const timer = environment.timers.after(settings.drainMs, () => running.releaseAll())
  let end = now() + settings.drainMs + GIVE_UP_MS
  let row: Promise<void> | undefined
  while (running.count > 0 && now() < end) {
    // Not awaited: the store may be away, and reports must not wait for this row.
    row ??= reportRow()
      .catch(() => {})
      .finally(() => {
        row = undefined
      })
    if (reports.count === 0) await nudge.wait(ERROR_WAIT_MS)
    try {
      if (reports.count > 0) await reports.send(reports.take())
    } catch (error) {
      noteError(error)
      const mayEnd = isLasting(error) && running.areAllOver
      if (mayEnd) end = Math.min(end, now() + LASTING_GIVE_UP_MS)
      const wait = mayEnd ? LASTING_RETRY_MS : ERROR_WAIT_MS
      await nudge.wait(Math.min(wait, end - now()), { onlyIf: () => false })
    }
  }
  timer.cancel()
  // The dispatcher delivers the effects of these jobs in the remaining time.
  await dispatcher?.stop(end - GIVE_UP_MS)
  await running.close()
  // A row that is written after the removal would stay.
  await row
  await store.removeWorker(settings.id).catch(noteError)
}
