/**
 * Handlers that show no sign of life although their leases are renewed: they may hang. A sign is a
 * call of `progress`, `count`, `step` or `commit`. The worker looks whenever it reports its row,
 * every few seconds, so an attempt pays nothing for it.
 *
 * A handler that was silent for `stallWarning` is reported by an event, and again whenever it has
 * been silent for twice as long as before. The row of the worker lists it for those who look from
 * outside. Nothing is done about it: that needs a `stallTimeout`.
 */
import type { Job } from '../../core/job/job.ts'
import type { SilentJob } from '../../stores/worker-info.ts'
import type { PawlEvent } from '../watching/events.ts'

/** How many jobs the row of a worker lists. */
const LISTED_MAX = 20

/** An attempt, as far as it matters here. */
interface Silence {
  readonly held: { readonly job: Job }
  /** For how long its handler has shown no sign of life; nothing if its outcome is clear. */
  readonly silentMs: number | undefined
  /** After how long a warning is due, if its job type says so; 0 for never. */
  readonly stallWarningMs: number | undefined
}

/** What is needed of a worker. */
export interface SilenceParts {
  readonly worker: string
  /** For job types that do not say otherwise; 0 for never. */
  readonly stallWarningMs: number
  readonly observe: (event: PawlEvent) => void
  /** The store's time. */
  readonly now: () => number
}

/** The silent handlers of one worker. */
export class SilentHandlers {
  readonly #parts: SilenceParts
  /** How long each has been silent when it was reported last. */
  readonly #reported = new WeakMap<Silence, number>()

  constructor(parts: SilenceParts) {
    this.#parts = parts
  }

  /** Reports handlers that have become silent; returns those that are, the first ones. */
  look(attempts: Iterable<Silence>): SilentJob[] {
    const silent: SilentJob[] = []
    for (const attempt of attempts) {
      const { silentMs, stallWarningMs = this.#parts.stallWarningMs } = attempt
      if (silentMs === undefined || stallWarningMs === 0 || silentMs < stallWarningMs) {
        this.#reported.delete(attempt)
        continue
      }
      const { job } = attempt.held
      if (silent.length < LISTED_MAX) {
        const since = this.#parts.now() - silentMs
        silent.push({ job: job.id, attempt: job.attempt, since })
      }
      if (silentMs < 2 * (this.#reported.get(attempt) ?? 0)) continue
      this.#reported.set(attempt, silentMs)
      this.#parts.observe({ type: 'silent', worker: this.#parts.worker, job, silentMs })
    }
    return silent
  }
}
