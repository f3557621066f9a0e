/**
 * The workload under strace: once to count the system calls that it makes on the files of its
 * database, then with a fault at one of them. Only calls on these files are seen, so that neither
 * Node nor stdout is touched.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Ended, runChild } from '../../test/processes/children.ts'
import type { Said } from './story.ts'

/** What the driver may call. Which of these it does is found out by tracing it. */
const CALLS = [
  ...['open', 'openat', 'pread64', 'read', 'pwrite64', 'write'],
  ...['fsync', 'fdatasync', 'ftruncate', 'rename', 'unlink'],
]

/** What can become of a call: its process dies at it, or it fails. */
const FATES: Readonly<Record<string, readonly string[]>> = {
  open: ['SIGKILL', 'EIO', 'ENOSPC', 'EINTR'],
  openat: ['SIGKILL', 'EIO', 'ENOSPC', 'EINTR'],
  pread64: ['EIO', 'EINTR'],
  read: ['EIO', 'EINTR'],
  pwrite64: ['SIGKILL', 'EIO', 'ENOSPC', 'EINTR'],
  write: ['SIGKILL', 'EIO', 'ENOSPC', 'EINTR'],
  // No EINTR: Linux does not give it to a sync of a file on a disk.
  fsync: ['SIGKILL', 'EIO', 'ENOSPC'],
  fdatasync: ['SIGKILL', 'EIO', 'ENOSPC'],
  ftruncate: ['SIGKILL', 'EIO', 'EINTR'],
  rename: ['SIGKILL', 'EIO', 'ENOSPC'],
  unlink: ['SIGKILL', 'EIO'],
}

/** The n-th call of a kind, and what becomes of it. */
export interface Point {
  readonly call: string
  readonly n: number
  readonly fate: string
}

/** A place with files of its own. */
export interface Place {
  readonly folder: string
  readonly path: string
  readonly archive: string
}

/** How the workload ended, and whether the fault really happened to it. */
export interface Told extends Ended<Said> {
  readonly hasHit: boolean
}

/** Lets strace stop a process at the calls that it looks for alone; it sends no signals then. */
const QUICKLY = '--seccomp-bpf'
const WORKLOAD = new URL('./workload.js', import.meta.url)

/** An empty place. */
export function freshPlace(folder: string): Place {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(join(folder, 'db'), { recursive: true })
  return { folder, path: join(folder, 'db', 'store.db'), archive: join(folder, 'archive.ndjson') }
}

/** How often the workload makes each call when nothing fails. */
export async function countCalls(place: Place): Promise<Map<string, number>> {
  const { code, stderr } = await traced(place, CALLS, [QUICKLY])
  if (code !== 0) throw new Error(`the workload failed without a fault: ${stderr}`)
  const counts = new Map<string, number>()
  for (const [, call] of traceOf(place).matchAll(/^\d+ +(\w+)\(/gm)) {
    counts.set(call as string, (counts.get(call as string) ?? 0) + 1)
  }
  return counts
}

/** Runs the workload with a fault. */
export async function strike(place: Place, { call, n, fate }: Point): Promise<Told> {
  const isSignal = fate.startsWith('SIG')
  const inject = `inject=${call}:${isSignal ? 'signal' : 'error'}=${fate}:when=${n}`
  const ended = await traced(place, [call], [...(isSignal ? [] : [QUICKLY]), '-e', inject])
  return { ...ended, hasHit: ended.signal === fate || traceOf(place).includes('(INJECTED)') }
}

/** Every point, or so many of them: each call and fate gets its share, spread over its calls. */
export function pointsOf(counts: ReadonlyMap<string, number>, max: number): Point[] {
  const pairs = [...counts].flatMap(([call, count]) =>
    (FATES[call] ?? []).map((fate) => ({ call, fate, count, share: 0 })),
  )
  for (let left = max; left > 0; ) {
    const open = pairs.filter(({ share, count }) => share < count).slice(0, left)
    if (open.length === 0) break
    for (const pair of open) pair.share++
    left -= open.length
  }
  return pairs.flatMap(({ call, fate, count, share }) =>
    Array.from({ length: share }, (_, i) => {
      const n = 1 + Math.floor(((i + 0.5) * count) / share)
      return { call, n, fate }
    }),
  )
}

function traced(place: Place, calls: readonly string[], more: readonly string[]) {
  const { path, archive } = place
  const files = ['', '-wal', '-shm', '-journal'].map((suffix) => path + suffix)
  const folder = join(place.folder, 'db')
  const command = ['strace', '-f', '-qq', '-o', join(place.folder, 'trace')]
  const filter = [...files, folder].flatMap((file) => ['-P', file])
  const line = [...command, '-e', `trace=${calls.join()}`, ...filter, ...more]
  return runChild<Said>(WORKLOAD, { path, archive }, line)
}

function traceOf({ folder }: Place): string {
  const path = join(folder, 'trace')
  return existsSync(path) ? readFileSync(path, 'latin1') : ''
}
