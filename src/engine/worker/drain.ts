/**
 * Draining: a worker that stops claims nothing. It waits for its handlers, aborts them when the
 * time is up, releases what is not finished, and reports until the store has everything or the
 * time for that is up, too. The leases of what could not be reported expire, and other workers
 * recover those jobs.
 */
import { ERROR_WAIT_MS } from '../../core/worker.ts'
import { isLasting } from '../../stores/errors.ts'
import type { Nudge } from '../nudge.ts'
import type { WorkerParts } from './parts.ts'
import type { Reports } from './reports.ts'
import type { RunningAttempts } from './running.ts'

/** How long a stopping worker tries to report what it has released. */
const GIVE_UP_MS = 15_000
/** The same if the store says that trying again will not help, as with a full disk. */
const LASTING_GIVE_UP_MS = 1000
const LASTING_RETRY_MS = 250

/** What draining needs of the worker. */
export interface Draining {
  readonly parts: WorkerParts
  readonly running: RunningAttempts
  readonly reports: Reports
  readonly nudge: Nudge
  readonly noteError: (error: unknown) => void
}

/** Resolves when no attempt is left, or when the time for reporting is up. */
export async function drain(draining: Draining): Promise<void> {
  const { parts, running, reports, nudge, noteError } = draining
  const { environment, settings, dispatcher, store } = parts
  const now = () => environment.clock.now()
  const timer = environment.timers.after(settings.drainMs, () => running.giveUp())
  let end = now() + settings.drainMs + GIVE_UP_MS
  while (running.count > 0 && now() < end) {
    if (reports.count === 0) await nudge.wait(ERROR_WAIT_MS)
    try {
      if (reports.count > 0) await reports.send(undefined)
    } catch (error) {
      noteError(error)
      const mayEnd = isLasting(error) && running.areAllOver
      if (mayEnd) end = Math.min(end, now() + LASTING_GIVE_UP_MS)
      const wait = mayEnd ? LASTING_RETRY_MS : ERROR_WAIT_MS
      await nudge.wait(Math.min(wait, end - now()), { onlyIf: () => false })
    }
  }
  timer.cancel()
  // Effects that these jobs have committed are delivered in the time that is left.
  await dispatcher?.stop(end - GIVE_UP_MS)
  await running.close()
  await store.removeWorker(settings.id).catch(noteError)
}
