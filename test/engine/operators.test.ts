// Operator verbs: one job, several or a filter, on both stores, by the rules of each lifecycle.

import { type TestEnvironment, testEnvironment } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { document } from '../../src/core/lifecycles/document.ts'
import { hardened } from '../../src/core/lifecycles/hardened.ts'
import { LIFECYCLES } from '../../src/core/lifecycles/index.ts'
import { leased } from '../../src/core/lifecycles/leased.ts'
import { defineLifecycle, type Lifecycle } from '../../src/core/lifecycles/lifecycle.ts'
import { standard } from '../../src/core/lifecycles/standard.ts'
import { task } from '../../src/core/lifecycles/task.ts'
import { createPawl } from '../../src/engine/create-pawl.ts'
import type { Operator } from '../../src/engine/operators/operators.ts'
import type { OperatorReport } from '../../src/engine/operators/report.ts'
import type { PawlEvent } from '../../src/engine/watching/events.ts'
import type { Store } from '../../src/stores/contract/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import {
  type Bench,
  CLIENT,
  done,
  fenceOf,
  policyWith,
  Bench as StoreBench,
} from '../contract/store/bench.ts'
import { checkStore } from '../contract/store/check.ts'
import { freshSchema, sharedPostgres } from '../support/postgres/databases.ts'

const ADA = { name: 'ada', reason: 'INC-7' }
/** A lifecycle of the user's own, which only some processes know. */
const own = defineLifecycle({
  name: 'own',
  version: 1,
  initial: 'todo',
  states: {
    todo: { role: 'ready', meaning: 'To be done.' },
    doing: { role: 'held', meaning: 'Being done.' },
    good: { role: 'succeeded', meaning: 'Done.' },
    bad: { role: 'failed', meaning: 'Given up.' },
  },
  edges: [
    { from: 'todo', to: 'doing', on: ['claim', 'cancel'] },
    { from: 'doing', to: 'good', on: ['succeed'] },
    { from: 'doing', to: 'todo', on: ['expire', 'release'] },
    { from: 'doing', to: 'bad', on: ['fail', 'give-up', 'reject', 'cancel'] },
  ],
})

const stores: Record<string, (environment: TestEnvironment) => Promise<Store>> = {
  SQLite: (environment) =>
    openSqliteStore({ path: ':memory:', environment, lifecycles: [...LIFECYCLES, own] }),
  PostgreSQL: (environment) => {
    const url = sharedPostgres()
    return openPostgresStore({
      connectionString: url,
      schema: freshSchema(url),
      clock: 'environment',
      connections: 2,
      lifecycles: [...LIFECYCLES, own],
      environment,
    })
  },
}

