/**
 * Facts that a store writes without reading the job first are those that the decider decides on the
 * stored job. Claims: `claimFactCases` in `claim.ts`.
 */
import assert from 'node:assert/strict'
import { decide } from '../../../src/core/job/decide.ts'
import { LIFECYCLES } from '../../../src/core/lifecycles/index.ts'
import type { Lifecycle } from '../../../src/core/lifecycles/lifecycle.ts'
import { type Bench, type Cases, done, fenceOf, LEASE_MS, type Report } from './bench.ts'

const REPORTS: Readonly<Record<string, Report>> = {
  success: { kind: 'commit' },
  'success with its usage': { kind: 'commit', usage: { tokens: 7 } },
  step: { kind: 'step', name: 'fetch', n: 1 },
}

/** Successes and results of steps, with the lease of the claim and with one that was renewed. */
export const fastPathCases: Cases = Object.fromEntries(
  LIFECYCLES.flatMap((lifecycle) =>
    Object.entries(REPORTS).flatMap(([name, report]) =>
      [false, true].map((renewed) => [
        `${lifecycle.name}: ${renewed ? 'a renewed' : 'a'} ${name} is what the decider decides`,
        (bench: Bench) => compareReport(bench, lifecycle, report, renewed),
      ]),
    ),
  ),
)

async function compareReport(
  bench: Bench,
  lifecycle: Lifecycle,
  report: Report,
  renewed: boolean,
): Promise<void> {
  const held = await bench.hold({ lifecycle }, { start: true })
  const { id } = held.job
  await bench.advance(11)
  if (renewed) await bench.store.heartbeat([{ ref: held.ref, fence: fenceOf(held) }], LEASE_MS)
  const before = await bench.job(id)
  const command = { ...report, fence: fenceOf(held) }
  const context = { now: bench.store.now(), random: 0, actor: 'worker' } as const
  const decision = decide(lifecycle, before, command as never, context)
  assert.equal(decision.kind, 'fact')
  done(await bench.settle(held, report, '1'))
  assert.deepEqual(await bench.lastFact(id), (decision as { fact: unknown }).fact)
}
