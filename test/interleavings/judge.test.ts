// The judge itself: what a store must not say or do is noticed. A job is enqueued, claimed and
// settled as it should be, and then one thing that a caller was told is changed.
import { standard } from 'pawl/rules'
import { testEnvironment } from 'pawl/testing'
import { expect, it, onTestFinished } from 'vitest'
import { StaleFence } from '../../src/core/errors.ts'
import type { Answer, Held, Store } from '../../src/stores/contract/store.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { fenceOf, settlement } from '../contract/store/bench.ts'
import type { Evidence } from './case.ts'
import { judge } from './judge.ts'
import { LEASE_MS } from './scenes.ts'
import type { Telling } from './witness.ts'

interface Played {
  readonly store: Store
  readonly held: Held
  readonly id: string
  /** What the holder was told of its failure for good. */
  readonly failed: Extract<Answer, { kind: 'done' }>
  /** The evidence, with these tellings, each of the whole time. */
  readonly with: (...tellings: Telling[]) => Evidence
  readonly honest: readonly Telling[]
}

async function played(): Promise<Played> {
  const environment = testEnvironment()
  const store = await openSqliteStore({ path: ':memory:', environment })
  onTestFinished(() => store[Symbol.asyncDispose]())
  const id = environment.ids.next()
  const item = { jobId: id, type: 'example', queue: 'main' }
  await store.enqueue([{ lifecycle: standard, input: '{}', command: item }])
  const start = { time: store.now(), seqs: new Map([[id, 1]]) }
  const request = { worker: 'caller 1', limit: 1, leaseMs: LEASE_MS, start: true }
  const [held] = (await store.claim(request)) as [Held]
  const failure = { class: 'terminal', kind: 'terminal', message: 'boom' } as const
  const settled = settlement(held, { kind: 'fail', failure })
  const { answers } = await store.settle([settled])
  const failed = answers[0] as Played['failed']
  const { command } = settled
  const scene = { lifecycle: standard, jobs: [id], holds: [], effects: [], delivered: [] }
  const to = { time: store.now(), seqs: new Map([[id, 3]]) }
  return {
    ...{ store, held, id, failed },
    honest: [
      { kind: 'claimed', worker: 'caller 1', held: [held] },
      { kind: 'answered', jobId: id, command, requester: { actor: 'worker' }, answer: failed },
    ],
    with: (...tellings) => ({
      ...{ scene, start, reader: store, runs: [], skipsLocked: false, times: [start.time] },
      told: tellings.map((telling, i) => {
        return { by: `call ${i}`, from: start, to, began: 2 * i, ended: 2 * i + 1, telling }
      }),
    }),
  }
}

it('nothing is said against callers that were told the truth', async () => {
  const { honest, with: evidence } = await played()
  expect(await judge(evidence(...honest))).toEqual([])
})

it('a fact that was reported to no caller is noticed', async () => {
  const { honest, with: evidence } = await played()
  const complaints = await judge(evidence(...honest.slice(0, 1)))
  expect(complaints).toEqual([expect.stringMatching(/fact 3 .* was written by nobody/)])
})

it('a fact that was reported to two callers is noticed', async () => {
  const { honest, with: evidence } = await played()
  const complaints = await judge(evidence(...honest, ...honest.slice(1)))
  expect(complaints).toContainEqual(expect.stringMatching(/both wrote fact/))
})

it('a fact that the ledger does not have is noticed', async () => {
  const { honest, failed, with: evidence } = await played()
  const [claimed, answered] = honest as [Telling, Extract<Telling, { kind: 'answered' }>]
  const answer = { ...failed, fact: { ...failed.fact, reason: 'another' } }
  const complaints = await judge(evidence(claimed, { ...answered, answer }))
  expect(complaints).toContainEqual(expect.stringMatching(/which is not in the ledger/))
})

it('a holder that was called stale before anybody was in its way is noticed', async () => {
  const { honest, held, id, with: evidence } = await played()
  const { told, ...rest } = evidence(...honest, {
    kind: 'answered',
    jobId: id,
    command: { kind: 'release', fence: fenceOf(held) },
    requester: { actor: 'worker' },
    answer: { kind: 'rejected', error: new StaleFence(id, 'claim') },
  })
  const heldAlone = { time: held.job.updatedAt, seqs: new Map([[id, 2]]) }
  const late = told.map((one, i) => (i === 2 ? { ...one, from: heldAlone, to: heldAlone } : one))
  const complaints = await judge({ ...rest, told: late })
  expect(complaints).toEqual([expect.stringMatching(/nothing explains E_STALE_FENCE/)])
})

it('a fact under the fence of somebody else is noticed', async () => {
  const { honest, held, with: evidence } = await played()
  const [claimed, answered] = honest as [Telling, Extract<Telling, { kind: 'answered' }>]
  const fence = { ...fenceOf(held), claim: held.job.id }
  const command = { ...answered.command, fence } as typeof answered.command
  const complaints = await judge(evidence(claimed, { ...answered, command }))
  expect(complaints).toContainEqual(expect.stringMatching(/moved .* without holding it/))
})

it('a lease that is renewed after its end is noticed', async () => {
  const { honest, held, id, with: evidence } = await played()
  const beat = { ref: held.ref, fence: fenceOf(held) }
  const kept = { kind: 'beaten', jobId: id, beat, leaseMs: LEASE_MS, lost: false } as const
  const { told, ...rest } = evidence(...honest, kept)
  const expired = { time: held.job.updatedAt + LEASE_MS, seqs: new Map([[id, 2]]) }
  const late = told.map((one, i) => (i === 2 ? { ...one, from: expired, to: expired } : one))
  const times = [...rest.times, expired.time]
  expect(await judge({ ...rest, times, told: late })).toEqual([
    expect.stringMatching(/kept .* without cause/),
  ])
})

it('a claim that was not given a job which was ready all the time is noticed', async () => {
  const { honest, id, with: evidence } = await played()
  const { told, ...rest } = evidence(...honest, { kind: 'claimed', worker: 'caller 2', held: [] })
  const ready = { time: rest.start.time, seqs: new Map([[id, 1]]) }
  const early = told.map((one, i) => (i === 2 ? { ...one, from: ready, to: ready } : one))
  expect(await judge({ ...rest, told: early })).toEqual([
    expect.stringMatching(/was not given .* ready all the time/),
  ])
})

it('a row that the function of a refused commit left behind is noticed', async () => {
  const { honest, id, with: evidence } = await played()
  const runs = [{ job: id, claim: 'rolled back' }]
  expect(await judge({ ...evidence(...honest), runs })).toEqual([
    expect.stringMatching(/P3: functions left 1 rows for 0 commits/),
  ])
})

it('a job that is gone although nobody removed it is noticed', async () => {
  const { store, honest, with: evidence } = await played()
  await store.prune({ endedBefore: store.now() + 1, limit: 1 })
  const complaints = await judge(evidence(...honest))
  expect(complaints).toContainEqual(expect.stringMatching(/P1: .* gone without a trace/))
})

it('a retry of an effect that left no fact is noticed', async () => {
  const { honest, id, with: evidence } = await played()
  const retried = { kind: 'retried', key: `${id}/mail/1`, ok: true } as const
  expect(await judge(evidence(...honest, retried))).toEqual(['0 facts for 1 retries'])
})
