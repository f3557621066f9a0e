// Some points of `npm run syscalls`: a system call of a process on a SQLite file fails, or the
// process dies at it; and the process of a run dies at one. PAWL_TEST_POINTS takes more of them.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { canRecord } from '../../chaos/power/record.ts'

const run = promisify(execFile)
const PROGRAM = '.build/programs/chaos/syscalls/main.js'
const points = Number(process.env.PAWL_TEST_POINTS ?? 36)
const timeout = 120_000 + points * 2000

const canTrace = canRecord()
if (!canTrace) {
  process.stderr.write('System calls are not tested: strace is missing, or may not trace here.\n')
}

describe.runIf(canTrace)('a SQLite file whose system calls fail', () => {
  it('keeps every promise, and every failure is typed or retried', { timeout }, async () => {
    const args = [PROGRAM, '--part', 'sqlite', '--points', String(points), '--json']
    const { stdout } = await run(process.execPath, args, { maxBuffer: 2 ** 28 })
    const summary = JSON.parse(stdout)
    expect(summary.violations).toEqual([])
    expect(summary.points).toBeGreaterThanOrEqual(points)
    // Faults of each kind were met, and some of them were heard of.
    const fates = Object.keys(summary.hits).map((hit) => hit.split(' ')[1])
    expect([...new Set(fates)].sort()).toEqual(['EINTR', 'EIO', 'ENOSPC', 'SIGKILL'])
    const { E_STORE_IO = 0, E_STORE_FULL = 0 } = summary.errors
    expect(E_STORE_IO + E_STORE_FULL).toBeGreaterThan(0)
  })
})

describe.runIf(canTrace)('a run in a folder whose process dies at a system call', () => {
  it('comes to the same end, and does no finished item twice', { timeout }, async () => {
    const count = String(Math.ceil(points / 2))
    const args = [PROGRAM, '--part', 'runs', '--points', count, '--json']
    const { stdout } = await run(process.execPath, args, { maxBuffer: 2 ** 28 })
    const { runs } = JSON.parse(stdout)
    expect(runs.violations).toEqual([])
    expect(runs.points).toBe(Number(count))
    // Deaths came in the middle of durable writes; see CALLS of run-points.ts for what is missing.
    for (const call of ['write', 'fsync']) {
      expect(runs.hits[call], call).toBeGreaterThan(0)
    }
  })
})
