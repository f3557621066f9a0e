/**
 * The common part of the writers of both journals. `append` makes lines of facts at once, so that
 * `run` includes them for the next decision. The lines wait until the current write has ended and
 * the event loop has turned. Then all waiting lines go out with one write and one sync.
 *
 * If a write fails, the waiting lines were decided on events that do not exist. All of them are
 * rejected, and `run` returns to the durable state.
 */
import { type RunEvent, type RunFact, toEvents } from '../../core/run/events.ts'
import type { Run } from '../../core/run/run.ts'
import type { Environment } from '../../environment/system.ts'
import { Turns } from '../../environment/turns.ts'
import { JournalClosed, JournalFailed } from './errors.ts'
import { type Extension, extend, type OpenLog } from './event-line.ts'
import type { ArtifactHashes, Author, CancelRequest, RunWriter, StoredArtifact } from './journal.ts'
import { encodeSnapshot } from './snapshot.ts'

/** Lines of one write. */
export interface Batch {
  readonly lines: readonly string[]
  /** The end of the log after the write. */
  readonly end: { readonly seq: number; readonly hash: string }
  /** The snapshot at that end, if one is due. */
  readonly snapshot: string | undefined
}

interface Waiting {
  readonly added: Extension
  readonly resolve: (events: RunEvent[]) => void
  readonly reject: (error: unknown) => void
}

/**
 * The least number of events between two snapshots. The log must also have grown by a multiple of
 * the snapshot's length, so that the cost of an event does not depend on the size of the run.
 */
const SNAPSHOT_EVERY = 256
const SNAPSHOT_LENGTHS = 4
/** The envelope of previewed events. Only their data is used. */
const ASSUMED = { ts: '', trace_id: '', span_id: '', actor: '' }
/** How many lines may wait for the current write. */
const WAITING_MAX = 100_000

/** A writer. Subclasses store the lines. */
export abstract class BufferedWriter implements RunWriter {
  readonly runId: string
  protected readonly environment: Environment
  readonly #lost = new AbortController()
  readonly #log: OpenLog
  #lastHash: string
  /** The durable end of the log. */
  #durable: { readonly seq: number; readonly hash: string; readonly state: string }
  /** The last event of the snapshot; 0 if there is no valid one. */
  #snapshotSeq: number
  /** The length of the last snapshot, and of the lines since then. */
  #snapshotLength = 0
  #grown = 0
  #waiting: Waiting[] = []
  #waitingLines = 0
  #writing: Promise<void> | undefined
  /** True if the last write contained several appends. */
  #wasShared = false
  readonly #turns: Turns
  #ended: JournalClosed | undefined
  #closing: Promise<void> | undefined

  constructor(environment: Environment, log: OpenLog, snapshotSeq: number) {
    this.environment = environment
    this.#turns = new Turns(environment)
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
      throw new JournalFailed(this.runId, 'append', `more than ${WAITING_MAX} events are waiting`)
    }
    const { runId, fold } = this.#log
    const log = { runId, fold, lastHash: this.#lastHash }
    const added = extend(log, facts, author, this.environment)
    this.#lastHash = added.lastHash
    return new Promise((resolve, reject) => {
      this.#waiting.push({ added, resolve, reject })
      this.#waitingLines += added.lines.length
      this.#writing ??= this.#write()
    })
  }

  preview<T>(look: (assume: (facts: readonly RunFact[]) => void) => T): T {
    const { runId, fold } = this.#log
    const { last_seq } = this.run
    try {
      return look((facts) => {
        const events = toEvents(runId, this.run.last_seq, facts, ASSUMED, () => '')
        for (const event of events) fold.add(event)
      })
    } finally {
      fold.undoAfter(last_seq)
    }
  }

  abstract writeArtifact(name: string, content: Uint8Array): Promise<StoredArtifact>
  abstract readArtifact(name: string, sha256: string): Promise<Uint8Array>
  abstract findDamaged(
    artifacts: ArtifactHashes,
    options?: { readonly paranoid?: boolean },
  ): Promise<string[]>
  abstract cancelRequest(): Promise<CancelRequest | undefined>

  /**
   * Makes a batch durable, then its snapshot. Returns whether the snapshot was written. Throws if
   * nothing was added. Calls `breakOff` if it is unknown whether something was added.
   */
  protected abstract persist(batch: Batch): Promise<boolean>
  /** Writes the snapshot of the durable state. */
  protected abstract persistSnapshot(snapshot: string): Promise<void>
  /** Releases the run. */
  protected abstract release(): Promise<void>

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Writes the snapshot if it is late. Must not be called during a write. */
  async catchUp(): Promise<void> {
    const { seq, hash } = this.#durable
    if (this.#snapshotSeq === seq) return
    const snapshot = encodeSnapshot(this.run, hash)
    await this.persistSnapshot(snapshot)
    this.#noteSnapshot(seq, snapshot)
  }

  /** True if the writer rejects all calls. */
  protected get isEnded(): boolean {
    return this.#ended !== undefined
  }

  protected assertOpen(): void {
    if (this.#ended !== undefined) throw this.#ended
  }

  /** Rejects all calls from now on. */
  protected breakOff(why: string, lost?: Error): void {
    this.#ended ??= new JournalClosed(`The writer of run ${this.runId}`, why)
    if (lost !== undefined) this.#lost.abort(lost)
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      await this.#gathered()
      const group = this.#waiting
      this.#wasShared = group.length > 1
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
      for (const { resolve, added } of group) resolve([...added.events])
    }
    this.#writing = undefined
  }

  /**
   * Waits a turn of the event loop, so that other appends of the same moment join the write. A turn
   * costs a fifth of a write, so a single appender waits only when a turn is due.
   */
  #gathered(): Promise<void> {
    const isAlone = this.#waiting.length === 1 && !this.#wasShared
    return isAlone && !this.#turns.isDue ? Promise.resolve() : this.#turns.next()
  }

  /** The group is everything that was appended, so `run` is already the state after it. */
  async #writeGroup(group: readonly Waiting[]): Promise<void> {
    const { last_seq: seq, run_state: state } = this.run
    const end = { seq, hash: this.#lastHash }
    const lines: string[] = []
    for (const { added } of group) for (const line of added.lines) lines.push(line)
    let grown = this.#grown
    for (const line of lines) grown += line.length
    const hasPassed =
      seq - this.#snapshotSeq >= SNAPSHOT_EVERY && grown >= SNAPSHOT_LENGTHS * this.#snapshotLength
    const isDue = state !== this.#durable.state || hasPassed
    const snapshot = isDue ? encodeSnapshot(this.run, end.hash) : undefined
    const kept = await this.persist({ lines, end, snapshot })
    this.#durable = { seq, hash: end.hash, state }
    this.#log.fold.settle(seq)
    this.#grown = grown
    if (snapshot !== undefined && kept) this.#noteSnapshot(seq, snapshot)
  }

  #noteSnapshot(seq: number, { length }: string): void {
    this.#snapshotSeq = seq
    this.#snapshotLength = length
    this.#grown = 0
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