describe.each(Object.entries(stores))('an operator on %s', (_name, openStore) => {
  /** A store with one operator at it; `wrap` may put something between the two. */
  async function open(wrap = (store: Store) => store): Promise<[Bench, Operator]> {
    const environment = testEnvironment()
    const store = await openStore(environment)
    onTestFinished(async () => {
      await checkKnown(store)
      await store.close()
    })
    const advance = (ms: number) => environment.advance(ms)
    const bench = new StoreBench(environment, { store, advance, ownTable: NO_TABLE })
    const pawl = await createPawl({ store: wrap(store), environment })
    return [bench, pawl.operator(ADA)]
  }

  it('must have a name and a reason', async () => {
    const [{ store }] = await open()
    const pawl = await createPawl({ store })
    for (const name of ['', ' ', 'a\nb', 'x'.repeat(256), undefined as unknown as string]) {
      expect(() => pawl.operator({ ...ADA, name })).toThrow('"name"')
    }
    for (const reason of ['', '\n', 'x'.repeat(2001), undefined as unknown as string]) {
      expect(() => pawl.operator({ ...ADA, reason })).toThrow('"reason"')
    }
  })

  it('leaves name and reason in the ledger of whatever is changed', async () => {
    const [bench, ada] = await open()
    const { id } = await bench.enqueue({ hold: true })
    const later = new Date(bench.store.now() + 60_000)
    const acts: [string, () => Promise<OperatorReport>, string][] = [
      ['submit', () => ada.submit(id), 'queued'],
      ['prioritise', () => ada.prioritise(id, 3), 'queued'],
      ['reschedule', () => ada.reschedule(id, later), 'scheduled'],
      ['run-now', () => ada.retry(id), 'queued'],
      ['park', () => ada.quarantine(id), 'quarantined'],
      ['redrive', () => ada.redrive(id), 'queued'],
      ['force', () => ada.force(id, 'quarantined'), 'quarantined'],
      ['discard', () => ada.discard(id), 'failed'],
      ['redrive', () => ada.retry(id), 'queued'],
      ['cancel', () => ada.cancel(id), 'cancelled'],
    ]
    for (const [trigger, act, state] of acts) {
      expect(await act(), trigger).toMatchObject({ matched: 1, done: 1, refused: 0 })
      expect(await bench.lastFact(id), trigger).toMatchObject({
        ...{ trigger, to: state, actor: 'operator', operator: 'ada', note: 'INC-7' },
      })
    }
  })

  it('runs what waits now, redrives what is parked or failed, copies what is final', async () => {
    const [bench, ada] = await open()
    const runAt = bench.store.now() + 60_000
    const states: [Lifecycle, string, () => Promise<string>, string][] = [
      [standard, 'scheduled', async () => (await bench.enqueue({ runAt })).id, 'queued'],
      [standard, 'retrying', () => fail(bench, standard), 'queued'],
      [standard, 'failed', () => fail(bench, standard, 'terminal'), 'queued'],
      [standard, 'quarantined', () => fail(bench, standard, 'invalid_input'), 'queued'],
      [standard, 'cancelled', () => cancel(bench, standard), 'copy'],
      [hardened, 'failed', () => fail(bench, hardened), 'pending'],
      [hardened, 'quarantined', () => fail(bench, hardened, 'terminal'), 'pending'],
      [leased, 'FAILED', () => fail(bench, leased, 'terminal'), 'copy'],
      [document, 'FAILED', () => fail(bench, document, 'terminal'), 'copy'],
      [document, 'RETRYING', () => fail(bench, document), 'E_UNSUPPORTED'],
      [task, 'error', () => fail(bench, task), 'pending'],
      [own, 'bad', () => fail(bench, own, 'terminal'), 'E_LIFECYCLE_UNKNOWN'],
    ]
    for (const [lifecycle, state, make, expected] of states) {
      const id = await make()
      expect((await bench.job(id)).state).toBe(state)
      const { done, refusals, copies } = await ada.retry({ ids: [id] })
      const became = (await bench.job(id)).state
      const seen = refusals[0]?.code ?? (copies.length > 0 ? 'copy' : became)
      expect([lifecycle.name, state, seen]).toEqual([lifecycle.name, state, expected])
      expect(done).toBe(expected.startsWith('E_') ? 0 : 1)
      if (expected === 'copy') expect(became).toBe(state)
    }
  })

  it('says what to do where a job cannot be retried', async () => {
    const [bench, ada] = await open()
    const onHold = await bench.enqueue({ hold: true })
    const running = await bench.hold()
    const succeeded = await bench.hold()
    await bench.store.commit(succeeded, () => '1')
    const ready = await bench.enqueue()
    const ids = [onHold.id, running.job.id, succeeded.job.id, ready.id, 'nobody']
    const report = await ada.retry({ ids: [...ids, ...ids] })
    expect(report).toMatchObject({ matched: 5, done: 0, same: 1, refused: 4 })
    expect(Object.fromEntries(report.refusals.map(({ id, code }) => [id, code]))).toEqual({
      [onHold.id]: 'E_NOT_DUE',
      [running.job.id]: 'E_JOB_RUNNING',
      [succeeded.job.id]: 'E_COMMITTED',
      nobody: 'E_JOB_NOT_FOUND',
    })
    const redriven = ada.redrive(await fail(bench, leased, 'terminal'))
    await expect(redriven).rejects.toMatchObject({
      code: 'E_UNSUPPORTED',
      hint: expect.stringMatching(/copy/),
    })
  })

  it('makes one copy of a final job, with what it had, however often it is retried', async () => {
    const [bench, ada] = await open()
    const fields = { tags: ['red'], priority: 4, key: 'k', timeoutMs: 500, queue: 'own' }
    const deadlineAt = bench.store.now() + 1_000_000
    const id = await fail(bench, leased, 'terminal', { ...fields, deadlineAt, input: '{"a":1}' })
    const [copy] = (await ada.retry(id)).copies
    expect(await ada.retry(id)).toMatchObject({ done: 0, same: 1, copies: [copy] })
    expect(await bench.ids()).toHaveLength(2)
    const made = await bench.job(copy?.id ?? '')
    expect(made).toMatchObject({
      ...{ retryOf: id, type: 'example', lifecycle: 'leased', deadlineAt, state: 'PENDING' },
      ...{ ...fields, key: null },
    })
    expect(await bench.store.payloads(made.id)).toEqual({ input: '{"a":1}' })
    expect(await bench.lastFact(made.id)).toMatchObject({ operator: 'ada', note: 'INC-7' })
    const [held] = await bench.claim({ queues: ['own'] })
    expect(held?.job.id).toBe(made.id)
  })

  it('copies ended jobs only, anew each time, and without a deadline that has passed', async () => {
    const [bench, ada] = await open()
    const running = await bench.hold()
    await expect(ada.copy(running.job.id)).rejects.toMatchObject({ code: 'E_JOB_NOT_ENDED' })
    const succeeded = await bench.hold({ deadlineAt: bench.store.now() + 10 })
    await bench.store.commit(succeeded, () => '1')
    await bench.advance(10)
    const { id } = succeeded.job
    const copies = [...(await ada.copy(id)).copies, ...(await ada.copy(id)).copies]
    expect(new Set(copies.map((copy) => copy.id)).size).toBe(2)
    for (const copy of copies) {
      expect(await bench.job(copy.id)).toMatchObject({ retryOf: id, deadlineAt: null })
    }
  })

  it('approves the recovery of a stalled job, and of no other', async () => {
    const [bench, ada] = await open()
    const stalled = await bench.hold({ policy: policyWith({ recovery: 'operator' }) })
    await bench.expire()
    expect(await bench.job(stalled.job.id)).toMatchObject({ state: 'running', stalled: true })
    await expect(ada.retry(stalled.job.id)).rejects.toMatchObject({
      hint: expect.stringMatching(/approve/),
    })
    const [live, ready] = [await bench.hold(), await bench.enqueue()]
    const report = await ada.approve({ ids: [stalled.job.id, live.job.id, ready.id] })
    expect(report).toMatchObject({ done: 1, refused: 2 })
    const codes = report.refusals.map(({ code }) => code)
    expect(codes.toSorted()).toEqual(['E_JOB_NOT_STALLED', 'E_LEASE_LIVE'])
    expect(await bench.job(stalled.job.id)).toMatchObject({ state: 'retrying', stalled: false })
  })

  it('cancels at once what nobody works on, a stalled job too, and asks who works', async () => {
    const [bench, ada] = await open()
    const stalled = await bench.hold({ policy: policyWith({ recovery: 'operator' }) })
    await bench.expire()
    const [live, ready] = [await bench.hold(), await bench.enqueue()]
    const ids = [stalled.job.id, live.job.id, ready.id]
    const foreseen = await ada.cancel({ ids }, { dryRun: true })
    expect(await ada.cancel({ ids })).toMatchObject({ done: 2, asked: 1, refused: 0 })
    expect(foreseen).toMatchObject({ done: 2, asked: 1, refused: 0 })
    const { cancelling } = await bench.store.heartbeat(
      [{ ref: live.ref, fence: fenceOf(live) }],
      1000,
    )
    expect(cancelling).toEqual([live.ref])
  })

  it('meets every job of a filter once while their states change under it', async () => {
    const seen: string[] = []
    const [bench, ada] = await open((store) =>
      changed(store, {
        // Between two pages others enqueue jobs that match, and redrive some that were parked.
        list: async (...args) => {
          const page = await store.list(...args)
          const { id } = await bench.enqueue({ queue: 'main' })
          done(await bench.applyCommand(id, { kind: 'park' }, OTHER))
          const first = page.items[0]?.id
          if (first !== undefined) done(await bench.applyCommand(first, { kind: 'redrive' }, OTHER))
          return page
        },
        applyCommand: async (ids, command, requester, seqs) => {
          seen.push(...ids)
          expect(ids.length).toBeLessThanOrEqual(100)
          return store.applyCommand(ids, command, requester, seqs)
        },
      }),
    )
    const items = Array.from({ length: 250 }, () => bench.item())
    await bench.store.enqueue(items)
    const before = items.map(({ command }) => command.jobId)
    await bench.store.applyCommand(before, { kind: 'park' }, OTHER)
    const report = await ada.redrive({ filter: { state: 'quarantined', queue: 'main' } })
    expect(seen.toSorted()).toEqual(before.toSorted())
    // Three were redriven by others a moment earlier: they are not what the filter showed.
    expect(report).toMatchObject({ matched: 250, done: 247, same: 0, refused: 3, more: false })
    expect(new Set(report.refusals.map(({ code }) => code))).toEqual(new Set(['E_TRANSITION_RACE']))
  })

  it('writes nothing in a dry run, and foresees what the run then does', async () => {
    const [bench, ada] = await open()
    const parked = await fail(bench, standard, 'invalid_input')
    const final = await fail(bench, leased, 'terminal')
    const waiting = await bench.enqueue({ runAt: bench.store.now() + 1000 })
    const ready = await bench.enqueue()
    const running = await bench.hold()
    const snapshot = async () => {
      const ids = (await bench.ids()).toSorted()
      return Promise.all(ids.map((id) => bench.store.facts(id)))
    }
    const before = await snapshot()
    const selection = { filter: { createdFrom: 0 } }
    const foreseen = await ada.retry(selection, { dryRun: true })
    expect(await snapshot()).toEqual(before)
    expect(foreseen).toMatchObject({ dryRun: true, matched: 5, done: 3, same: 1, refused: 1 })
    expect(foreseen.refusals).toMatchObject([{ id: running.job.id, code: 'E_JOB_RUNNING' }])
    const report = await ada.retry(selection)
    const { ids, ...told } = foreseen
    expect(ids).toHaveLength(5)
    expect({ ...report, copies: [] }).toEqual({ ...told, dryRun: false })
    expect(report.copies.map(({ of }) => of)).toEqual([final])
    const states = [parked, waiting.id, ready.id].map(async (id) => (await bench.job(id)).state)
    expect(await Promise.all(states)).toEqual(['queued', 'queued', 'queued'])
  })

  it('stops at the limit and at the signal, and says that there is more', async () => {
    const [bench, ada] = await open()
    await bench.store.enqueue(Array.from({ length: 5 }, () => bench.item()))
    const selection = (limit: number) => ({ filter: { queue: 'main' }, limit })
    expect(await ada.prioritise(selection(3), 1)).toMatchObject({ matched: 3, more: true })
    expect(await ada.prioritise(selection(5), 2)).toMatchObject({ matched: 5, more: false })
    const signal = AbortSignal.abort()
    const all = { filter: { queue: 'main' } }
    expect(await ada.cancel(all, { signal })).toMatchObject({ matched: 0, done: 0, more: true })
    expect((await bench.store.counts()).lanes.ready).toBe(5)
  })

  it('counts every refusal and tells the first twenty', async () => {
    const [bench, ada] = await open()
    await bench.store.enqueue(Array.from({ length: 130 }, () => bench.item()))
    const report = await ada.discard({ filter: { queue: 'main' } })
    expect(report).toMatchObject({ matched: 130, done: 0, refused: 130 })
    expect([report.refusals.length, report.sample.length]).toEqual([20, 20])
    expect(report.refusals[0]).toMatchObject({ code: 'E_TRANSITION_INVALID' })
  })

  it('refuses a selection that would mean more than it says', async () => {
    const [bench, ada] = await open()
    const { id } = await bench.enqueue()
    const bad = [
      { filter: { stat: 'queued' } },
      { filter: { state: undefined } },
      { filter: { queue: '' } },
      { filter: { createdBefore: Number.NaN } },
      { filter: { createdFrom: 2, createdBefore: 1 } },
      { filter: { lane: 'retrying' } },
      { filter: { lane: 'constructor' } },
      { filter: { lane: ['ready'] } },
      { filter: Object.create({ stat: 'queued' }) },
      { filter: ['queued'] },
      { filter: null },
      { filter: {} },
      { all: false },
      { all: true, filter: { state: 'queued' } },
      { all: true, limit: 0 },
      { filter: { state: 'queued' }, limt: 1 },
      { ids: [id], limit: 1 },
      {},
      { ids: id },
      { ids: Array.from({ length: 10_001 }, () => id) },
      null,
      7,
    ]
    for (const selection of bad) {
      await expect(ada.cancel(selection as never)).rejects.toMatchObject({
        code: 'E_COMMAND_INVALID',
      })
    }
    await expect(ada.prioritise(id, 0.5)).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
    await expect(ada.reschedule(id, new Date(Number.NaN))).rejects.toThrow('"runAt"')
    expect((await bench.job(id)).seq).toBe(1)
    expect(await ada.cancel({ ids: [null as never, 'a\nb'] })).toMatchObject({ refused: 2 })
  })

  it('tries effects again that are parked, by key or by filter, each once', async () => {
    const [bench, ada] = await open()
    const keys = await parkEffects(bench, 130)
    const filter = { state: 'parked', type: 'order' } as const
    const foreseen = await ada.retryEffects({ filter }, { dryRun: true })
    expect(foreseen).toMatchObject({ dryRun: true, matched: 130, done: 130, same: 0, more: false })
    expect(foreseen.sample).toHaveLength(20)
    const [first = '', second = ''] = keys
    expect(await ada.retryEffects(first)).toMatchObject({ matched: 1, done: 1 })
    expect(await ada.retryEffects({ keys: [first, second, second, 'x/y/1'] })).toMatchObject({
      ...{ matched: 3, done: 1, same: 1, refused: 1 },
      refusals: [{ key: 'x/y/1', code: 'E_EFFECT_NOT_FOUND' }],
    })
    // One that is due already is as wanted, as a job is.
    expect(await ada.retryEffects(first)).toMatchObject({ done: 0, same: 1, refused: 0 })
    const absent = { code: 'E_EFFECT_NOT_FOUND' }
    await expect(ada.retryEffects('x/y/1')).rejects.toMatchObject(absent)
    await expect(ada.retryEffects('x/y/1', { dryRun: true })).rejects.toMatchObject(absent)
    expect(await ada.retryEffects({ filter, limit: 8 })).toMatchObject({ done: 8, more: true })
    const signal = AbortSignal.abort()
    expect(await ada.retryEffects({ filter }, { signal })).toMatchObject({ done: 0, more: true })
    expect(await ada.retryEffects({ filter })).toMatchObject({ matched: 120, done: 120, same: 0 })
    expect((await bench.store.listEffects({ state: 'parked' })).items).toEqual([])
    const fact = await bench.lastFact(first.split('/')[0] ?? '')
    expect(fact).toMatchObject({ operator: 'ada', note: 'INC-7' })
    const bad = [
      ...[null, 7, { keys: 'x' }, { keys: [7] }, {}, { filter: {} }, { all: 'yes' }],
      ...[{ filter: null }, { filter: { stat: 'parked' } }, { filter: { state: 'lost' } }],
    ]
    for (const selection of [...bad, { filter: { state: undefined } }, { filter, limit: 0 }]) {
      await expect(ada.retryEffects(selection as never)).rejects.toMatchObject({
        code: 'E_COMMAND_INVALID',
      })
    }
  })

  it('pauses and resumes a queue under its name', async () => {
    const [bench, ada] = await open()
    await ada.pauseQueue('main')
    expect(await bench.store.listQueues()).toMatchObject([{ name: 'main', pausedBy: 'ada' }])
    await bench.enqueue()
    expect(await bench.claim()).toEqual([])
    await ada.resumeQueue('main')
    expect(await bench.claim()).toHaveLength(1)
  })

  it('bounds a queue under its name; bounds of the options are recorded once', async () => {
    const [bench, ada] = await open()
    await ada.limitQueue('main', { maxDepth: 1, maxWait: '5m' })
    await expect(ada.limitQueue('main', { depth: 1 } as never)).rejects.toMatchObject({
      code: 'E_COMMAND_INVALID',
    })
    const queues = { main: { maxDepth: 2 } }
    for (let i = 0; i < 2; i++) await createPawl({ store: bench.store, queues })
    const { items } = await bench.store.listQueueRecords({ queue: 'main' })
    const set = { pausedAt: null, maxDepth: 1, maxWaitMs: 300_000 }
    expect(items).toMatchObject([
      { action: 'limit', actor: 'client', note: 'the option queues of createPawl', before: set },
      { action: 'limit', actor: 'operator', operator: 'ada', note: 'INC-7', after: set },
    ])
  })

  it('a change of a queue is an event and a log line; no change is neither', async () => {
    const events: PawlEvent[] = []
    const lines: unknown[] = []
    const note = (fields: object) => lines.push(fields)
    const logger = { debug() {}, info: note, warn: note, error: note }
    await using pawl = await createPawl({
      store: 'sqlite::memory:',
      logger,
      onEvent: (event) => events.push(event),
    })
    const ada = pawl.operator(ADA)
    const record = await ada.limitQueue('main', { maxDepth: 5 })
    expect(await ada.limitQueue('main', { maxDepth: 5 })).toBeUndefined()
    expect(events).toEqual([{ type: 'queue', worker: null, record }])
    expect(lines).toMatchObject([
      { event: 'queue.changed', queue: 'main', action: 'limit', operator: 'ada', reason: 'INC-7' },
    ])
  })
})

