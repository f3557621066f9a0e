// A short run of `npm run chaos`, as its users do it: processes on both stores, every kind of fault
// at least once. PAWL_TEST_SECONDS makes it longer, PAWL_TEST_SEED different.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { testSeed as seed } from '../support/seed.ts'

const run = promisify(execFile)
const PROGRAM = '.build/programs/chaos/main.js'
const seconds = Number(process.env.PAWL_TEST_SECONDS ?? 1)
const timeout = (seconds + 300) * 1000

interface Summary {
  readonly stores: Record<string, Record<string, unknown> & { readonly violations: unknown[] }>
}

const PROCESSES = ['kills', 'clientKills', 'operatorKills', 'stops', 'terms']
const SERVER = ['postmaster', 'backends']
const NETWORK = ['resets', 'halfOpen', 'partition', 'latency', 'lostReplies']

it('processes that are killed, stopped and cut off keep every promise', { timeout }, async () => {
  const args = [PROGRAM, '--seconds', String(seconds), '--seed', String(seed), '--json']
  // With violations it exits with 1, and what it printed on stderr is shown.
  const { stdout } = await run(process.execPath, args, { maxBuffer: 2 ** 28 })
  const { sqlite, postgres } = (JSON.parse(stdout) as Summary).stores
  expect([sqlite?.violations, postgres?.violations]).toEqual([[], []])
  for (const kind of [...PROCESSES, 'busy']) expect(sqlite?.[kind], kind).toBeGreaterThan(0)
  for (const kind of [...PROCESSES, ...SERVER, ...NETWORK]) {
    expect(postgres?.[kind], kind).toBeGreaterThan(0)
  }
  for (const store of [sqlite, postgres]) {
    expect(store?.committed).toBeGreaterThan(50)
    expect(store?.acknowledged).toBeGreaterThanOrEqual(store?.committed as number)
  }
})
