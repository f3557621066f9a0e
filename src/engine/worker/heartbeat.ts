/**
 * Renews leases. The worker registers every execution before its handler starts, and removes it
 * after its report is recorded. In between, the host renews the lease and reports if it was lost or
 * if the job is to be cancelled.
 *
 * Each lease is renewed by its own fence, never "all leases of this worker". A lease is due for
 * renewal after a third of its length, and one statement renews all that are due.
 *
 * If the store cannot be reached, a lost lease cannot be noticed. So a lease that was not renewed
 * for its whole length, by the clock of this process, counts as lost: another worker may hold the
 * job by then, and the handler must stop.
 */
import type { Timer } from '../../core/ports.ts'
import type { Environment } from '../../environment/system.ts'
import type { Beat, Heartbeat, Ref } from '../../stores/contract/store.ts'

/** Called by a host. */
export interface HeartbeatEvents {
  readonly onLost: (beat: Beat) => void
  readonly onCancel: (beat: Beat) => void
  /** A renewal failed. The leases are valid until they expire. */
  readonly onError: (error: unknown) => void
  /** Leases are about to be renewed; executions may be registered and removed now. */
  readonly onBeat?: () => void
  /** These leases were renewed by a request that was sent `agoMs` ago. */
  readonly onRenewed?: (refs: readonly Ref[], agoMs: number) => void
  /** The host has become ready. Not called if it was ready from the start. */
  readonly onReady?: () => void
}

export interface HeartbeatHost {
  /** Whether leases can be renewed. A worker claims nothing before that. */
  readonly isReady: boolean
  track(beats: readonly Beat[]): void
  untrack(refs: readonly Ref[]): void
  /** Stores the progress of an attempt, as JSON text, with a renewal within a short time. */
  progress(ref: Ref, text: string): void
  close(): Promise<void>
}

export interface BeatStore {
  heartbeat(beats: readonly Beat[], leaseMs: number): Promise<Heartbeat>
}

interface Tracked {
  readonly beat: Beat
  renewAt: number
  /** The lease is valid at least until this time, as far as this process knows. */
  liveUntil: number
  progress: string | undefined
}

/** Progress is written at most once in this time. */
const PROGRESS_MS = 250
/** The delay before a failed renewal is retried; at most a sixth of the lease. */
const RETRY_MAX_MS = 5000

/** Renews leases by timers of this thread. A handler that blocks the thread blocks the renewal. */
export class TimerHeartbeat implements HeartbeatHost {
  readonly isReady = true
  readonly #store: BeatStore
  readonly #environment: Environment
  readonly #leaseMs: number
  readonly #events: HeartbeatEvents
  readonly #tracked = new Map<Ref, Tracked>()
  #timer: { readonly at: number; readonly timer: Timer } | undefined
  #beating: Promise<void> | undefined
  /** Fires not later than the first lease may expire. */
  #expiry: Timer | undefined
  /** After a failed renewal, no other is sent before this time. */
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

  /** `agesMs`: how long ago each lease was renewed; if absent, just now. */
  track(beats: readonly Beat[], agesMs: readonly number[] = []): void {
    const now = this.#environment.clock.now()
    let oldestMs = 0
    for (const [i, beat] of beats.entries()) {
      const ageMs = agesMs[i] ?? 0
      const since = now - ageMs
      const [renewAt, liveUntil] = [since + this.#leaseMs / 3, since + this.#leaseMs]
      this.#tracked.set(beat.ref, { beat, renewAt, liveUntil, progress: undefined })
      oldestMs = Math.max(oldestMs, ageMs)
    }
    if (beats.length > 0) this.#arm(now - oldestMs + this.#leaseMs / 3)
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

  /** Schedules a renewal, unless an earlier one is scheduled. */
  #arm(wanted: number): void {
    if (this.#closed || this.#beating !== undefined) return
    const at = Math.max(wanted, this.#pausedUntil)
    if (this.#timer !== undefined && this.#timer.at <= at) return
    this.#timer?.timer.cancel()
    const delay = Math.max(0, at - this.#environment.clock.now())
    const timer = this.#environment.timers.after(delay, () => {
      this.#timer = undefined
      this.#events.onBeat?.()
      // What was registered now is part of this renewal, or of the next one that it plans.
      this.#disarm()
      this.#beating = this.#beat().finally(() => {
        this.#beating = undefined
        this.#armForFirst()
      })
    })
    this.#timer = { at, timer }
  }

  #disarm(): void {
    this.#timer?.timer.cancel()
    this.#timer = undefined
  }

  #armForFirst(): void {
    let first = Number.POSITIVE_INFINITY
    for (const { renewAt } of this.#tracked.values()) first = Math.min(first, renewAt)
    if (Number.isFinite(first)) this.#arm(first)
  }

  /** Schedules a check for expired leases. */
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

  /** Reports leases as lost that were not renewed for their whole length. */
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
    // Leases that are nearly due are included, to save statements.
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
   * Only executions that are still registered. One that was reported meanwhile has no lease to
   * lose, and a later execution of the same job has another fence.
   */
  #stillTracked(asked: readonly Tracked[], refs: readonly Ref[]): Tracked[] {
    const answered = new Set(refs)
    return asked.filter(
      (tracked) =>
        answered.has(tracked.beat.ref) && this.#tracked.get(tracked.beat.ref) === tracked,
    )
  }
}
