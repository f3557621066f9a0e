// Which of the shared servers a process uses. Processes that run test files at the same time must
// have one each, and the numbers that vitest gives them do not tell them apart: after a change of
// project two processes can have the same VITEST_POOL_ID. So a process claims a server by a file.
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const TRIES = 100
const TRY_MS = 50

/**
 * The number of a server that no other living process uses. It is the same for as long as the
 * process lives. A process that has run its file may still be ending, so this waits up to five
 * seconds, and then shares the last server.
 */
export function claimPlace(folder: string, count: number): number {
  const paths = Array.from({ length: count }, (_, i) => join(folder, String(i)))
  const own = paths.findIndex((path) => ownerOf(path) === process.pid)
  if (own >= 0) return own
  for (let i = 0; i < TRIES; i++) {
    const place = paths.findIndex(claim)
    if (place >= 0) return place
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TRY_MS)
  }
  return count - 1
}

function claim(path: string): boolean {
  if (create(path)) return true
  const owner = ownerOf(path)
  if (owner === undefined || isAlive(owner)) return false
  // Only one process can move the claim of a dead one away.
  try {
    renameSync(path, `${path}.${owner}`)
  } catch {
    return false
  }
  return create(path)
}

function ownerOf(path: string): number | undefined {
  try {
    return Number(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}

function create(path: string): boolean {
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' })
    return true
  } catch {
    return false
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
