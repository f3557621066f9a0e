/**
 * The journal in a folder: `<root>/<run id>/`, one folder for each run. `disk.ts` lists the files
 * in it and names the source file that specifies each format.
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
import { PathRefused } from '../errors.ts'
import { encodeFailure, type FailureRecord } from '../failure-record.ts'
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
import { isRunId } from '../names.ts'
import { guarded, OpenJournal } from '../open-journal.ts'
import { describeFailure, examine, peekRun, replayFailed, SourceReader } from '../reading.ts'
import { encodeSnapshot } from '../snapshot.ts'
import { checkRestored, verifyRun } from '../verify.ts'
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

/** The options of `openFolderJournal`. */
export interface FolderJournalOptions {
  /** The folder. It is created if it does not exist; its parent must exist. */
  readonly path: string
  readonly environment?: Environment
  /** Default: the files of this machine. */
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
    // The process that created it may have died before its name was on the disk.
    await disk.files.syncFolder(dirname(disk.root))
  })
  return new FolderJournal(disk)
}

class FolderJournal extends OpenJournal<FolderWriter> implements Journal {
  readonly #disk: Disk

  constructor(disk: Disk) {
    super()
    this.#disk = disk
  }

  create(runId: string, facts: readonly RunFact[], author: Author): Promise<RunWriter> {
    return this.onRun(runId, 'creation', async () => {
      // A log can be long, so a run that exists is recognized by its first line.
      if (await this.#hasLine(runId)) throw new RunExists(runId)
      await makeFolder(this.#disk, runId)
      const onReleased = this.forget
      return this.keep(await openWriter(this.#disk, runId, { author, onReleased, first: facts }))
    })
  }

  open(
    runId: string,
    author: Author | (() => Author),
    onEvent?: (event: RunEvent) => void,
  ): Promise<RunWriter> {
    return this.onRun(runId, 'opening', async () => {
      if (!(await this.#exists(runId))) throw new RunNotFound()
      const onReleased = this.forget
      return this.keep(await openWriter(this.#disk, runId, { author, onReleased, onEvent }))
    })
  }

  read(runId: string): Promise<RunReader> {
    return this.onRun(runId, 'read', async () => {
      if (!(await this.#exists(runId))) throw new RunNotFound()
      return new SourceReader(new FolderSource(this.#disk, runId))
    })
  }

  list(): Promise<string[]> {
    return guarded('*', 'list', async () => {
      this.assertOpen()
      const found: string[] = []
      for (const name of await this.#disk.files.list(this.#disk.root)) {
        if (!isRunId(name)) continue
        const info = await this.#disk.files.info(`${this.#disk.root}/${name}`)
        // A link is not followed. It is listed, so that reading it reports `PathRefused`.
        const isRun = info?.kind === 'folder' ? await this.#seemsToExist(name) : false
        if (isRun || info?.kind === 'link') found.push(name)
      }
      return found
    })
  }

  peek(runId: string): Promise<Run | undefined> {
    return this.onRun(runId, 'read', async () => {
      const there = await isFolder(this.#disk, folderOf(this.#disk, runId))
      return there ? peekRun(new FolderSource(this.#disk, runId)) : undefined
    })
  }

  verify(runId: string): Promise<RunFinding[]> {
    return this.onRun(runId, 'check', async () => {
      if (!(await this.#exists(runId))) throw new RunNotFound()
      return verifyRun(new FolderSource(this.#disk, runId))
    })
  }

  requestCancel(runId: string, request: Omit<CancelRequest, 'ts'>): Promise<void> {
    return this.onRun(runId, 'request to cancel', async () => {
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
    return this.onRun(runId, 'record of the failure', async () => {
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
    return this.onRun(runId, 'restoring', async () => {
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
        // The rename of the log is the moment at which the run exists.
        const text = Buffer.from(restored.lines.map((line) => `${line}\n`).join(''))
        await writeAtomically(disk, folder, LOG, text)
        await writeAtomically(disk, folder, SNAPSHOT, snapshotOf(run, lastHash))
        return 'restored'
      } finally {
        await lock.release()
      }
    })
  }

  async #assertFolder(runId: string): Promise<void> {
    if (!(await isFolder(this.#disk, folderOf(this.#disk, runId)))) throw new RunNotFound()
  }

  /** Lists a run with an unreadable file, so that reading it reports the error. */
  async #seemsToExist(runId: string): Promise<boolean> {
    try {
      return await this.#exists(runId)
    } catch (error) {
      if (error instanceof PathRefused) return true
      throw error
    }
  }

  /** Returns true if the folder has a snapshot, or a log with a whole line. */
  async #exists(runId: string): Promise<boolean> {
    const folder = folderOf(this.#disk, runId)
    if (!(await isFolder(this.#disk, folder))) return false
    if ((await this.#disk.files.info(`${folder}/${SNAPSHOT}`)) !== undefined) return true
    return this.#hasLine(runId)
  }

  async #hasLine(runId: string): Promise<boolean> {
    const folder = folderOf(this.#disk, runId)
    if (!(await isFolder(this.#disk, folder))) return false
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

/** The snapshot itself is not replaced: it may prove which events the log has lost. */
async function keepFailedSnapshot(disk: HeldDisk, { run, lastHash }: Replayed): Promise<void> {
  const path = `${disk.held.path}/${FAILED_SNAPSHOT}`
  const text = snapshotOf(run, lastHash)
  const there = await readWhole(disk, path)
  if (there !== undefined && text.equals(there)) return
  await writeAtomically(disk, disk.held.path, FAILED_SNAPSHOT, text)
}

const LINE_FEED = 0x0a
/** More than the length of any first line, which has a few names and numbers. */
const FIRST_BYTES = 64 * 1024

function snapshotOf(run: Run, lastHash: string): Buffer {
  return Buffer.from(encodeSnapshot(run, lastHash))
}
