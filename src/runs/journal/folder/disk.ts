/**
 * A run's folder, and how its files are written so that a crash leaves the old or the new:
 *
 *   events.ndjson            the log (`../event-line.ts`)
 *   events.torn-<n>          what was cut off the end of the log, n from 1
 *   events.failed-<n>.ndjson what was recorded of a damaged log (`../failure-record.ts`), n from 1
 *   snapshot.json            the fold of the log (`../snapshot.ts`)
 *   snapshot.failed.json     the same of a damaged log and what was recorded of it; for people
 *   artifacts/               contents (`../names.ts`)
 *   .looks.json              what artifacts looked like when they were right (`looks.ts`)
 *   cancel.json              the wish that the run be cancelled
 *   .lock, .holder.json      the right to write, and who has it
 *   *.tmp                    a file on its way; whoever holds the run removes them
 *
 * Nothing here follows a link: each path below the journal's own folder is looked at before it is
 * used, and the last part of a path is opened without following.
 */
import type { FileHandle, FileInfo, FileLocks, FileSystem } from '../../../core/ports.ts'
import type { Environment } from '../../../environment/system.ts'
import { PathRefused } from '../errors.ts'
import type { HeldFolder } from './held.ts'

/** What a folder journal works with. */
export interface Disk {
  readonly files: FileSystem
  readonly locks: FileLocks
  readonly environment: Environment
  /** The folder in which each run has its own. */
  readonly root: string
  /** The folder of the one run that is written to; absent for whoever only reads. */
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
/** Files other than the log are read at once. */
const WHOLE_BYTES_MAX = 1024 * 1024 * 1024

/** The folder of a run. */
export function folderOf({ root, held }: Disk, runId: string): string {
  return held?.path ?? `${root}/${runId}`
}

/** The folder of a run's artifacts; nothing if there is none. A link is refused. */
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

/** Whether there is a folder, which is one and not a link. */
export async function isFolder(disk: Disk, path: string): Promise<boolean> {
  const info = await disk.files.info(path)
  if (info === undefined) return false
  if (info.kind !== 'folder') throw refusal(disk, path, info, 'folder')
  return true
}

/** A file that is open, and what it looks like. */
export interface OpenFile {
  readonly handle: FileHandle
  readonly info: FileInfo
}

/** Opens a file to read it; nothing where there is none. What is no file is refused. */
export async function openToRead(disk: Disk, path: string): Promise<OpenFile | undefined> {
  return openSeen(disk, path, await disk.files.info(path))
}

/** The same, by whoever has looked at its path already. */
async function openSeen(
  disk: Disk,
  path: string,
  seen: FileInfo | undefined,
): Promise<OpenFile | undefined> {
  if (seen === undefined) return undefined
  if (seen.kind !== 'file') throw refusal(disk, path, seen, 'file')
  const handle = await disk.files.open(path, 'read')
  if (handle === undefined) return undefined
  // Between the look and the opening, something else may have taken its place.
  const info = await handle.info()
  if (info.kind === 'file') return { handle, info }
  await handle.close()
  throw refusal(disk, path, info, 'file')
}

/** Opens a file to append to it, making it where there is none. */
export async function openToAppend(disk: Disk, path: string): Promise<FileHandle> {
  const info = await disk.files.info(path)
  if (info !== undefined && info.kind !== 'file') throw refusal(disk, path, info, 'file')
  return disk.files.open(path, 'append')
}

/** The bytes of a file in pieces; the next one is read while the last one is worked on. */
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
    // The file is closed next, and nobody else learns of a failure of what was read ahead.
    await reading.catch(() => {})
  }
}

/** All bytes of a file; nothing where there is none. */
export async function readWhole(disk: Disk, path: string): Promise<Uint8Array | undefined> {
  return (await readSeen(disk, path, await disk.files.info(path)))?.bytes
}

/** What was read of a file, and what the file looked like before and after that. */
export interface ReadFile {
  readonly bytes: Uint8Array
  readonly before: FileInfo
  readonly after: FileInfo
}

/** All bytes of a file, by whoever has looked at its path already; nothing where there is none. */
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

/** Puts a file into its place, durably: temporary file, sync, rename, sync of the folder. */
export async function writeAtomically(
  { files, environment, held }: Disk,
  folder: string,
  name: string,
  content: Uint8Array,
): Promise<void> {
  // The id makes names of writes that happen at once differ.
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

/** Removes what writes that were cut short left behind. */
export async function removeTemporaries({ files }: Disk, folder: string): Promise<void> {
  for (const name of await files.list(folder)) {
    // A wish to cancel may be on its way at this moment; it comes from those who hold nothing.
    if (name.endsWith('.tmp') && !name.startsWith(CANCEL))
      await removeQuietly(files, `${folder}/${name}`)
  }
}

/** A number that no file of this form has yet: events.torn-1, events.torn-2 … */
export function nextNumbered(names: readonly string[], pattern: RegExp): number {
  const numbers = names.map((name) => Number(pattern.exec(name)?.[1] ?? 0))
  return Math.max(0, ...numbers) + 1
}

/** What is left over does no harm, so that a failure to remove it hides no other. */
async function removeQuietly(files: FileSystem, path: string): Promise<void> {
  try {
    await files.remove(path)
  } catch {
    // The next holder tries again.
  }
}
