/**
 * What can go wrong. Each kind is asked for at its own place, by the world, by a process or by a
 * handler, and strikes there as the seed says. A seed has only some of the kinds, each with a rate
 * of its own: bugs hide where everything fails at once as well as where nothing does.
 */
import type { Random } from 'pawl/testing'

/** Every kind, and how often it strikes where it is asked for; what each means. */
const FAULTS = {
  // A process ends without warning.
  crash: 0.06, // between two of its events
  'crash-before-commit': 0.004, // inside a transaction, which is lost with it
  'crash-after-commit': 0.004, // after the commit, before its answer
  'crash-after-claim': 0.02, // with jobs in its hands that it has not begun
  'crash-after-report': 0.01, // when the store has taken its reports
  'crash-in-delivery': 0.05, // while it delivers an effect
  poison: 0.5, // a job that kills the process that runs it
  // A process goes on, but not as it should.
  pause: 0.03, // it notices nothing for a while, shorter than its lease
  'pause-beyond-lease': 0.05, // it notices nothing until it has lost everything
  'same-id': 0.3, // it starts under the name of one that died, or that still lives
  'old-release': 0.3, // it knows only some of the kinds of job
  'old-version': 0.4, // it has the version of a lifecycle that another release has replaced
  stop: 0.03, // it is told to stop, and does so in good order
  'stop-while-paused': 0.3, // it is told so, and notices when it has lost everything
  'stop-twice': 0.5, // it is told so again
  'stop-killed': 0.3, // it is killed while it stops
  // Clocks.
  'clock-skew': 0.3, // a process starts with a wall clock that is wrong
  'clock-leap': 0.03, // its wall clock is set ahead
  'clock-set-back': 0.03, // its wall clock is set back
  'machine-clock-set': 0.05, // the wall clock of the machine is set, ahead or back
  suspend: 0.02, // the machine sleeps: all clocks leap ahead
  // The way to the store.
  unavailable: 0.02, // it is not reached
  'busy-for-long': 0.01, // it is busy for longer than the caller waits
  'lost-reply': 0.02, // the call is done, and the caller receives a failure
  'late-reply': 0.01, // it does what was asked, and answers when the lease is over
  'late-request': 0.01, // the call arrives when the lease is over
  duplicate: 0.02, // the call arrives twice
  'no-heartbeats': 0.05, // for a time, no heartbeat gets through
  'hint-lost': 0.5, // no process is notified that there is work
  'hint-twice': 0.3, // it is told twice
  'hint-late': 0.3, // it is told late, after others
  // The database.
  busy: 0.02, // another has the lock
  'disk-full': 0.002, // a statement is refused, and the transaction with it
  'io-error': 0.002, // a statement fails
  'io-error-at-commit': 0.004, // the transaction cannot be made durable
  'no-file-handles': 0.2, // a new process cannot open the database
  'row-damaged': 0.3, // a person damages one field of a job, past the store
  // The files of runs.
  'file-holder-dies': 0.3, // the holder of a run dies between two operations on its files
  'file-power-fails': 0.3, // writes that were not synced are lost or torn, in any combination
  'file-disk-full': 0.05, // a write is refused when a part of it is written
  'file-sync-fails': 0.05, // a sync fails, and what it was for never reaches the disk
  'file-handles-gone': 0.05, // no file can be opened
  'file-bit-flip': 0.5, // one bit of a file is not what was written
  // What jobs do.
  'handler-fails': 0.5, // a handler throws, and throws again
  'handler-is-slow': 0.5, // a handler takes several leases
  'handler-is-deaf': 0.5, // a handler ignores that it was told to stop
  'slow-commit': 0.1, // the function of a commit takes its time, sometimes too much
  'delivery-fails': 0.2, // the receiver refuses
  'delivery-unheard': 0.2, // the receiver accepts it, and the sender receives no answer
  'delivery-is-slow': 0.1, // the receiver answers after the time-out of the sender
  // What people do.
  cancel: 0.05,
  redrive: 0.05,
  quarantine: 0.03,
  discard: 0.03,
  force: 0.03,
  reschedule: 0.03,
  'pause-queue': 0.03,
  'retry-effects': 0.03,
  prune: 0.05,
  'client-crash': 0.05, // it dies between its request and the answer, and asks again
  'enqueue-twice': 0.2, // two clients ask for the same job
} as const

/** The name of a kind. */
export type FaultKind = keyof typeof FAULTS

/** All of them. */
export const FAULT_KINDS = Object.keys(FAULTS) as readonly FaultKind[]

/** How many of the kinds a seed has. */
const SHARE = 0.4

/** The faults of one seed. */
export class Faults {
  readonly counts: Partial<Record<FaultKind, number>> = {}
  readonly #random: Random
  readonly #rates = new Map<FaultKind, number>()
  #areOver = false

  constructor(random: Random) {
    this.#random = random
    for (const kind of FAULT_KINDS) {
      const isOn = random.next() < SHARE
      const rate = FAULTS[kind] * (0.3 + random.next() * 2)
      if (isOn) this.#rates.set(kind, Math.min(rate, 0.9))
    }
  }

  /** From now on nothing goes wrong any more. */
  end(): void {
    this.#areOver = true
  }

  get areOver(): boolean {
    return this.#areOver
  }

  /** Whether this goes wrong now. */
  strikes(kind: FaultKind): boolean {
    const rate = this.#areOver ? undefined : this.#rates.get(kind)
    if (rate === undefined || this.#random.next() >= rate) return false
    this.counts[kind] = (this.counts[kind] ?? 0) + 1
    return true
  }

  /** A number of milliseconds from a range. */
  between(min: number, max: number): number {
    return Math.floor(min + this.#random.next() * (max - min))
  }
}
