/**
 * The writer of a run in a store. The lines and, if due, their snapshot are written in one
 * transaction, under the condition that the run is still held. The writer renews its lease three
 * times in its length. If it cannot renew it in time, or another process holds the run, it stops.
 */
import type { Timer } from '../../../core/ports.ts'
import type { Environment } from '../../../environment/system.ts'
import type { RunLease, RunTables } from '../../../stores/contract/runs.ts'
import { OutcomeUnknown, StoreUnavailable } from '../../../stores/errors.ts'
import { type Batch, BufferedWriter } from '../buffered-writer.ts'
import { JournalFailed, RunLost } from '../errors.ts'
import type { OpenLog } from '../event-line.ts'
import { sha256Of } from '../hash.ts'
import type { ArtifactHashes, CancelRequest, StoredArtifact } from '../journal.ts'
import { artifactPath } from '../names.ts'
import { findDamaged, readArtifact } from '../reading.ts'
import { StoreSource } from './source.ts'

export interface Held {
  readonly tables: RunTables
  readonly environment: Environment
  readonly lease: RunLease
  readonly leaseMs: number
  readonly log: OpenLog
  readonly snapshotSeq: number
  readonly onReleased: (writer: StoreWriter) => void
}

/** One statement carries the whole content, encoded in base64. */
const ARTIFACT_BYTES_MAX = 64 * 1024 * 1024

export class StoreWriter extends BufferedWriter {
  readonly #held: Held
  readonly #source: StoreSource
  #renewal: Timer | undefined
  #renewedAt: number

  constructor(held: Held) {
    super(held.environment, held.log, held.snapshotSeq)
    this.#held = held
    this.#source = new StoreSource(held.tables, held.lease.runId)
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
    const { tables, lease } = this.#held
    if (!(await tables.putContent(lease, { path, bytes: content }))) throw this.#lose()
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
    const { tables, lease } = this.#held
    const addition = { after: end.seq - lines.length, lines, end, ...(snapshot && { snapshot }) }
    let kept: boolean
    try {
      kept = await tables.append(lease, addition)
    } catch (error) {
      // Without a reply, only the log shows whether the lines were written.
      const isUnheard = error instanceof StoreUnavailable || error instanceof OutcomeUnknown
      if (isUnheard) this.breakOff('is broken: a write had no reply')
      throw new JournalFailed(this.runId, 'append', error)
    }
    if (!kept) throw this.#lose()
    return snapshot !== undefined
  }

  protected async persistSnapshot(snapshot: string): Promise<void> {
    const { tables, lease } = this.#held
    if (!(await tables.putSnapshot(lease, snapshot))) throw this.#lose()
  }

  protected async release(): Promise<void> {
    const { tables, lease, onReleased } = this.#held
    this.#renewal?.cancel()
    try {
      await tables.release(lease)
    } finally {
      onReleased(this)
    }
  }

  #renewLater(): void {
    const { environment, leaseMs } = this.#held
    this.#renewal = environment.timers.after(leaseMs / 3, () => void this.#renew())
  }

  async #renew(): Promise<void> {
    const { tables, lease, leaseMs, environment } = this.#held
    const askedAt = environment.clock.now()
    try {
      if (!(await tables.renew(lease, leaseMs))) return void this.#lose()
      this.#renewedAt = askedAt
    } catch {
      // The store may be available again before the lease ends.
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
