/** Locks the folder of a run and repairs its files. */
import { encode } from '../../../core/canonical-json.ts'
import { RunExists, RunNotFound } from '../../../core/errors.ts'
import type { FileLock } from '../../../core/ports.ts'
import type { RunEvent, RunFact } from '../../../core/run/events.ts'
import { PathRefused, RunHeld } from '../errors.ts'
import { emptyLog, extend } from '../event-line.ts'
import { thisProcess } from '../holder.ts'
import type { Author } from '../journal.ts'
import { type Examined, examine } from '../reading.ts'
import {
  artifactsOf,
  type Disk,
  FAILED_SNAPSHOT,
  folderOf,
  HOLDER,
  isFolder,
  LOCK,
  LOG,
  openToAppend,
  removeTemporaries,
  writeAtomically,
} from './disk.ts'
import { type HeldDisk, HeldFolder } from './held.ts'
import { FolderSource } from './source.ts'
import { DiscardedTails } from './tail.ts'
import { FolderWriter, type Opened } from './writer.ts'

export interface HeldRun extends FileLock {
  readonly disk: HeldDisk
}

/** Locks a run. Throws `RunHeld`, or `RunNotFound` if its folder does not exist. */
export async function holdRun(unheld: Disk, runId: string): Promise<HeldRun> {
  const held = await HeldFolder.open(unheld.files, unheld.root, runId)
  if (held === undefined) throw new RunNotFound()
  const disk = { ...unheld, held }
  try {
    const lock = await takeLock(disk, runId)
    return { disk, release: () => unlock(disk, lock) }
  } catch (error) {
    await held.close()
    throw error
  }
}

async function takeLock(disk: HeldDisk, runId: string): Promise<FileLock> {
  const folder = folderOf(disk, runId)
  const path = `${folder}/${LOCK}`
  const info = await disk.files.info(path)
  if (info !== undefined && info.kind !== 'file') {
    throw PathRefused.kind(disk.held.shown(path), info, 'file')
  }
  const lock = await openLock(disk, path)
  if (lock === undefined) throw new RunHeld(runId, await new FolderSource(disk, runId).holder())
  try {
    await removeTemporaries(disk, folder)
    const note = Buffer.from(`${encode(thisProcess(disk.environment.clock))}\n`)
    await writeAtomically(disk, folder, HOLDER, note)
    return lock
  } catch (error) {
    await lock.release()
    throw error
  }
}

const OPENINGS_MAX = 3

/**
 * SQLite resolves the path of the lock itself, so it can fail if the folder is replaced at this
 * moment. Throws `PathRefused` if the folder is still replaced, and tries again if it is back.
 */
async function openLock(disk: HeldDisk, path: string): Promise<FileLock | undefined> {
  for (let opening = 1; ; opening++) {
    try {
      return await disk.locks.take(path)
    } catch (error) {
      await disk.held.assertInPlace()
      if (opening === OPENINGS_MAX) throw error
    }
  }
}

async function unlock({ files, held }: HeldDisk, lock: FileLock): Promise<void> {
  try {
    await files.remove(`${held.path}/${HOLDER}`)
  } finally {
    await lock.release()
    await held.close()
  }
}

/** Creates the folder of a run if it does not exist. */
export async function makeFolder(disk: Disk, runId: string): Promise<void> {
  const root = (await isFolder(disk, disk.root))
    ? await disk.files.openFolder(disk.root)
    : undefined
  if (root === undefined) throw new PathRefused(disk.root, 'does not exist any more')
  try {
    // Through the open handle, so that a link in the place of the root has no effect.
    await disk.files.createFolder(`${root.path}/${runId}`)
    await isFolder(disk, `${root.path}/${runId}`)
    await disk.files.syncFolder(root.path)
  } finally {
    await root.close()
  }
}

export interface Opening {
  readonly author: Author | (() => Author)
  readonly onReleased: Opened['onReleased']
  /** The first facts of a new run; absent if the run exists. */
  readonly first?: readonly RunFact[] | undefined
  /** Receives every event that is read. */
  readonly onEvent?: ((event: RunEvent) => void) | undefined
}

/** Opens a run for writing, or creates it with its first facts. */
export async function openWriter(
  unheld: Disk,
  runId: string,
  opening: Opening,
): Promise<FolderWriter> {
  const { first, onEvent } = opening
  const lock = await holdRun(unheld, runId)
  const { disk } = lock
  try {
    const tails = new DiscardedTails()
    const examined = await examine(new FolderSource(disk, runId), (event) => {
      tails.note(event)
      onEvent?.(event)
    })
    if (first === undefined && examined.log.run === null) throw new RunNotFound()
    if (first !== undefined && examined.log.run !== null) throw new RunExists(runId)
    return await takeOver(disk, runId, { ...opening, lock, examined, tails })
  } catch (error) {
    await lock.release()
    throw error
  }
}

interface TakeOver extends Opening {
  readonly lock: HeldRun
  readonly examined: Examined
  readonly tails: DiscardedTails
}

async function takeOver(disk: HeldDisk, runId: string, from: TakeOver): Promise<FolderWriter> {
  const { lock, examined, tails, onReleased, first } = from
  const author = typeof from.author === 'function' ? from.author() : from.author
  const folder = folderOf(disk, runId)
  // Made before the first write, so that invalid facts leave nothing.
  const begun = first === undefined ? undefined : emptyLog(runId)
  const beginning = begun && extend(begun, first as readonly RunFact[], author, disk.environment)
  const file = await openToAppend(disk, `${folder}/${LOG}`)
  try {
    const discarded = await tails.settle(disk, runId, file, examined.log)
    const bytes = Buffer.from(beginning?.lines.map((line) => `${line}\n`).join('') ?? '')
    if (bytes.length > 0) await file.append(bytes)
    // The process that wrote the lines may have died before they were durable.
    await file.sync()
    // It describes damage that the log no longer has.
    await disk.files.remove(`${folder}/${FAILED_SNAPSHOT}`)
    await disk.files.syncFolder(folder)
    await disk.files.syncFolder(disk.root)
    const snapshotSeq = examined.isCurrent() ? examined.log.lines : 0
    const log = begun && beginning ? { ...begun, ...beginning } : examined.log.open()
    const length = examined.log.wholeBytes + bytes.length
    const writer = new FolderWriter(disk, { log, lock, file, length, snapshotSeq, onReleased })
    if (discarded.length > 0) await writer.append(discarded, author)
    await bringSnapshot(writer)
    const artifacts = await artifactsOf(disk, runId)
    if (artifacts !== undefined) await removeTemporaries(disk, artifacts)
    return writer
  } catch (error) {
    await file.close()
    throw error
  }
}

/** If the snapshot cannot be written now, a later append or `close` writes it. */
async function bringSnapshot(writer: FolderWriter): Promise<void> {
  try {
    await writer.catchUp()
  } catch {
    // The log contains everything.
  }
}
