/**
 * The writer of a run in a folder. The order of every append is
 *
 *   write of the lines → sync of the log
 *   (→ temporary snapshot → sync → rename → sync of the folder)
 *
 * The steps in brackets follow rule 3 of the contract. If a write or a sync fails, the log is cut
 * back to its durable length. A failed sync is never repeated for the same bytes: the system may
 * have dropped them and report success.
 */
import type { FileHandle, FileLock } from '../../../core/ports.ts'
import { type Batch, BufferedWriter } from '../buffered-writer.ts'
import { JournalFailed, PathRefused } from '../errors.ts'
import type { OpenLog } from '../event-line.ts'
import { sha256Of } from '../hash.ts'
import type { ArtifactHashes, CancelRequest, StoredArtifact } from '../journal.ts'
import { artifactPath } from '../names.ts'
import { guarded, toJournalError } from '../open-journal.ts'
import { findDamaged, readArtifact } from '../reading.ts'
import { ARTIFACTS, artifactsOf, type Disk, folderOf, SNAPSHOT, writeAtomically } from './disk.ts'
import type { HeldDisk } from './held.ts'
import { FolderSource } from './source.ts'

export interface Opened {
  readonly log: OpenLog
  readonly lock: FileLock
  readonly file: FileHandle
  /** The length of the file in bytes. All of them are durable. */
  readonly length: number
  /** The last event of the snapshot on the disk. */
  readonly snapshotSeq: number
  /** Called after the run was released. */
  readonly onReleased: (writer: FolderWriter) => void
}

const ARTIFACT_BYTES_MAX = 1024 * 1024 * 1024

export class FolderWriter extends BufferedWriter {
  readonly #disk: HeldDisk
  readonly #opened: Opened
  readonly #folder: string
  readonly #source: FolderSource
  #length: number
  /** True if this writer has made the folder of artifacts durable. */
  #hasArtifacts = false

  constructor(disk: HeldDisk, opened: Opened) {
    super(disk.environment, opened.log, opened.snapshotSeq)
    this.#disk = disk
    this.#opened = opened
    this.#folder = folderOf(disk, opened.log.runId)
    this.#source = new FolderSource(disk, opened.log.runId)
    this.#length = opened.length
  }

  async writeArtifact(name: string, content: Uint8Array): Promise<StoredArtifact> {
    this.assertOpen()
    if (content.length > ARTIFACT_BYTES_MAX) {
      throw new JournalFailed(this.runId, 'write of an artifact', `${content.length} bytes`)
    }
    return guarded(this.runId, 'write of an artifact', async () => {
      await this.#disk.held.assertInPlace()
      if (!this.#hasArtifacts) await makeArtifacts(this.#disk, this.runId)
      this.#hasArtifacts = true
      return storeArtifact(this.#disk, this.runId, name, content)
    })
  }

  async readArtifact(name: string, sha256: string): Promise<Uint8Array> {
    return guarded(this.runId, 'read of an artifact', () =>
      readArtifact(this.#source, name, sha256),
    )
  }

  findDamaged(artifacts: ArtifactHashes, options?: { paranoid?: boolean }): Promise<string[]> {
    return guarded(this.runId, 'read of artifacts', () =>
      findDamaged(this.#source, artifacts, { ...options, remember: true }),
    )
  }

  async cancelRequest(): Promise<CancelRequest | undefined> {
    return guarded(this.runId, 'read', () => this.#source.cancelRequest())
  }

  protected async persist({ lines, snapshot }: Batch): Promise<boolean> {
    const bytes = Buffer.from(`${lines.join('\n')}\n`)
    const { file } = this.#opened
    // Checked before the write, so that nothing has to be undone.
    await this.#disk.held.assertInPlace()
    try {
      await file.appendDurably(bytes)
    } catch (error) {
      await this.#cutBack()
      throw toJournalError(this.runId, 'append', error)
    }
    this.#length += bytes.length
    if (snapshot === undefined) return false
    try {
      await this.persistSnapshot(snapshot)
      return true
    } catch {
      // The events are durable. The snapshot can be made from them later.
      return false
    }
  }

  protected async persistSnapshot(snapshot: string): Promise<void> {
    await guarded(this.runId, 'write of the snapshot', () =>
      writeAtomically(this.#disk, this.#folder, SNAPSHOT, Buffer.from(snapshot)),
    )
  }

  protected async release(): Promise<void> {
    const { file, lock, onReleased } = this.#opened
    try {
      await file.close()
    } finally {
      await lock.release()
      onReleased(this)
    }
  }

  /** Removes the bytes of a failed append. */
  async #cutBack(): Promise<void> {
    const { file } = this.#opened
    try {
      await file.truncate(this.#length)
      await file.sync()
    } catch {
      this.breakOff('is broken: a write failed and could not be undone')
    }
  }
}

/**
 * Creates the folder of artifacts and makes its name durable. The sync is needed even if the folder
 * exists: the process that created it may have died before its name was on the disk.
 */
export async function makeArtifacts(disk: Disk, runId: string): Promise<void> {
  const folder = folderOf(disk, runId)
  await disk.files.createFolder(`${folder}/${ARTIFACTS}`)
  await artifactsOf(disk, runId)
  await disk.files.syncFolder(folder)
}

/** Stores a content durably under its name and hash. The folder of artifacts must exist. */
export async function storeArtifact(
  disk: Disk,
  runId: string,
  name: string,
  content: Uint8Array,
): Promise<StoredArtifact> {
  const sha256 = sha256Of(content)
  const path = artifactPath(name, sha256)
  const artifacts = await artifactsOf(disk, runId)
  if (artifacts === undefined) {
    throw new PathRefused(`${folderOf(disk, runId)}/${ARTIFACTS}`, 'does not exist any more')
  }
  await writeAtomically(disk, artifacts, path.slice(ARTIFACTS.length + 1), content)
  return { path, sha256 }
}
