/**
 * What the writers of both journals share. Facts become lines at once, after everything that was
 * appended before them, so that `run` is always what the next decision must be made on. The lines
 * wait until the write under way has ended, and then go out together: one write and one sync for
 * all of them.
 *
 * When a write fails, everything that waited was decided on events that do not exist: all of it is
 * refused, and the run is again what is durable.
 */
import type { RunEvent, RunFact } from '../core/run/events.ts'
import type { Run } from '../core/run/run.ts'
import type { Environment } from '../environment/system.ts'
import { JournalClosed, JournalFailed } from './errors.ts'
import { type Extension, extend, type OpenLog } from './event-line.ts'
import type { Author, CancelRequest, RunWriter, StoredArtifact } from './journal.ts'
import { encodeSnapshot } from './snapshot.ts'

/** Lines that go out together. */
export interface Batch {
  readonly lines: readonly string[]
  /** Where the log ends once they are written. */
  readonly end: { readonly seq: number; readonly hash: string }
  /** The snapshot of that end, where it is time for one. */
  readonly snapshot: string | undefined
}

interface Waiting extends Extension {
  readonly resolve: (events: RunEvent[]) => void
  readonly reject: (error: unknown) => void
}

/** How many events may pass before the snapshot follows them. */
const SNAPSHOT_EVERY = 256
/** How many lines may wait for the write under way. */
const WAITING_MAX = 100_000

/** A writer; its kinds say how lines are kept. */
export abstract class BufferedWriter implements RunWriter {
  readonly runId: string
  protected readonly environment: Environment
  readonly #lost = new AbortController()
  readonly #log: OpenLog
  #lastHash: string
  /** What is on the disk. */
  #durable: { readonly seq: number; readonly hash: string; readonly state: string }
  /** The last event of which the snapshot knows; 0 where there is no valid one. */
  #snapshotSeq: number
  #waiting: Waiting[] = []
  #waitingLines = 0
  #writing: Promise<void> | undefined
  #ended: JournalClosed | undefined
  #closing: Promise<void> | undefined

  constructor(environment: Environment, log: OpenLog, snapshotSeq: number) {
    this.environment = environment
    this.runId = log.runId
    this.#log = log
    this.#lastHash = log.lastHash
    this.#durable = { seq: this.run.last_seq, hash: log.lastHash, state: this.run.run_state }
    this.#snapshotSeq = snapshotSeq
  }

  get run(): Run {
    return this.#log.fold.run as Run
  }

  get lastHash(): string {
    return this.#lastHash
  }

  get signal(): AbortSignal {
    return this.#lost.signal
  }

  async append(facts: readonly RunFact[], author: Author): Promise<RunEvent[]> {
    this.assertOpen()
    if (facts.length === 0) return []
    if (this.#waitingLines + facts.length > WAITING_MAX) {
      throw new JournalFailed(this.runId, 'append', `more than ${WAITING_MAX} events wait already`)
    }
    const log = { ...this.#log, lastHash: this.#lastHash }
    const added = extend(log, facts, author, this.environment)
    this.#lastHash = added.lastHash
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...added, resolve, reject })
      this.#waitingLines += added.lines.length
      this.#writing ??= this.#write()
    })
  }

  abstract writeArtifact(name: string, content: Uint8Array): Promise<StoredArtifact>
  abstract readArtifact(name: string, sha256: string): Promise<Uint8Array>
  abstract cancelRequest(): Promise<CancelRequest | undefined>

  /**
   * Makes a batch durable, and then, if it can, its snapshot; says whether the snapshot is kept.
   * Throws when nothing was added, and calls `breakOff` where even that is not sure.
   */
  protected abstract persist(batch: Batch): Promise<boolean>
  /** Keeps the snapshot of what is durable. */
  protected abstract persistSnapshot(snapshot: string): Promise<void>
  /** Gives the run free. */
  protected abstract release(): Promise<void>

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Writes the snapshot if it is behind, while nothing is being written. */
  async catchUp(): Promise<void> {
    const { seq, hash } = this.#durable
    if (this.#snapshotSeq === seq) return
    await this.persistSnapshot(encodeSnapshot(this.run, hash))
    this.#snapshotSeq = seq
  }

  /** Whether the writer refuses everything. */
  protected get isEnded(): boolean {
    return this.#ended !== undefined
  }

  protected assertOpen(): void {
    if (this.#ended !== undefined) throw this.#ended
  }

  /** Refuses everything from now on. */
  protected breakOff(why: string, lost?: Error): void {
    this.#ended ??= new JournalClosed(`The writer of run ${this.runId}`, why)
    if (lost !== undefined) this.#lost.abort(lost)
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#waiting
      this.#waiting = []
      this.#waitingLines = 0
      try {
        await this.#writeGroup(group)
      } catch (error) {
        this.#log.fold.undoAfter(this.#durable.seq)
        this.#lastHash = this.#durable.hash
        const failed = [...group, ...this.#waiting]
        this.#waiting = []
        this.#waitingLines = 0
        for (const { reject } of failed) reject(error)
        continue
      }
      for (const { resolve, events } of group) resolve([...events])
    }
    this.#writing = undefined
  }

  /** The group is all that was appended, so that at its beginning the run is the run after it. */
  async #writeGroup(group: readonly Waiting[]): Promise<void> {
    const { last_seq: seq, run_state: state } = this.run
    const end = { seq, hash: this.#lastHash }
    const lines = group.flatMap((waiting) => waiting.lines)
    const isDue = state !== this.#durable.state || seq - this.#snapshotSeq >= SNAPSHOT_EVERY
    const snapshot = isDue ? encodeSnapshot(this.run, end.hash) : undefined
    const kept = await this.persist({ lines, end, snapshot })
    this.#durable = { ...end, state }
    this.#log.fold.settle(seq)
    if (kept) this.#snapshotSeq = seq
  }

  async #close(): Promise<void> {
    await this.#writing
    const broken = this.#ended !== undefined
    this.breakOff('is closed')
    try {
      if (!broken) await this.catchUp()
    } finally {
      await this.release()
    }
  }
}
