// Two processes on one file, as two stores that take turns: what one does while the other is in the
// middle of something, and what becomes of times when their clocks differ.
import { join } from 'node:path'
import { type Fact, standard } from 'pawl/rules'
import { type Environment, openSqliteStore, type Store, systemEnvironment } from 'pawl/sqlite'
import { ManualClock } from 'pawl/testing'
import { expect, it, onTestFinished } from 'vitest'
import { freshFolder } from './folder.ts'
import { archivedLedgers, brokenPromises, rowsOf } from './inspect.ts'

const OPERATOR = { actor: 'operator', operator: 'ann', note: 'once more' } as const
const FIRST = '00000000-0000-7000-8000-000000000001'
const SECOND = '00000000-0000-7000-8000-000000000002'
const TERMINAL = { class: 'terminal', kind: 'terminal', message: 'never' } as const

/** A store with a clock of its own. */
async function open(path: string, clock: ManualClock): Promise<Store> {
  const environment: Environment = { ...systemEnvironment(), clock }
  const store = await openSqliteStore({ path, environment })
  onTestFinished(() => store.close())
  return store
}

async function enqueue(store: Store, ...ids: readonly string[]): Promise<void> {
  const items = ids.map((jobId) => ({
    lifecycle: standard,
    command: { jobId, type: 'order', queue: 'main' },
    input: '{}',
  }))
  await store.enqueue(items)
}

/** Claims whatever is ready and fails it for good. */
async function failAll(store: Store): Promise<number> {
  const held = await store.claim({ worker: 'w', limit: 100, leaseMs: 60_000, start: true })
  await store.settle(
    held.map((one) => {
      const fence = { attempt: one.job.attempt, claim: one.job.execution?.claim ?? '' }
      return { held: one, command: { kind: 'fail', fence, failure: TERMINAL } }
    }),
  )
  return held.length
}

it('what changed while it was being archived is not removed, or it is archived whole', async () => {
  const path = join(freshFolder(), 'store.db')
  const clock = new ManualClock()
  const [one, other] = [await open(path, clock), await open(path, clock)]
  await enqueue(one, FIRST)
  await failAll(one)
  clock.advance(1000)

  let lines = ''
  let facts: Fact[] = []
  await one.prune({
    endedBefore: clock.now() + 1,
    limit: 10,
    archive: async (text) => {
      lines += text
      await other.applyCommand([FIRST], { kind: 'redrive' }, OPERATOR)
      expect(await failAll(other)).toBe(1)
      facts = await other.facts(FIRST)
    },
  })
  const kept = await one.facts(FIRST)
  expect(kept.length > 0 ? kept : archivedLedgers(lines).get(FIRST)).toEqual(facts)
})

it('two who prune the same jobs leave records of what each of them removed', async () => {
  const path = join(freshFolder(), 'store.db')
  const clock = new ManualClock()
  const [one, other] = [await open(path, clock), await open(path, clock)]
  await enqueue(one, FIRST, SECOND)
  await failAll(one)
  const facts = [...(await one.facts(FIRST)), ...(await one.facts(SECOND))]
  clock.advance(1000)

  const endedBefore = clock.now()
  const removed = await one.prune({
    ...{ endedBefore, limit: 10 },
    archive: async () => {
      expect(await other.prune({ endedBefore, limit: 1 })).toBe(1)
    },
  })
  expect(removed).toBe(1)
  const records = rowsOf<{ jobs: number; facts: number; first_id: string; last_id: string }>(
    path,
    'SELECT jobs, facts, first_id, last_id FROM pawl_pruned ORDER BY number',
  )
  expect(records).toEqual([
    { jobs: 1, facts: facts.length / 2, first_id: FIRST, last_id: FIRST },
    { jobs: 1, facts: facts.length / 2, first_id: SECOND, last_id: SECOND },
  ])
  expect((await one.counts()).ended).toEqual({})
})

it('a process whose clock is behind claims no job before its time', async () => {
  const path = join(freshFolder(), 'store.db')
  const [ahead, behind] = [new ManualClock(), new ManualClock()]
  ahead.advance(5)
  const [one, other] = [await open(path, ahead), await open(path, behind)]
  await enqueue(one, FIRST)
  await failAll(other)
  expect(await brokenPromises(one)).toEqual([])
  behind.advance(5)
  await failAll(other)
  expect(await one.get(FIRST)).toMatchObject({ state: 'failed' })
  expect(await brokenPromises(one)).toEqual([])
})
