// Rows that are written together, by one statement or for several callers at once, are the rows
// that each would have got alone.
import type { Job } from 'pawl'
import { fold, LIFECYCLES, standard } from 'pawl/rules'
import { testEnvironment } from 'pawl/testing'
import { expect, it } from 'vitest'
import type { EnqueueItem, Held, Settlement } from '../../src/stores/contract/store.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { settled } from '../contract/store/check.ts'

const { ids } = testEnvironment()

type Fields = Partial<EnqueueItem['command']> & Pick<Partial<EnqueueItem>, 'lifecycle' | 'input'>

function itemOf({ lifecycle = standard, input = '1', ...command }: Fields = {}): EnqueueItem {
  const jobId = ids.next()
  return { lifecycle, input, command: { jobId, type: 'example', queue: 'main', ...command } }
}

const open = () => openSqliteStore({ path: ':memory:', environment: testEnvironment() })

// One more than a block of the largest size, two of the next, and three of the smallest.
const MANY = 123

it('jobs of many callers at one moment are each written with their own id and input', async () => {
  await using store = await open()
  const items = Array.from({ length: MANY }, (_, n) => itemOf({ input: `${n}` }))
  const answers = await Promise.all(items.map((item) => store.enqueue([item])))
  for (const [n, { command }] of items.entries()) {
    expect(answers[n]).toMatchObject([{ kind: 'created', job: { id: command.jobId } }])
    const job = await store.get(command.jobId)
    expect(answers[n]).toEqual([{ kind: 'created', job }])
    expect(fold(await store.facts(command.jobId))).toEqual(job)
    expect(await store.payloads(command.jobId)).toEqual({ input: `${n}` })
  }
})

it('jobs that differ in anything are each written as they are, in whatever order', async () => {
  await using store = await open()
  const start = store.now()
  const kinds: Fields[] = [
    {},
    { queue: 'other' },
    { type: 'other' },
    { priority: 7 },
    { runAt: start + 1000 },
    { runAt: start + 2000 },
    { hold: true },
    ...LIFECYCLES.map((lifecycle) => ({ lifecycle })),
    { tags: ['a'] },
    { key: 'k' },
    { limitKeys: [{ gate: 'shared/l' }] },
    { timeoutMs: 5 },
    { deadlineAt: start + 5 },
    { retryOf: ids.next() },
    { policy: standard.policy },
  ]
  // Enough to fill blocks: each kind among plain ones, and in a row of its own.
  const all = kinds.flatMap((kind) => [
    ...Array.from({ length: 24 }, (_, n) => (n % 2 === 0 ? kind : {})),
    ...Array<Fields>(12).fill(kind),
  ])
  const items = all.map((fields, n) => {
    return itemOf({ ...fields, input: `${n}`, ...(fields.key && { key: `k${n}` }) })
  })
  const answers = await store.enqueue(items)
  for (const [n, { command, lifecycle }] of items.entries()) {
    const job = await store.get(command.jobId)
    expect(job).toMatchObject({ type: command.type, queue: command.queue })
    expect(job).toMatchObject({ priority: command.priority ?? 0, lifecycle: lifecycle.name })
    expect(job?.runAt).toBe(command.hold ? null : (command.runAt ?? start))
    expect(answers[n]).toEqual({ kind: 'created', job })
    expect(fold(await store.facts(command.jobId))).toEqual(job)
    expect(await store.payloads(command.jobId)).toEqual({ input: `${n}` })
  }
})

it('callers of one moment are each named in the facts of their own jobs', async () => {
  await using store = await open()
  const calls = Array.from({ length: 40 }, (_, n) => {
    const name = `caller ${n % 3}`
    return { item: itemOf(), requester: { actor: 'client', metadata: { name } } as const }
  })
  await Promise.all(calls.map(({ item, requester }) => store.enqueue([item], { requester })))
  for (const { item, requester } of calls) {
    expect(await store.facts(item.command.jobId)).toMatchObject([{ metadata: requester.metadata }])
  }
})

it('an id that two callers give at one moment is one job, and hinders no other', async () => {
  await using store = await open()
  const items = Array.from({ length: MANY }, (_, n) => itemOf({ input: `${n}` }))
  const twice = { ...itemOf({ input: '"second"' }), command: (items[7] as EnqueueItem).command }
  const answers = await Promise.all(
    [...items.slice(0, 60), twice, ...items.slice(60)].map((item) => store.enqueue([item])),
  )
  expect(answers.flat().map(({ kind }) => kind)).toEqual(
    answers.map((_, n) => (n === 60 ? 'rejected' : 'created')),
  )
  expect(answers[60]).toMatchObject([{ error: { code: 'E_JOB_EXISTS' } }])
  for (const [n, { command }] of items.entries()) {
    expect(await store.payloads(command.jobId)).toEqual({ input: `${n}` })
  }
  expect((await store.counts()).lanes.ready).toBe(MANY)
})

it('a caller whose item cannot even be read hurts only itself', async () => {
  await using store = await open()
  const good = Array.from({ length: 20 }, () => itemOf())
  const bad = undefined as unknown as EnqueueItem
  const answers = await Promise.allSettled(
    [...good.slice(0, 10), bad, ...good.slice(10)].map((item) => store.enqueue([item])),
  )
  const failed = answers.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []))
  expect(failed).toEqual([10])
  expect((await store.counts()).lanes.ready).toBe(20)
})

it('reports of many kinds in one call each leave their own fact and result', async () => {
  await using store = await open()
  await store.enqueue(Array.from({ length: MANY }, () => itemOf()))
  const claim = { worker: 'w', limit: MANY, leaseMs: 60_000, start: true }
  const held = await store.claim(claim)
  const settlements = held.map(reportOf)
  const { answers } = await store.settle(settlements)
  for (const [n, answer] of answers.entries()) {
    const { held, command, payload } = settlements[n] as Settlement
    const { id } = held.job
    const facts = await store.facts(id)
    const job = settled((await store.get(id)) as Job)
    expect(answer).toMatchObject({ kind: 'done', fact: facts.at(-1) })
    expect(settled((answer as { job: Job }).job)).toEqual(job)
    expect(settled(fold(facts) as Job)).toEqual(job)
    expect(facts.at(-1)?.usage).toEqual('usage' in command ? command.usage : undefined)
    expect((await store.payloads(id))?.result).toBe(payload)
  }
})

/** Runs of successes, with others among them. */
function reportOf(held: Held, n: number): Settlement {
  const fence = { attempt: held.job.attempt, claim: held.job.execution?.claim ?? '' }
  if (n % 31 === 30) return { held, command: { kind: 'release', fence } }
  if (n % 13 === 12) return { held, command: { kind: 'cancel', fence } }
  const usage = { tokens: n }
  const withUsage = n % 7 === 6 || (n > 40 && n < 45)
  const command = { kind: 'commit', fence, ...(withUsage && { usage }) } as const
  return { held, command, payload: `{"n":${n}}` }
}
