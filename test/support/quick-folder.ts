// The temporary files of tests, in memory if the machine has room for them: a sync to a disk takes
// milliseconds, and both databases sync at each commit. Nothing is lost by it: what a sync promises
// is tested by recording the calls (chaos/power), not by the medium below them.
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MEMORY = '/dev/shm'
const ROOM_MIN_BYTES = 3 * 2 ** 30
const PREFIX = 'pawl-tests-'

/**
 * Makes temporary files of this process and of its children go to memory, and removes what killed
 * runs have left there. `PAWL_TEST_DISK=1`, or a TMPDIR of the caller, leaves them where they are.
 * Programs must not be kept there, because such a folder may forbid to execute them: for these
 * `PAWL_TEST_CACHE` names the folder that was used before.
 */
export function useQuickFolder(): void {
  const { PAWL_TEST_CACHE, PAWL_TEST_DISK, TMPDIR } = process.env
  if (PAWL_TEST_CACHE !== undefined || PAWL_TEST_DISK === '1' || TMPDIR !== undefined) return
  if (!hasRoom()) return
  removeAbandoned()
  // Numbers of processes are used again: the folder of a dead one must not become this one's.
  const folder = mkdtempSync(join(MEMORY, `${PREFIX}${process.pid}-`))
  // The server of the tests runs as another user if we are root.
  chmodSync(folder, 0o1777)
  process.env.PAWL_TEST_CACHE = tmpdir()
  process.env.TMPDIR = folder
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
}

function hasRoom(): boolean {
  if (process.platform !== 'linux' || !existsSync(MEMORY)) return false
  const { bavail, bsize } = statfsSync(MEMORY)
  return bavail * bsize >= ROOM_MIN_BYTES
}

function removeAbandoned(): void {
  for (const name of readdirSync(MEMORY).filter((name) => name.startsWith(PREFIX))) {
    if (existsSync(`/proc/${Number.parseInt(name.slice(PREFIX.length), 10)}`)) continue
    try {
      rmSync(join(MEMORY, name), { recursive: true, force: true })
    } catch {
      // It belongs to somebody else.
    }
  }
}
