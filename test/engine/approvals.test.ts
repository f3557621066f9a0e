// Approvals, tokens, signals together with jobs, by key and by filter, on both databases.
import { approval, defineJob, defineSignal, typed } from 'pawl'
import { createTestPawl, runJob } from 'pawl/testing'
import { describe, expect, expectTypeOf, it, onTestFinished } from 'vitest'
import type { PawlEvent } from '../../src/engine/watching/events.ts'
import { freshStoreDatabase } from '../support/postgres/databases.ts'

const STORES = [
  { name: 'SQLite', store: undefined },
  { name: 'PostgreSQL', store: freshStoreDatabase },
]

const refund = defineJob({
  name: 'refund',
  input: typed<{ order: string }>(),
  signals: [approval],
  run: async ({ waitForApproval }) => {
    const answer = await waitForApproval({ timeout: '7d' })
    expectTypeOf(answer.kind).toEqualTypeOf<'approved' | 'rejected' | 'timeout'>()
    return answer
  },
})
const tick = defineSignal({ name: 'tick', payload: typed<number>() })
const counter = defineJob({
  name: 'counter',
  signals: [tick],
  run: async ({ waitForSignal }) => {
    const answer = await waitForSignal(tick, { timeout: '1d' })
    return answer.kind === 'received' ? answer.payload : 'nothing'
  },
})

const ann = { name: 'ann', reason: 'checked the receipt' }
const ORDER = { order: 'o-1' }

