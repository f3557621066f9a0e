/**
 * The files in a run's folder. Each is written so that a crash leaves the old or the new content:
 *
 *   events.ndjson            the log (`../event-line.ts`)
 *   events.torn-<n>          a torn end that was removed from the log (`tail.ts`), n from 1
 *   events.failed-<n>.ndjson the record of a damaged log (`../failure-record.ts`), n from 1
 *   snapshot.json            the fold of the log (`../snapshot.ts`)
 *   snapshot.failed.json     the fold of a damaged log and its record; for people
 *   artifacts/               contents (`../names.ts`)
 *   .looks.json              a cache of the sizes and times of checked contents (`looks.ts`)
 *   cancel.json              the last request to cancel the run
 *   .lock, .holder.json      the lock of the writer, and the process that has it
 *   *.tmp                    a file before its rename; the next holder removes left-over ones
 *
 * Links are never followed: each path below the journal's folder is checked before it is used, and
 * the last part of a path is opened without following links.
 */
import type { FileHandle, FileInfo, FileLocks, FileSystem } from '../../../core/ports.ts'
import type { Environment } from '../../../environment/system.ts'
import { PathRefused } from '../errors.ts'
import type { HeldFolder } from './held.ts'

export interface Disk {
  readonly files: FileSystem
  readonly locks: FileLocks
  readonly environment: Environment
  /** The folder with one folder for each run. */
  readonly root: string
  /** The open folder of the run that is written to; absent for readers. */
  readonly held?: HeldFolder
}

export const LOG = 'events.ndjson'
export const SNAPSHOT = 'snapshot.json'
export const FAILED_SNAPSHOT = 'snapshot.failed.json'
export const ARTIFACTS = 'artifacts'
export const CANCEL = 'cancel.json'
export const LOCK = '.lock'
export const HOLDER = '.holder.json'
export const LOOKS = '.looks.json'

const CHUNK_BYTES = 1024 * 1024
/** Files other than the log are read as a whole. */
const WHOLE_BYTES_MAX = 1024 * 1024 * 1024

export function folderOf({ root, held }: Disk, runId: string): string {
  return held?.path ?? `${root}/${runId}`
}

/** Returns the folder of a run's artifacts, if it exists. Throws `PathRefused` for a link. */
export async function artifactsOf(disk: Disk, runId: string): Promise<string | undefined> {
  if (disk.held !== undefined) return disk.held.inner(ARTIFACTS)
  const folder = `${folderOf(disk, runId)}/${ARTIFACTS}`
  return (await isFolder(disk, folder)) ? folder : undefined
}

function refusal(
  { held }: Disk,
  path: string,
  info: FileInfo,
  wanted: 'file' | 'folder',
): PathRefused {
  return PathRefused.kind(held?.shown(path) ?? path, info, wanted)
}

/** Returns false if nothing is at the path. Throws `PathRefused` if it is not a folder. */
export async function isFolder(disk: Disk, path: string): Promise<boolean> {
  const info = await disk.files.info(path)
  if (info === undefined) return false
  if (info.kind !== 'folder') throw refusal(disk, path, info, 'folder')
  return true
}

export interface OpenFile {
  readonly handle: FileHandle
  readonly info: FileInfo
}

/** Opens a file for reading. Returns `undefined` if it does not exist. Throws `PathRefused`. */
export async function openToRead(disk: Disk, path: string): Promise<OpenFile | undefined> {
  return openSeen(disk, path, await disk.files.info(path))
}

/** The same, if the caller has the file's info already. */
async function openSeen(
  disk: Disk,
  path: string,
  seen: FileInfo | undefined,
): Promise<OpenFile | undefined> {
  if (seen === undefined) return undefined
  if (seen.kind !== 'file') throw refusal(disk, path, seen, 'file')
  const handle = await disk.files.open(path, 'read')
  if (handle === undefined) return undefined
  // The file may have been replaced between the check and the opening.
  const info = await handle.info()
  if (info.kind === 'file') return { handle, info }
  await handle.close()
  throw refusal(disk, path, info, 'file')
}

