/**
 * Recognizes unchanged files by size, time of change and inode, to avoid reading them again. If a
 * file was changed shortly before it was read, another change in the same tick of the file system's
 * clock does not change its time. Such a file must be read again.
 */
import type { FileInfo } from '../../core/ports.ts'

/** The properties that change when a file is written or replaced. */
export type Look = Pick<FileInfo, 'size' | 'modified' | 'inode'>

/** The coarsest clock of common file systems (FAT). */
const TICK_MS = 2000

export function isSameLook(a: Look, b: Look): boolean {
  return a.size === b.size && a.modified === b.modified && a.inode === b.inode
}

/** Returns true if a later change of the file will change its time. */
export function isSettled(
  { modifiedAtMs }: Pick<FileInfo, 'modifiedAtMs'>,
  lookedAtMs: number,
): boolean {
  return modifiedAtMs < lookedAtMs - TICK_MS
}
