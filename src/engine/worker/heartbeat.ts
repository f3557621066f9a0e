/**
 * Who keeps leases alive. A host is told of every execution before its handler starts and forgets
 * it when it has been reported; in between it renews the lease, and says when one was lost or when
 * somebody wants the job cancelled.
 *
 * Leases are renewed by their own fences, never "all of this worker", and each only when a third of
 * it has passed, all that are due by one statement.
 *
 * Where the store cannot be asked, nobody says that a lease was lost. So a lease that was not
 * renewed for its whole length, by the clock of this process, is given up as lost: by then others
 * may have it, and its handler must not go on as if nobody had.
 */
import type { Timer } from '../../core/ports.ts'
import type { Environment } from '../../environment/system.ts'
import type { Beat, Heartbeat, Ref } from '../../stores/store.ts'

/** What a host tells its worker. */
export interface HeartbeatEvents {
  readonly onLost: (beat: Beat) => void
  readonly onCancel: (beat: Beat) => void
  /** The store could not be asked; the leases go on until they end. */
  readonly onError: (error: unknown) => void
  /** These leases were renewed, by a request that was sent so long ago. */
  readonly onRenewed?: (refs: readonly Ref[], agoMs: number) => void
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
  /** Until when the lease surely runs, as far as this process knows. */
  liveUntil: number
  progress: string | undefined
}

/** Progress that is told again and again is written this often at most. */
const PROGRESS_MS = 250
/** A store that could not be asked is asked again after so long, or after a sixth of the lease. */
const RETRY_MAX_MS = 5000

/** Renews leases on the timers of this process; a handler that blocks the process blocks it. */
export class TimerHeartbeat implements HeartbeatHost {
  readonly #store: BeatStore
  readonly #environment: Environment
  readonly #leaseMs: number
  readonly #events: HeartbeatEvents
  readonly #tracked = new Map<Ref, Tracked>()
  #timer: { readonly at: number; readonly timer: Timer } | undefined
  #beating: Promise<void> | undefined
  /** The first moment at which a lease may have ended without being renewed, or one before it. */
  #expiry: Timer | undefined
  /** The store could not be asked, and is left alone until then. */
  #pausedUntil = Number.NEGATIVE_INFINITY
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

  /** With `agesMs` the leases were renewed last so long ago; if absent, just now. */
  track(beats: readonly Beat[], agesMs: readonly number[] = []): void {
    const now = this.#environment.clock.now()
    for (const [i, beat] of beats.entries()) {
      const since = now - (agesMs[i] ?? 0)
      const [renewAt, liveUntil] = [since + this.#leaseMs / 3, since + this.#leaseMs]
      this.#tracked.set(beat.ref, { beat, renewAt, liveUntil, progress: undefined })
    }
    if (agesMs.length > 0) this.#armForFirst()
    else if (beats.length > 0) this.#arm(now + this.#leaseMs / 3)
    this.#armExpiry()
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
    this.#expiry?.cancel()
    await this.#beating
  }

  /** Wakes up at a time, unless it does so earlier already. */
  #arm(wanted: number): void {
    if (this.#closed || this.#beating !== undefined) return
    const at = Math.max(wanted, this.#pausedUntil)
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

  /** Sees to it that a look is taken not later than the first lease may end. */
  #armExpiry(): void {
    if (this.#closed || this.#expiry !== undefined || this.#tracked.size === 0) return
    const ends = Array.from(this.#tracked.values(), ({ liveUntil }) => liveUntil)
    const left = ends.reduce((first, end) => Math.min(first, end)) - this.#environment.clock.now()
    const delay = Math.min(Math.max(0, left), this.#leaseMs)
    this.#expiry = this.#environment.timers.after(delay, () => {
      this.#expiry = undefined
      this.#giveUp()
      this.#armExpiry()
    })
  }

  /** What was not renewed for a whole lease is lost, whether or not anybody can say so. */
  #giveUp(): void {
    const now = this.#environment.clock.now()
    for (const { beat, liveUntil } of [...this.#tracked.values()]) {
      if (liveUntil > now) continue
      this.#tracked.delete(beat.ref)
      this.#events.onLost(beat)
    }
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
      for (const tracked of due) tracked.liveUntil = now + this.#leaseMs
      this.#events.onRenewed?.(
        beats.map(({ ref }) => ref),
        this.#environment.clock.now() - now,
      )
      for (const tracked of this.#stillTracked(due, lost)) {
        this.#tracked.delete(tracked.beat.ref)
        this.#events.onLost(tracked.beat)
      }
      for (const { beat } of this.#stillTracked(due, cancelling)) this.#events.onCancel(beat)
    } catch (error) {
      const retryMs = Math.min(RETRY_MAX_MS, this.#leaseMs / 6)
      this.#pausedUntil = this.#environment.clock.now() + retryMs
      for (const [i, tracked] of due.entries()) {
        tracked.renewAt = this.#pausedUntil
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