/** Opens a file for appending. Creates it if it does not exist. */
export async function openToAppend(disk: Disk, path: string): Promise<FileHandle> {
  const info = await disk.files.info(path)
  if (info !== undefined && info.kind !== 'file') throw refusal(disk, path, info, 'file')
  return disk.files.open(path, 'append')
}

/** Yields the bytes of a file in chunks. Reads the next chunk while the caller uses one. */
export async function* chunksOf(handle: FileHandle): AsyncGenerator<Uint8Array> {
  let reading = handle.read(0, CHUNK_BYTES)
  try {
    for (let offset = CHUNK_BYTES; ; offset += CHUNK_BYTES) {
      const chunk = await reading
      const isLast = chunk.length < CHUNK_BYTES
      if (!isLast) reading = handle.read(offset, CHUNK_BYTES)
      if (chunk.length > 0) yield chunk
      if (isLast) return
    }
  } finally {
    // The caller closes the file next. An error of the chunk that was read ahead does not matter.
    await reading.catch(() => {})
  }
}

/** Returns all bytes of a file, or `undefined` if it does not exist. */
export async function readWhole(disk: Disk, path: string): Promise<Uint8Array | undefined> {
  return (await readSeen(disk, path, await disk.files.info(path)))?.bytes
}

/** The bytes of a file, and its info before and after reading. */
export interface ReadFile {
  readonly bytes: Uint8Array
  readonly before: FileInfo
  readonly after: FileInfo
}

/** The same as `readWhole`, if the caller has the file's info already. */
export async function readSeen(
  disk: Disk,
  path: string,
  seen: FileInfo | undefined,
): Promise<ReadFile | undefined> {
  const opened = await openSeen(disk, path, seen)
  if (opened === undefined) return undefined
  const { handle, info: before } = opened
  try {
    const { size } = before
    if (size > WHOLE_BYTES_MAX) {
      const shown = disk.held?.shown(path) ?? path
      throw new PathRefused(shown, `has ${size} bytes, too many to read`)
    }
    return { bytes: await handle.read(0, size), before, after: await handle.info() }
  } finally {
    await handle.close()
  }
}

/** Writes a file durably: temporary file, sync, rename, sync of the folder. */
export async function writeAtomically(
  { files, environment, held }: Disk,
  folder: string,
  name: string,
  content: Uint8Array,
): Promise<void> {
  // Concurrent writes need different names.
  const temporary = `${folder}/${name}-${environment.ids.next()}.tmp`
  await held?.assertInPlace()
  const handle = await files.open(temporary, 'create')
  try {
    try {
      await handle.append(content)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await files.rename(temporary, `${folder}/${name}`)
  } catch (error) {
    await removeQuietly(files, temporary)
    throw error
  }
  await files.syncFolder(folder)
}

/** Removes the temporary files of interrupted writes. */
export async function removeTemporaries({ files }: Disk, folder: string): Promise<void> {
  for (const name of await files.list(folder)) {
    // Another process, which does not hold the run, may be writing a request to cancel.
    if (name.endsWith('.tmp') && !name.startsWith(CANCEL))
      await removeQuietly(files, `${folder}/${name}`)
  }
}

/** Returns the next number for files such as events.torn-1, events.torn-2 … */
export function nextNumbered(names: readonly string[], pattern: RegExp): number {
  const numbers = names.map((name) => Number(pattern.exec(name)?.[1] ?? 0))
  return Math.max(0, ...numbers) + 1
}

/** Ignores errors, so that they do not hide the error of the write. */
async function removeQuietly(files: FileSystem, path: string): Promise<void> {
  try {
    await files.remove(path)
  } catch {
    // The next holder tries again.
  }
}
