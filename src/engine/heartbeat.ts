/**
 * Who keeps leases alive. A host is told of every execution before its handler starts and forgets
 * it when it has been reported; in between it renews the lease, and says when one was lost or when
 * somebody wants the job cancelled.
 *
 * Leases are renewed by their own fences, never "all of this worker", and each only when a third of
 * it has passed, all that are due by one statement.
 */
import type { Timer } from '../core/ports.ts'
import type { Environment } from '../environment/system.ts'
import type { Beat, Heartbeat, Ref } from '../stores/store.ts'

/** What a host tells its worker. */
export interface HeartbeatEvents {
  readonly onLost: (beat: Beat) => void
  readonly onCancel: (beat: Beat) => void
  /** The store could not be asked; the leases go on until they end. */
  readonly onError: (error: unknown) => void
}

/** Keeps leases alive. */
export interface HeartbeatHost {
  track(beats: readonly Beat[]): void
  untrack(refs: readonly Ref[]): void
  /** How far an attempt is, as JSON text; written with its next renewal, which comes soon. */
  progress(ref: Ref, text: string): void
  close(): Promise<void>
}

/** What a host needs of a store. */
export interface BeatStore {
  heartbeat(beats: readonly Beat[], leaseMs: number): Promise<Heartbeat>
}

interface Tracked {
  readonly beat: Beat
  renewAt: number
  progress: string | undefined
}

/** Progress that is told again and again is written this often at most. */
const PROGRESS_MS = 250

/** Renews leases on the timers of this process; a handler that blocks the process blocks it. */
export class TimerHeartbeat implements HeartbeatHost {
  readonly #store: BeatStore
  readonly #environment: Environment
  readonly #leaseMs: number
  readonly #events: HeartbeatEvents
  readonly #tracked = new Map<Ref, Tracked>()
  #timer: { readonly at: number; readonly timer: Timer } | undefined
  #beating: Promise<void> | undefined
  #closed = false

  constructor(
    store: BeatStore,
    environment: Environment,
    leaseMs: number,
    events: HeartbeatEvents,
  ) {
    this.#store = store
    this.#environment = environment
    this.#leaseMs = leaseMs
    this.#events = events
  }

  track(beats: readonly Beat[]): void {
    const renewAt = this.#environment.clock.now() + this.#leaseMs / 3
    for (const beat of beats) this.#tracked.set(beat.ref, { beat, renewAt, progress: undefined })
    this.#arm(renewAt)
  }

  untrack(refs: readonly Ref[]): void {
    for (const ref of refs) this.#tracked.delete(ref)
  }

  progress(ref: Ref, text: string): void {
    const tracked = this.#tracked.get(ref)
    if (tracked === undefined) return
    tracked.progress = text
    tracked.renewAt = Math.min(tracked.renewAt, this.#environment.clock.now() + PROGRESS_MS)
    this.#arm(tracked.renewAt)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#timer?.timer.cancel()
    await this.#beating
  }

  /** Wakes up at a time, unless it does so earlier already. */
  #arm(at: number): void {
    if (this.#closed || this.#beating !== undefined) return
    if (this.#timer !== undefined && this.#timer.at <= at) return
    this.#timer?.timer.cancel()
    const delay = Math.max(0, at - this.#environment.clock.now())
    const timer = this.#environment.timers.after(delay, () => {
      this.#timer = undefined
      this.#beating = this.#beat().finally(() => {
        this.#beating = undefined
        this.#armForFirst()
      })
    })
    this.#timer = { at, timer }
  }

  #armForFirst(): void {
    let first = Number.POSITIVE_INFINITY
    for (const { renewAt } of this.#tracked.values()) first = Math.min(first, renewAt)
    if (Number.isFinite(first)) this.#arm(first)
  }

  async #beat(): Promise<void> {
    const now = this.#environment.clock.now()
    // A little early rather than one statement for each lease.
    const soon = now + this.#leaseMs / 12
    const due = [...this.#tracked.values()].filter(({ renewAt }) => renewAt <= soon)
    if (due.length === 0) return
    const beats = due.map(({ beat, progress }) =>
      progress === undefined ? beat : { ...beat, progress },
    )
    for (const tracked of due) {
      tracked.renewAt = now + this.#leaseMs / 3
      tracked.progress = undefined
    }
    try {
      const { lost, cancelling } = await this.#store.heartbeat(beats, this.#leaseMs)
      for (const tracked of this.#stillTracked(due, lost)) {
        this.#tracked.delete(tracked.beat.ref)
        this.#events.onLost(tracked.beat)
      }
      for (const { beat } of this.#stillTracked(due, cancelling)) this.#events.onCancel(beat)
    } catch (error) {
      for (const [i, tracked] of due.entries()) {
        tracked.renewAt = now + this.#leaseMs / 12
        tracked.progress ??= beats[i]?.progress
      }
      this.#events.onError(error)
    }
  }

  /**
   * What was reported in the meantime has no lease either, and nothing to lose; and the job may be
   * held anew, by another fence.
   */
  #stillTracked(asked: readonly Tracked[], refs: readonly Ref[]): Tracked[] {
    const answered = new Set(refs)
    return asked.filter(
      (tracked) =>
        answered.has(tracked.beat.ref) && this.#tracked.get(tracked.beat.ref) === tracked,
    )
  }
}
