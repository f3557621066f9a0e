/**
 * The holder of a run in a store. The lines and, where it is time, their snapshot are written in
 * one transaction, under the condition that the run is still held. The lease is renewed three times
 * in its length; whoever cannot renew it in time, or is told that another holds the run, stops.
 */
import type { Timer } from '../../../core/ports.ts'
import type { Environment } from '../../../environment/system.ts'
import { OutcomeUnknown, StoreUnavailable } from '../../../stores/errors.ts'
import type { Grip, RunTables } from '../../../stores/runs.ts'
import { type Batch, BufferedWriter } from '../buffered-writer.ts'
import { JournalFailed, RunLost } from '../errors.ts'
import type { OpenLog } from '../event-line.ts'
import { sha256Of } from '../hash.ts'
import type { ArtifactHashes, CancelRequest, StoredArtifact } from '../journal.ts'
import { artifactPath } from '../names.ts'
import { findDamaged, readArtifact } from '../reading.ts'
import { StoreSource } from './source.ts'

/** What a writer takes over from whoever took the run. */
export interface Held {
  readonly tables: RunTables
  readonly environment: Environment
  readonly grip: Grip
  readonly leaseMs: number
  readonly log: OpenLog
  readonly snapshotSeq: number
  readonly onReleased: (writer: StoreWriter) => void
}

/** A statement carries the whole content, in a writing that is longer than it. */
const ARTIFACT_BYTES_MAX = 64 * 1024 * 1024

/** A run that is held. */
export class StoreWriter extends BufferedWriter {
  readonly #held: Held
  readonly #source: StoreSource
  #renewal: Timer | undefined
  #renewedAt: number

  constructor(held: Held) {
    super(held.environment, held.log, held.snapshotSeq)
    this.#held = held
    this.#source = new StoreSource(held.tables, held.grip.runId)
    this.#renewedAt = held.environment.clock.now()
    this.#renewLater()
  }

  async writeArtifact(name: string, content: Uint8Array): Promise<StoredArtifact> {
    this.assertOpen()
    const sha256 = sha256Of(content)
    const path = artifactPath(name, sha256)
    if (content.length > ARTIFACT_BYTES_MAX) {
      const why = `it has ${content.length} bytes, more than ${ARTIFACT_BYTES_MAX}`
      throw new JournalFailed(this.runId, 'write of an artifact', why)
    }
    const { tables, grip } = this.#held
    if (!(await tables.putContent(grip, { path, bytes: content }))) throw this.#lose()
    return { path, sha256 }
  }

  readArtifact(name: string, sha256: string): Promise<Uint8Array> {
    return readArtifact(this.#source, name, sha256)
  }

  findDamaged(artifacts: ArtifactHashes): Promise<string[]> {
    return findDamaged(this.#source, artifacts)
  }

  cancelRequest(): Promise<CancelRequest | undefined> {
    return this.#source.cancelRequest()
  }

  protected async persist({ lines, end, snapshot }: Batch): Promise<boolean> {
    const { tables, grip } = this.#held
    const addition = { after: end.seq - lines.length, lines, end, ...(snapshot && { snapshot }) }
    let kept: boolean
    try {
      kept = await tables.append(grip, addition)
    } catch (error) {
      // No answer came: the lines may be there or not, and only the log can tell.
      const isUnheard = error instanceof StoreUnavailable || error instanceof OutcomeUnknown
      if (isUnheard) this.breakOff('is broken: a write had no answer')
      throw new JournalFailed(this.runId, 'append', error)
    }
    if (!kept) throw this.#lose()
    return snapshot !== undefined
  }

  protected async persistSnapshot(snapshot: string): Promise<void> {
    const { tables, grip } = this.#held
    if (!(await tables.putSnapshot(grip, snapshot))) throw this.#lose()
  }

  protected async release(): Promise<void> {
    const { tables, grip, onReleased } = this.#held
    this.#renewal?.cancel()
    try {
      await tables.release(grip)
    } finally {
      onReleased(this)
    }
  }

  #renewLater(): void {
    const { environment, leaseMs } = this.#held
    this.#renewal = environment.timers.after(leaseMs / 3, () => void this.#renew())
  }

  async #renew(): Promise<void> {
    const { tables, grip, leaseMs, environment } = this.#held
    const askedAt = environment.clock.now()
    try {
      if (!(await tables.renew(grip, leaseMs))) return void this.#lose()
      this.#renewedAt = askedAt
    } catch {
      // The store may come back before the lease ends; after that, another may hold the run.
      if (environment.clock.now() - this.#renewedAt >= leaseMs) return void this.#lose()
    }
    if (!this.isEnded) this.#renewLater()
  }

  #lose(): RunLost {
    const lost = new RunLost(this.runId)
    this.#renewal?.cancel()
    this.breakOff('has lost the run', lost)
    return lost
  }
}
