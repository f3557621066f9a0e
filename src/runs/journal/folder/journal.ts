/**
 * The journal in a folder: `<root>/<run id>/`, one folder for each run. What stands in it is in
 * `disk.ts`, the formats are in the files that own them.
 */
import { dirname } from 'node:path'
import { encode } from '../../../core/canonical-json.ts'
import { RunExists, RunNotFound } from '../../../core/errors.ts'
import { checkDefinition, type FieldChecks, unchecked } from '../../../core/fields.ts'
import type { FileLocks, FileSystem } from '../../../core/ports.ts'
import type { RunEvent, RunFact } from '../../../core/run/events.ts'
import type { Run } from '../../../core/run/run.ts'
import { systemFiles } from '../../../environment/files.ts'
import { type Environment, systemEnvironment } from '../../../environment/system.ts'
import { systemLocks } from '../../../stores/file-lock.ts'
import { JournalClosed, PathRefused } from '../errors.ts'
import { encodeFailure, type FailureRecord } from '../failure-record.ts'
import { guarded } from '../guarded.ts'
import type {
  Author,
  CancelRequest,
  DecideFailure,
  Journal,
  Replayed,
  RestoredRun,
  RunFinding,
  RunReader,
  RunWriter,
} from '../journal.ts'
import { checkRunId, isRunId } from '../names.ts'
import { describeFailure, examine, peekRun, replayFailed, SourceReader } from '../reading.ts'
import { checkRestored } from '../restored.ts'
import { encodeSnapshot } from '../snapshot.ts'
import { verifyRun } from '../verify.ts'
import {
  CANCEL,
  type Disk,
  FAILED_SNAPSHOT,
  folderOf,
  isFolder,
  LOG,
  nextNumbered,
  openToRead,
  readWhole,
  SNAPSHOT,
  writeAtomically,
} from './disk.ts'
import { type HeldDisk, withHeld } from './held.ts'
import { holdRun, makeFolder, openWriter } from './opening.ts'
import { FAILED_FILE, FolderSource } from './source.ts'
import { type FolderWriter, makeArtifacts, storeArtifact } from './writer.ts'

/** How to open a journal in a folder. */
export interface FolderJournalOptions {
  /** The folder; it is made where there is none, but not the folders above it. */
  readonly path: string
  readonly environment?: Environment
  /** The files of the machine unless said otherwise. */
  readonly files?: FileSystem
  readonly locks?: FileLocks
}

const OPTIONS: FieldChecks<FolderJournalOptions> = {
  path: unchecked,
  environment: unchecked,
  files: unchecked,
  locks: unchecked,
}

/** Opens a journal in a folder. */
export async function openFolderJournal(options: FolderJournalOptions): Promise<Journal> {
  checkDefinition('openFolderJournal', options, OPTIONS)
  const disk: Disk = {
    root: options.path,
    environment: options.environment ?? systemEnvironment(),
    files: options.files ?? systemFiles,
    locks: options.locks ?? systemLocks,
  }
  await guarded('*', 'opening of the journal', async () => {
    await disk.files.createFolder(disk.root)
    await isFolder(disk, disk.root)
    // Whoever made it may have died before its name was on the disk.
    await disk.files.syncFolder(dirname(disk.root))
  })
  return new FolderJournal(disk)
}

class FolderJournal implements Journal {
  readonly #disk: Disk
  readonly #writers = new Set<FolderWriter>()
  #closed = false

  constructor(disk: Disk) {
    this.#disk = disk
  }

