/** What was seen of a seed from outside, to be compared with what the store holds in the end. */
import { PawlError } from 'pawl'
import type { Fact, Fence } from 'pawl/rules'
import type {
  Answer,
  Beat,
  ClaimRequest,
  CommitAnswer,
  Heartbeat,
  Held,
  Ref,
  Settled,
  Settlement,
} from 'pawl/sqlite'
import type { Answered, Judged } from './checker.ts'
import type { Outside } from './jobs.ts'
import { Crashed } from './process.ts'
import type { Visit } from './visits.ts'

/** An answer of the store that reached its caller. */
export interface Reply {
  readonly verb: string
  readonly values: readonly unknown[]
  readonly result: unknown
  /** The time of the file, as the caller sees it. */
  readonly storeNow: number
  /** When the store was asked and when it answered, by the clock that is never set. */
  readonly askedAt: number
  readonly at: number
}

/** The verbs that look at the newest base of time while they hold the write lock. */
const TIMED: readonly string[] = ['enqueue', 'settle', 'heartbeat', 'promote', 'recover']

/** The history of one seed. */
export class History {
  /** The jobs whose enqueueing was acknowledged: their types, by id. */
  readonly acknowledged = new Map<string, string>()
  /** What retention may have removed. */
  readonly pruned = new Set<string>()
  /** Jobs of which somebody was told that they have succeeded. */
  readonly succeeded = new Set<string>()
  /** The operator lets the doctor look at everything, at every visit. */
  isExamined = false
  /** The queue may be paused, and is to be resumed. */
  isQueuePaused = false
  /** How many visits are still to be made; nothing until the first. */
  visitsLeft: number | undefined
  readonly visits: Visit[] = []
  /** What retention archived, with the time of the store; see `returns.ts`. */
  readonly removed = new Map<string, { readonly facts: readonly Fact[]; readonly at: number }>()
  /** How often a client was given a job that may have been removed. */
  keysMet = 0
  /** Keys of removed jobs stay taken in this seed. */
  keepsKeys = false
  readonly answers: Answered[] = []
  readonly outside: Outside = { delivered: [], stepped: [] }
  readonly judged: Judged[] = []
  /** The latest time of the file that any process has seen. */
  #latest = 0
  /** Until when leases last at least, by the clock that is never set; by job and claim. */
  readonly #leases = new Map<string, number>()
  /** The numbers that heartbeats use for jobs, by id. */
  readonly #refOf = new Map<string, Ref>()
  /** Jobs whose leases were taken back too early; only a sound row shows that. */
  readonly early: Judged[] = []
  readonly #idOf = new Map<string, string>()
  /** Told of each lease that somebody was told to have renewed. */
  readonly #onRenewed: (ref: Ref, fence: Fence, now: number) => void

  constructor(onRenewed: (ref: Ref, fence: Fence, now: number) => void) {
    this.#onRenewed = onRenewed
  }

  /** Somebody was told that a job is accepted. */
  acknowledge(type: string, n: number, id: string): void {
    const key = `${type} ${n}`
    const before = this.#idOf.get(key)
    if (before !== undefined && before !== id && !this.pruned.has(before)) {
      this.blame('P12', id, `has the key "${key}" of ${before}`)
    }
    this.#idOf.set(key, id)
    this.acknowledged.set(id, type)
  }

  /** What is archived before it is removed; returns it by job. */
  archive(lines: string): ReadonlyMap<string, readonly Fact[]> {
    const archived = new Map<string, Fact[]>()
    for (const line of lines.trim().split('\n')) {
      const { fact } = JSON.parse(line) as { fact: Fact }
      archived.set(fact.jobId, [...(archived.get(fact.jobId) ?? []), fact])
    }
    for (const [id, facts] of archived) {
      const hasEnded = facts.some(({ outcome }) => outcome !== undefined)
      if (!hasEnded) this.blame('P8', id, 'is removed, and has not ended')
      this.pruned.add(id)
    }
    return archived
  }

