/**
 * What a file looks like from outside. One that looks as it did when it was read holds what it held
 * then, and need not be read again, with one exception: if it had changed just before it was looked
 * at, another change in the same tick of the clock would not show.
 */
import type { FileInfo } from '../../core/ports.ts'

/** What changes when a file is written or replaced. */
export type Look = Pick<FileInfo, 'size' | 'modified' | 'inode'>

/** The coarsest clock of a file system that is in use. */
const TICK_MS = 2000

/** Whether two looks are of the same file with the same content. */
export function isSameLook(a: Look, b: Look): boolean {
  return a.size === b.size && a.modified === b.modified && a.inode === b.inode
}

/** Whether a file that was looked at could not have changed after that without looking changed. */
export function isSettled(
  { modifiedAtMs }: Pick<FileInfo, 'modifiedAtMs'>,
  lookedAtMs: number,
): boolean {
  return modifiedAtMs < lookedAtMs - TICK_MS
}
