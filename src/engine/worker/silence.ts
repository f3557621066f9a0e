/**
 * Handlers without activity although their leases are renewed; they may hang. Activity is a call of
 * `progress`, `count`, `step` or `commit`. The worker checks whenever it writes its row, every few
 * seconds, so attempts pay nothing for it.
 *
 * A handler without activity for `stallWarning` is reported by the event `silent`, and again each
 * time that the silence has doubled. The row of the worker lists it. Nothing else happens: to end
 * such attempts, set `stallTimeout`.
 */
import type { Job } from '../../core/job/job.ts'
import type { SilentJob } from '../../stores/worker-info.ts'
import type { PawlEvent } from '../watching/events.ts'

/** How many jobs the worker's row lists. */
const LISTED_MAX = 20

/** The part of an attempt that is needed here. */
interface Silence {
  readonly held: { readonly job: Job }
  /** Time without activity of the handler; undefined if the outcome is known. */
  readonly silentMs: number | undefined
  /** The job type's `stallWarning`; 0 for never, undefined if the worker's applies. */
  readonly stallWarningMs: number | undefined
}

export interface SilenceParts {
  readonly worker: string
  /** The worker's `stallWarning`; 0 for never. */
  readonly stallWarningMs: number
  readonly observe: (event: PawlEvent) => void
  /** Returns the store's time. */
  readonly now: () => number
}

export class SilentHandlers {
  readonly #parts: SilenceParts
  /** How long each handler had been silent at its last event. */
  readonly #reported = new WeakMap<Silence, number>()

  constructor(parts: SilenceParts) {
    this.#parts = parts
  }

  /** Emits events for handlers that have become silent; returns the first silent jobs. */
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