  /** An answer of the store that reached its caller. */
  note({ verb, values, result, storeNow, askedAt, at }: Reply): void {
    if (TIMED.includes(verb)) this.#noteTime(storeNow)
    this.#noteLeases({ verb, values, result, askedAt, at })
    if (verb === 'settle') this.#noteSettled(values[0] as Settlement[], result as Settled)
    else if (verb === 'commit') this.#noteCommit(values[0] as Held, result as CommitAnswer)
    else if (verb === 'heartbeat') {
      this.#noteBeats(values[0] as Beat[], result as Heartbeat, storeNow)
    } else if (verb === 'applyCommand' || verb === 'cancel' || verb === 'recover') {
      for (const answer of result as Answer[]) {
        if (answer.kind === 'done') this.answers.push({ fact: answer.fact })
      }
    }
  }

  /** All processes have the same time, and it never runs backwards. */
  #noteTime(now: number): void {
    if (now < this.#latest) {
      this.blame('P11', '', `the time of the file ran back by ${this.#latest - now} ms`)
    }
    this.#latest = Math.max(this.#latest, now)
  }

  /**
   * P7: a lease lasts as long as it was asked for, whatever happens to wall clocks. It began when
   * it was asked for or later, and was taken back when that was answered or earlier.
   */
  #noteLeases({ verb, values, result, askedAt, at }: Omit<Reply, 'storeNow'>): void {
    if (verb === 'claim') this.#noteClaims(result as Held[], values[0] as ClaimRequest, askedAt)
    else if (verb === 'settle' && values[1] !== undefined) {
      this.#noteClaims((result as Settled).claimed, values[1] as ClaimRequest, askedAt)
    } else if (verb === 'heartbeat') {
      const { lost } = result as Heartbeat
      for (const { ref, fence } of values[0] as Beat[]) {
        if (lost.includes(ref)) continue
        this.#leases.set(`${ref} ${fence.claim}`, askedAt + (values[1] as number))
      }
    } else if (verb === 'recover') {
      for (const answer of result as Answer[]) {
        if (answer.kind !== 'done' || answer.fact.execution?.abort !== 'lease_expired') continue
        const { jobId: job, execution } = answer.fact
        const leftMs = (this.#leases.get(`${this.#refOf.get(job)} ${execution.claim}`) ?? 0) - at
        if (leftMs <= 0) continue
        const what = `lost its lease ${leftMs} ms before the end`
        this.early.push({ promise: 'P7', job, what, facts: [answer.fact] })
      }
    }
  }

  #noteClaims(claimed: readonly Held[], { leaseMs }: ClaimRequest, askedAt: number): void {
    for (const { ref, job } of claimed) {
      this.#refOf.set(job.id, ref)
      this.#leases.set(`${ref} ${job.execution?.claim}`, askedAt + leaseMs)
    }
  }

  /** Failure is loud and typed (P16). */
  expectTyped(error: unknown): void {
    for (let cause = error; cause instanceof Error; cause = cause.cause) {
      if (cause instanceof PawlError || cause instanceof Crashed) return
    }
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    this.blame('P16', '', `an error without a code: ${text}`)
  }

  blame(promise: string, job: string, what: string): void {
    this.judged.push({ promise, job, what, facts: [] })
  }

  /** Who is told that it still holds a job, must. */
  #noteBeats(beats: readonly Beat[], { lost }: Heartbeat, now: number): void {
    for (const { ref, fence } of beats) {
      if (!lost.includes(ref)) this.#onRenewed(ref, fence, now)
    }
  }

  #noteSettled(settlements: readonly Settlement[], { answers }: Settled): void {
    for (const [i, answer] of answers.entries()) {
      const claim = settlements[i]?.held.job.execution?.claim
      if (answer.kind === 'done') {
        this.answers.push({ fact: answer.fact, ...(claim !== undefined && { claim }) })
      }
    }
  }

  #noteCommit({ job: { id, execution, attempt } }: Held, answer: CommitAnswer): void {
    if (answer.kind === 'rejected') return
    if (answer.job.attempt === attempt && answer.job.execution?.claim === execution?.claim) return
    this.blame('P4', id, `told attempt ${attempt} that it has committed, which it has not`)
  }
}