describe.each(STORES)('on $name', { timeout: 60_000 }, ({ store }) => {
  async function open(more: object = {}) {
    const own = store === undefined ? {} : { store: await store() }
    const pawl = await createTestPawl({ jobs: [refund, counter], ...own, ...more })
    onTestFinished(() => pawl.close())
    return pawl
  }

  it('an approval names who decided, by the ledger and not by the payload', async () => {
    const t = await open()
    const { pawl } = t
    const asked = [await pawl.enqueue(refund, ORDER), await pawl.enqueue(refund, ORDER)] as const
    await t.drain()
    const found = await pawl.jobs.count({ waitsFor: 'approval' })
    expect(found).toBe(2)
    const [yes, no] = asked
    expect(await pawl.operator(ann).approve(yes.id)).toMatchObject({ done: 1 })
    await pawl.operator({ name: 'ben', reason: 'too expensive' }).reject(no.id)
    await t.drain()
    expect(await yes.result()).toMatchObject({
      output: { kind: 'approved', by: 'ann', note: 'checked the receipt' },
    })
    expect(await no.result()).toMatchObject({
      output: { kind: 'rejected', by: 'ben', note: 'too expensive' },
    })
    const facts = (await pawl.store.facts(yes.id)).filter(({ trigger }) => trigger === 'signal')
    expect(facts).toMatchObject([
      { actor: 'operator', operator: 'ann', note: 'checked the receipt' },
    ])
  })

  it('a sender cannot claim another name, and a note of its own replaces the reason', async () => {
    const t = await open()
    const { pawl } = t
    const handle = await pawl.enqueue(refund, ORDER)
    const forged = { approved: true, by: 'the queen', note: 'mine' }
    await handle.signal(approval, forged, { requester: { actor: 'client' } })
    await t.drain()
    expect(await handle.result()).toMatchObject({
      output: { kind: 'approved', by: 'client', note: 'mine' },
    })
  })

  it('nobody answers: the wait times out, and a late decision is refused', async () => {
    const t = await open()
    const { pawl } = t
    const handle = await pawl.enqueue(refund, ORDER)
    await t.drain()
    await t.advance('7d')
    await t.drain()
    expect(await handle.result()).toMatchObject({ output: { kind: 'timeout' } })
    await expect(pawl.operator(ann).reject(handle.id)).rejects.toMatchObject({
      code: 'E_JOB_NOT_ASKING',
    })
  })

  it('the first decision about a wait counts, and no later wait gets another', async () => {
    const twice = defineJob({
      name: 'twice',
      signals: [approval],
      run: async ({ waitForApproval }) => {
        const first = await waitForApproval()
        const second = await waitForApproval({ timeout: '1h' })
        return [first.kind, second.kind]
      },
    })
    const t = await open({ jobs: [twice] })
    const { pawl } = t
    const handle = await pawl.enqueue(twice, null)
    await t.drain()
    const read = await handle.get()
    const operator = pawl.operator(ann)
    const both = await Promise.allSettled([operator.approve(read.id), operator.reject(read.id)])
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    await t.drain()
    expect((await handle.get()).state).toBe('waiting')
    await t.advance('1h')
    await t.drain()
    const { output } = (await handle.result()) as { output: string[] }
    expect(output[1]).toBe('timeout')
  })

  it('a filter decides about many jobs, and refuses those that do not ask', async () => {
    const t = await open()
    const { pawl } = t
    for (let i = 0; i < 3; i++) await pawl.enqueue(refund, ORDER)
    const other = await pawl.enqueue(counter, null)
    await t.drain()
    const operator = pawl.operator(ann)
    const preview = await operator.approve({ filter: { waitsFor: 'approval' } }, { dryRun: true })
    expect(preview).toMatchObject({ matched: 3, done: 3 })
    const { done, refused, refusals } = await operator.reject({ all: true })
    expect([done, refused]).toEqual([3, 1])
    expect(refusals).toMatchObject([{ id: other.id, code: 'E_JOB_NOT_ASKING' }])
  })

  it('a signal is sent together with its job, or to the job that has the key', async () => {
    const t = await open()
    const { pawl } = t
    const options = { key: 'c-1', signals: [tick.of(7, { key: 'first' })] }
    const handle = await pawl.enqueue(counter, null, options)
    const again = await pawl.enqueue(counter, null, options)
    expect([again.created, again.id]).toEqual([false, handle.id])
    const { signals } = await pawl.store.waits.history(handle.id)
    expect(signals).toMatchObject([{ name: 'tick', key: 'first', payload: '7' }])
    await t.drain()
    expect(await handle.result()).toMatchObject({ output: 7 })
    expect((await handle.get()).attempt).toBe(1)
    // The job has ended: the whole call is refused.
    const late = { key: 'c-1', signals: [tick.of(8)] }
    await expect(pawl.enqueue(counter, null, late)).rejects.toMatchObject({ code: 'E_JOB_ENDED' })
  })

  it('a transaction that is rolled back leaves neither the job nor its signal', async () => {
    const t = await open()
    const { pawl } = t
    const failed = pawl.transaction(async (tx) => {
      await pawl.enqueue(counter, null, { tx, signals: [tick.of(1)] })
      throw new Error('no')
    })
    await expect(failed).rejects.toThrow('no')
    expect(await pawl.jobs.count()).toBe(0)
    const kept = await pawl.transaction((tx) =>
      pawl.enqueueMany(counter, [{ input: null, signals: [tick.of(1), tick.of(2)] }], { tx }),
    )
    const { signals } = await pawl.store.waits.history(kept[0]?.id ?? '')
    expect(signals.map(({ payload }) => payload)).toEqual(['1', '2'])
  })

  it('a signal finds its job by type and key', async () => {
    const t = await open()
    const { pawl } = t
    const handle = await pawl.enqueue(counter, null, { key: 'c-9' })
    await t.drain()
    expect(await pawl.signal(counter, { key: 'c-9' }, tick, 3)).toMatchObject({ kind: 'sent' })
    await t.drain()
    expect(await handle.result()).toMatchObject({ output: 3 })
    await expect(pawl.signal(counter, { key: 'none' }, tick, 3)).rejects.toMatchObject({
      code: 'E_JOB_NOT_FOUND',
    })
  })

  it('signalMany sends to a bounded number of jobs, once per key', async () => {
    const t = await open()
    const { pawl } = t
    const handles = []
    for (let i = 0; i < 5; i++) handles.push(await pawl.enqueue(counter, null))
    await t.drain()
    const operator = pawl.operator(ann)
    const filter = { waitsFor: 'tick' }
    const key = { key: 'all' }
    expect(await operator.signalMany({ filter, limit: 2 }, tick, 1, key)).toMatchObject({
      done: 2,
      more: true,
    })
    expect(
      await operator.signalMany({ ids: handles.map(({ id }) => id) }, tick, 1, key),
    ).toMatchObject({ done: 3, same: 2, more: false })
    await t.drain()
    for (const handle of handles) expect(await handle.result()).toMatchObject({ output: 1 })
  })

  it('unread signals are reported when the job has ended', async () => {
    const events: PawlEvent[] = []
    const counts: unknown[] = []
    const metrics = {
      count: (...given: unknown[]) => counts.push(given),
      observe: () => {},
      gauge: () => {},
    }
    const onEvent = (event: PawlEvent) => events.push(event)
    const t = await open({ onEvent, metrics })
    const { pawl } = t
    const handle = await pawl.enqueue(counter, null)
    for (const n of [1, 2, 3]) await handle.signal(tick, n, { key: `k${n}` })
    await t.drain()
    await handle.result()
    await expect
      .poll(() => events.filter(({ type }) => type === 'unread'))
      .toMatchObject([{ job: { id: handle.id }, signals: [{ key: 'k2' }, { key: 'k3' }] }])
    expect(counts.filter((one) => (one as string[])[0] === 'pawl_signals_unread_total')).toEqual([
      ['pawl_signals_unread_total', { queue: 'default', kind: 'counter' }, 2],
    ])
  })
})