  create(runId: string, facts: readonly RunFact[], author: Author): Promise<RunWriter> {
    return this.#guarded(runId, 'creation', async () => {
      await makeFolder(this.#disk, runId)
      const onReleased = this.#forget
      return this.#keep(await openWriter(this.#disk, runId, { author, onReleased, first: facts }))
    })
  }

  open(runId: string, author: Author, onEvent?: (event: RunEvent) => void): Promise<RunWriter> {
    return this.#guarded(runId, 'opening', async () => {
      await this.#assertFolder(runId)
      const onReleased = this.#forget
      return this.#keep(await openWriter(this.#disk, runId, { author, onReleased, onEvent }))
    })
  }

  read(runId: string): Promise<RunReader> {
    return this.#guarded(runId, 'read', async () => {
      if (!(await this.#exists(runId))) throw new RunNotFound()
      return new SourceReader(new FolderSource(this.#disk, runId))
    })
  }

  list(): Promise<string[]> {
    return guarded('*', 'list', async () => {
      this.#assertOpen()
      const found: string[] = []
      for (const name of await this.#disk.files.list(this.#disk.root)) {
        if (!isRunId(name)) continue
        const info = await this.#disk.files.info(`${this.#disk.root}/${name}`)
        // A link is not followed. It is listed, so that reading it says why.
        const isRun = info?.kind === 'folder' ? await this.#seemsToExist(name) : false
        if (isRun || info?.kind === 'link') found.push(name)
      }
      return found
    })
  }

  peek(runId: string): Promise<Run | undefined> {
    return this.#guarded(runId, 'read', async () => {
      const there = await isFolder(this.#disk, folderOf(this.#disk, runId))
      return there ? peekRun(new FolderSource(this.#disk, runId)) : undefined
    })
  }

  verify(runId: string): Promise<RunFinding[]> {
    return this.#guarded(runId, 'check', async () => {
      if (!(await this.#exists(runId))) throw new RunNotFound()
      return verifyRun(new FolderSource(this.#disk, runId))
    })
  }

  requestCancel(runId: string, request: Omit<CancelRequest, 'ts'>): Promise<void> {
    return this.#guarded(runId, 'request to cancel', async () => {
      const { reason, actor } = request
      const ts = new Date(this.#disk.environment.clock.now()).toISOString()
      const note = Buffer.from(`${encode({ actor, reason, ts })}\n`)
      const written = await withHeld(this.#disk, runId, async (disk) => {
        await writeAtomically(disk, disk.held.path, CANCEL, note)
        return true
      })
      if (written === undefined) throw new RunNotFound()
    })
  }

  failDamaged(runId: string, decide: DecideFailure, author: Author): Promise<Replayed> {
    return this.#guarded(runId, 'record of the failure', async () => {
      await this.#assertFolder(runId)
      const lock = await holdRun(this.#disk, runId)
      try {
        const source = new FolderSource(lock.disk, runId)
        const { environment } = this.#disk
        const { record, isNew } = await describeFailure(source, decide, author, environment)
        if (isNew) await keepFailure(lock.disk, record)
        const failed = await replayFailed(source, record)
        await keepFailedSnapshot(lock.disk, failed)
        return failed
      } finally {
        await lock.release()
      }
    })
  }

  restore(restored: RestoredRun): Promise<'restored' | 'same'> {
    const { runId } = restored
    return this.#guarded(runId, 'restoring', async () => {
      const { run, lastHash } = checkRestored(restored)
      await makeFolder(this.#disk, runId)
      const lock = await holdRun(this.#disk, runId)
      try {
        const { disk } = lock
        const { log } = await examine(new FolderSource(disk, runId))
        if (log.run !== null) {
          if (log.lastHash === lastHash) return 'same'
          throw new RunExists(runId)
        }
        if (restored.artifacts.length > 0) await makeArtifacts(disk, runId)
        for (const { name, content } of restored.artifacts) {
          await storeArtifact(disk, runId, name, content)
        }
        const folder = disk.held.path
        // The log comes into its place as a whole: before that, there is no run.
        const text = Buffer.from(restored.lines.map((line) => `${line}\n`).join(''))
        await writeAtomically(disk, folder, LOG, text)
        await writeAtomically(disk, folder, SNAPSHOT, snapshotOf(run, lastHash))
        return 'restored'
      } finally {
        await lock.release()
      }
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    const closings = await Promise.allSettled([...this.#writers].map((writer) => writer.close()))
    const failed = closings.find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  readonly #forget = (writer: FolderWriter): void => {
    this.#writers.delete(writer)
  }

  #keep(writer: FolderWriter): FolderWriter {
    this.#writers.add(writer)
    return writer
  }

  async #guarded<T>(runId: string, doing: string, action: () => Promise<T>): Promise<T> {
    this.#assertOpen()
    checkRunId(runId)
    return guarded(runId, doing, action)
  }

  #assertOpen(): void {
    if (this.#closed) throw new JournalClosed('The journal', 'is closed')
  }

  async #assertFolder(runId: string): Promise<void> {
    if (!(await isFolder(this.#disk, folderOf(this.#disk, runId)))) throw new RunNotFound()
  }

  /** A run of which a file cannot be read is one all the same: whoever looks at it is told. */
  async #seemsToExist(runId: string): Promise<boolean> {
    try {
      return await this.#exists(runId)
    } catch (error) {
      if (error instanceof PathRefused) return true
      throw error
    }
  }

  /** Whether there is a run: a whole line of its log, or what only a run has. */
  async #exists(runId: string): Promise<boolean> {
    const folder = folderOf(this.#disk, runId)
    if (!(await isFolder(this.#disk, folder))) return false
    if ((await this.#disk.files.info(`${folder}/${SNAPSHOT}`)) !== undefined) return true
    const log = await openToRead(this.#disk, `${folder}/${LOG}`)
    if (log === undefined) return false
    try {
      return (await log.handle.read(0, FIRST_BYTES)).includes(LINE_FEED)
    } finally {
      await log.handle.close()
    }
  }
}

async function keepFailure(disk: HeldDisk, record: FailureRecord): Promise<void> {
  const folder = disk.held.path
  const number = nextNumbered(await disk.files.list(folder), FAILED_FILE)
  const text = Buffer.from(encodeFailure(record))
  await writeAtomically(disk, folder, `events.failed-${number}.ndjson`, text)
}

/** Beside the snapshot, which stays as it is: it may prove what the log has lost. */
async function keepFailedSnapshot(disk: HeldDisk, { run, lastHash }: Replayed): Promise<void> {
  const path = `${disk.held.path}/${FAILED_SNAPSHOT}`
  const text = snapshotOf(run, lastHash)
  const there = await readWhole(disk, path)
  if (there !== undefined && text.equals(there)) return
  await writeAtomically(disk, disk.held.path, FAILED_SNAPSHOT, text)
}

const LINE_FEED = 0x0a
/** A first line is short: it has a few names and numbers. */
const FIRST_BYTES = 64 * 1024

function snapshotOf(run: Run, lastHash: string): Buffer {
  return Buffer.from(encodeSnapshot(run, lastHash))
}
