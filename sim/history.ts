/** What was seen of a seed from outside, to be compared with what the store holds in the end. */
import { type Fact, type Fence, PawlError } from 'pawl'
import type {
  Answer,
  Beat,
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
  readonly answers: Answered[] = []
  readonly outside: Outside = { delivered: [], stepped: [] }
  readonly judged: Judged[] = []
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

  /** What is archived before it is removed. */
  archive(lines: string): void {
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
  }

  /** An answer of the store that reached its caller, and the caller's time. */
  note(verb: string, values: readonly unknown[], result: unknown, now: number): void {
    if (verb === 'settle') this.#noteSettled(values[0] as Settlement[], result as Settled)
    else if (verb === 'commit') this.#noteCommit(values[0] as Held, result as CommitAnswer)
    else if (verb === 'heartbeat') {
      this.#noteBeats(values[0] as Beat[], result as Heartbeat, now)
    } else if (verb === 'tell' || verb === 'cancel' || verb === 'recover') {
      for (const answer of result as Answer[]) {
        if (answer.kind === 'done') this.answers.push({ fact: answer.fact })
      }
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
