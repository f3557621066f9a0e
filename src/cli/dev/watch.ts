/**
 * Notices that source files have changed. It compares times and sizes again and again, because
 * events of file systems are missing on network mounts and in containers. Every module below the
 * folders is watched: a job file may import any of them.
 */
import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Timer, Timers } from '../../core/ports.ts'

/** No other JSON: jobs often write it. */
const SOURCE = /\.[cm]?[jt]sx?$|^pawl\.config\.json$/
const IGNORED = new Set(['node_modules', 'dist', 'build', 'coverage'])
const FILES_MAX = 5000
const LOOK_MS = 250
/** Looking takes at most about this part of one processor. */
const SHARE = 20

export interface Watch {
  stop(): void
}

/** Marks of files by their paths. */
type Marks = ReadonlyMap<string, string>

/**
 * Calls `onChange` after a change, when two looks in a row have found the same: an editor may write
 * several files.
 */
export function watchFiles(
  folders: () => readonly string[],
  files: () => readonly string[],
  timers: Timers,
  onChange: () => void,
): Watch {
  let known: Marks = lookAt(folders(), files())
  let before = known
  let timer: Timer
  const look = () => {
    const began = performance.now()
    const named = files()
    const found = lookAt(folders(), named)
    // A file outside of the folders is named when it has been loaded, so it has not changed.
    for (const path of named) {
      if (!known.has(path)) known = new Map([...known, [path, found.get(path) ?? '']])
    }
    if (!isSame(known, found) && isSame(before, found)) {
      known = found
      onChange()
    }
    before = found
    const took = performance.now() - began
    timer = timers.after(Math.max(LOOK_MS, took * SHARE), look)
  }
  timer = timers.after(LOOK_MS, look)
  return { stop: () => timer.cancel() }
}

export function isSame(one: Marks, other: Marks): boolean {
  return one.size === other.size && [...one].every(([path, mark]) => other.get(path) === mark)
}

/** Times and sizes of the first files. */
export function lookAt(folders: readonly string[], files: readonly string[]): Marks {
  const found = new Set(files)
  const left = [...new Set(folders)]
  while (left.length > 0 && found.size < FILES_MAX) {
    const folder = left.shift() as string
    for (const entry of entriesOf(folder)) {
      const path = join(folder, entry.name)
      if (entry.isDirectory() && !entry.name.startsWith('.') && !IGNORED.has(entry.name)) {
        left.push(path)
      } else if (entry.isFile() && SOURCE.test(entry.name)) found.add(path)
    }
  }
  return new Map([...found].map((path) => [path, markOf(path)]))
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}

function markOf(path: string): string {
  try {
    const { mtimeMs, size, ino } = lstatSync(path)
    return `${mtimeMs} ${size} ${ino}`
  } catch {
    return 'missing'
  }
}