it('a signal that the type does not declare compiles nowhere, and is refused', async () => {
  const other = defineSignal({ name: 'other', payload: typed<number>() })
  const careless = defineJob({
    name: 'careless',
    signals: [tick],
    run: async ({ waitForSignal }) => {
      // @ts-expect-error: the type declares tick alone
      await waitForSignal(other)
    },
  })
  expect(await runJob(careless, null)).toMatchObject({
    kind: 'failed',
    failure: { code: 'E_SIGNAL_UNDECLARED' },
  })
  const silent = defineJob({ name: 'silent', run: ({ waitForApproval }) => waitForApproval() })
  expect(await runJob(silent, null)).toMatchObject({ failure: { code: 'E_SIGNAL_UNDECLARED' } })
  const t = await createTestPawl({ jobs: [counter] })
  onTestFinished(() => t.close())
  const { pawl } = t
  const handle = await pawl.enqueue(counter, null)
  // @ts-expect-error: neither does a handle
  const send = () => handle.signal(other, 1)
  // @ts-expect-error: nor an enqueue
  const start = () => pawl.enqueue(counter, null, { signals: [other.of(1)] })
  // @ts-expect-error: nor a call by key
  const find = () => pawl.signal(counter, { key: 'k' }, other, 1)
  // @ts-expect-error: a wrong payload neither
  const wrong = () => handle.signal(tick, 'one')
  for (const call of [start, find]) {
    await expect(call()).rejects.toMatchObject({ code: 'E_SIGNAL_UNDECLARED' })
  }
  expectTypeOf(send).toBeFunction()
  expectTypeOf(wrong).toBeFunction()
  expect(() => defineJob({ name: 'double', signals: [tick, tick] })).toThrow('twice')
})

it('the form of a signal comes from its schema, if the library offers one', () => {
  const jsonSchema = { type: 'object', properties: { n: { type: 'number' } } }
  const standard = {
    version: 1,
    vendor: 'test',
    validate: (value: unknown) => ({ value: value as { n: number } }),
    jsonSchema: { input: () => jsonSchema, output: () => jsonSchema },
  } as const
  const derived = defineSignal({ name: 'derived', payload: { '~standard': standard } })
  expect(derived.jsonSchema).toEqual(jsonSchema)
  expect(tick.jsonSchema).toBeUndefined()
  expect(approval.jsonSchema).toMatchObject({ required: ['approved'] })
})
