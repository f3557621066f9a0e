// The judge of simulator, chaos and failing system calls: each of its checks is shown to notice
// what it is there for, for a judge that cannot find anything proves nothing.
import { standard } from 'pawl/rules'
import { type Held, openSqliteStore, type Store } from 'pawl/sqlite'
import { beforeEach, expect, it } from 'vitest'
import {
  judgeAcknowledged,
  judgeEffects,
  judgeKeys,
  judgeRows,
  judgeSteps,
  judgeStore,
  readStore,
  type Told,
} from '../../sim/checker.ts'

const ID = '00000000-0000-7000-9000-000000000001'
const OTHER = '00000000-0000-7000-9000-000000000002'
const fenceOf = ({ job }: Held) => ({ attempt: job.attempt, claim: job.execution?.claim ?? '' })

let store: Store
let held: Held

/** A store with one job, which is held and has done a step. */
beforeEach(async () => {
  store = await openSqliteStore({ path: ':memory:' })
  const command = { jobId: ID, type: 'order', queue: 'main' }
  await store.enqueue([{ lifecycle: standard, command, input: '{}' }])
  const [one] = await store.claim({ worker: 'w', limit: 1, leaseMs: 60_000, start: true })
  held = one as Held
  const step = { kind: 'step', fence: fenceOf(held), name: 'first', n: 1 } as const
  await store.settle([{ held, command: step, payload: '1' }])
  return () => store.close()
})

/** Commits the job with one effect, delivers it, and gives everything that is known of it. */
async function done(): Promise<Told[]> {
  await store.commit(held, (tx) => {
    tx.effect('mail', '{}')
    return '"done"'
  })
  const effects = await store.claimEffects({ limit: 1, leaseMs: 60_000 })
  await store.settleEffects(effects.map((effect) => ({ kind: 'delivered', effect })))
  return readStore(store)
}

const promisesOf = (found: readonly { promise: string; job: string }[]) =>
  found.map(({ promise, job }) => [promise, job])

it('a job that is neither ended nor parked has not come out', async () => {
  const found = await judgeStore(store)
  expect(promisesOf(found)).toEqual([['P15', ID]])
  expect(found[0]?.facts.map(({ trigger }) => trigger)).toEqual(['create', 'claim', 'step'])
  await done()
  expect(await judgeStore(store)).toEqual([])
})

it('a job whose effects were never delivered has not come out', async () => {
  await store.commit(held, (tx) => {
    tx.effect('mail', '{}')
    return '"done"'
  })
  expect(promisesOf(await judgeStore(store))).toEqual([['P15', ID]])
})

it('an acknowledged job that is gone is noticed, and one that nobody asked for', async () => {
  const told = await done()
  expect(judgeAcknowledged(told, [{ id: ID }], new Set([ID]))).toEqual([])
  const lost = judgeAcknowledged(told, [{ id: ID }, { id: OTHER }], new Set([ID, OTHER]))
  expect(promisesOf(lost)).toEqual([['P1', OTHER]])
  expect(promisesOf(judgeAcknowledged(told, [], new Set()))).toEqual([['P1', ID]])
})

it('two jobs for one key are noticed', () => {
  const [own, other] = [
    { id: ID, key: 'key' },
    { id: OTHER, key: 'key' },
  ]
  expect(judgeKeys([own, own, { id: OTHER, key: 'another' }, { id: OTHER }])).toEqual([])
  expect(promisesOf(judgeKeys([own, other]))).toEqual([['P12', OTHER]])
})

it('a row that is missing, twice there, of another attempt or of no job is noticed', async () => {
  const before = await readStore(store)
  const told = await done()
  const row = { job: ID, attempt: 1 }
  const writes = () => true
  expect(judgeRows(told, [row], writes)).toEqual([])
  expect(judgeRows(told, [], () => false)).toEqual([])
  for (const rows of [[], [row, row], [{ job: ID, attempt: 2 }]]) {
    expect(promisesOf(judgeRows(told, rows, writes))).toEqual([['P3', ID]])
  }
  expect(promisesOf(judgeRows(told, [row, { ...row, job: OTHER }], writes))).toEqual([
    ['P3', OTHER],
  ])
  // A row whose commit never happened.
  expect(promisesOf(judgeRows(before, [row], writes))).toEqual([['P3', ID]])
})

it('an effect that did not arrive is noticed, and one that nobody declared', async () => {
  const told = await done()
  const key = `${ID}/mail/1`
  expect(judgeEffects(told, new Set([key]), 'mail')).toEqual([])
  expect(promisesOf(judgeEffects(told, new Set(), 'mail'))).toEqual([['P10', ID]])
  const found = judgeEffects(told, new Set([key, `${ID}/mail/2`]), 'mail')
  expect(promisesOf(found)).toEqual([['P10', ID]])
})

it('a step that ran again after its result was remembered is noticed', async () => {
  const told = await done()
  const run = { job: ID, name: 'first', attempt: 1 }
  // The same attempt may have run it twice: the first time it failed.
  expect(judgeSteps(told, [run, run])).toEqual([])
  expect(judgeSteps(told, [{ ...run, name: 'second', attempt: 2 }])).toEqual([])
  expect(promisesOf(judgeSteps(told, [run, { ...run, attempt: 2 }]))).toEqual([['steps', ID]])
})
