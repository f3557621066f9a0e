// Some points of `npm run syscalls`: a system call of a process on a SQLite file fails, or the
// process dies at it. PAWL_TEST_POINTS takes more of them.
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
    const args = [PROGRAM, '--points', String(points), '--json']
    const { stdout } = await run(process.execPath, args, { maxBuffer: 2 ** 28 })
    const summary = JSON.parse(stdout)
    expect(summary.violations).toEqual([])
    expect(summary.points).toBeGreaterThanOrEqual(points)
    // Faults of each kind were met, and some of them were heard of.
    const fates = Object.keys(summary.hits).map((hit) => hit.split(' ')[1])
    expect([...new Set(fates)].sort()).toEqual(['EINTR', 'EIO', 'ENOSPC', 'SIGKILL'])
    expect(summary.errors.E_STORE_FAILED).toBeGreaterThan(0)
  })
})