const OTHER = { actor: 'operator', operator: 'bob', note: 'at the same time' } as const
const NO_TABLE = { add() {}, all: () => [] }

/** The store with some verbs replaced. */
function changed(store: Store, verbs: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, name) {
      const own = verbs[name as keyof Store]
      if (own !== undefined) return own
      const value = Reflect.get(target, name, target) as unknown
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** Every promise holds, in a store whose lifecycles all ship. */
async function checkKnown(store: Store): Promise<void> {
  const { items } = await store.list({}, { limit: 1000 })
  if (items.every(({ lifecycle }) => lifecycle !== 'own')) await checkStore(store)
}

/** Commits a job with effects, none of which can be delivered; the keys of them. */
async function parkEffects(bench: Bench, count: number): Promise<string[]> {
  const held = await bench.hold({ type: 'order' })
  await bench.store.commit(held, (tx) => {
    for (let n = 0; n < count; n++) tx.effect('mail', String(n))
    return '1'
  })
  const effects = await bench.store.claimEffects({ limit: count, leaseMs: 1000 })
  await bench.store.settleEffects(
    effects.map((effect) => ({ kind: 'parked', effect, error: 'no relay' })),
  )
  return effects.map(({ key }) => key)
}

type FailureKind = 'transient' | 'terminal' | 'invalid_input'

/** The id of a job that failed. */
async function fail(
  bench: Bench,
  lifecycle: Lifecycle,
  kind: FailureKind = 'transient',
  fields: Parameters<Bench['enqueue']>[0] = {},
): Promise<string> {
  const held = await bench.hold({ lifecycle, ...fields })
  done(await bench.fail(held, kind))
  return held.job.id
}

/** The id of a job that was cancelled. */
async function cancel(bench: Bench, lifecycle: Lifecycle): Promise<string> {
  const { id } = await bench.enqueue({ lifecycle })
  done((await bench.store.cancel([id], CLIENT))[0])
  return id
}
