/** The audit: facts of all jobs, by any combination of conditions, in the order of the ledger. */

import assert from 'node:assert/strict'
import { type Fact, hopsOf } from '../../../src/core/job/facts.ts'
import { hardened } from '../../../src/core/lifecycles/hardened.ts'
import type { AuditEntry, AuditFilter, AuditOptions } from '../../../src/stores/audit.ts'
import type { Store } from '../../../src/stores/contract/store.ts'
import { readable } from '../../../src/stores/damage.ts'
import { type Bench, type Cases, CLIENT, done, OPERATOR, policyWith } from './bench.ts'

/** Every entry that a filter shows, page by page. */
async function auditAll(
  store: Store,
  filter: AuditFilter,
  options: AuditOptions = {},
): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = []
  let after: string | undefined
  do {
    const page = await store.audit(filter, { ...options, ...(after !== undefined && { after }) })
    assert.ok(page.items.length <= (options.limit ?? 50), 'no page is longer than asked for')
    entries.push(...page.items)
    after = page.next
  } while (after !== undefined)
  return entries
}

const keysOf = (entries: readonly { readonly fact: Fact }[]) =>
  entries.map(({ fact }) => `${fact.jobId}/${fact.seq}`)

/** Jobs that met workers, operators, expiry and failure, in several lifecycles. */
async function play(bench: Bench): Promise<void> {
  const { store } = bench
  const first = await bench.hold({ input: '{"n":1}' }, { worker: 'w-1' })
  done(await bench.settle(first, { kind: 'step', name: 's', n: 1 }, '"step"'))
  await bench.advance(10)
  await store.commit(first, () => '"result"')
  const failing = await bench.hold({ policy: policyWith() }, { worker: 'w-2' })
  done(await bench.fail(failing))
  await store.promote(10)
  const again = await bench.reclaim(failing, { worker: 'w-1' })
  done(await bench.fail(again, 'terminal'))
  await bench.advance(10)
  done(await bench.applyCommand(again.job.id, { kind: 'redrive' }, OPERATOR))
  const ben = { actor: 'operator', operator: 'ben', note: 'no use' } as const
  done((await store.cancel([again.job.id], { ...ben, metadata: { operator: 'ann' } }))[0])
  const hard = await bench.hold({ lifecycle: hardened }, { worker: 'w-3' })
  done(await bench.fail(hard, 'terminal'))
  await bench.hold({ queue: 'expires' }, { worker: 'w-3' })
  await bench.expire()
  const parked = await bench.enqueue({ queue: 'parked' })
  done(await bench.applyCommand(parked.id, { kind: 'park' }, OPERATOR))
  done(await bench.applyCommand(parked.id, { kind: 'prioritise', priority: 7 }, CLIENT))
}

/** Every fact, in the order of the ledger, as whoever follows it sees it. */
async function ledgerOf(store: Store) {
  return readable(await store.tail(undefined, 1000))
}

/** What must show the facts that a predicate says, all of them and nothing else. */
async function assertShows(
  store: Store,
  filter: AuditFilter,
  isMeant: (fact: Fact) => boolean,
): Promise<void> {
  const expected = (await ledgerOf(store)).filter(({ fact }) => isMeant(fact))
  assert.ok(expected.length > 0, `${JSON.stringify(filter)} has something to find`)
  const shown = await auditAll(store, filter)
  assert.deepEqual(shown, expected, JSON.stringify(filter))
  const back = await auditAll(store, filter, { order: 'newest', limit: 3 })
  assert.deepEqual(back, expected.toReversed(), `${JSON.stringify(filter)}, newest first`)
}

const entered = (fact: Fact) => [
  ...(fact.from === null ? [[...(fact.via ?? []), fact.to][0]] : []),
  ...hopsOf(fact).map(({ to }) => to),
]

/** What an audit shows. */
export const auditCases: Cases = {
  'without conditions it shows every fact, oldest or newest first, whatever the page': async (
    bench,
  ) => {
    await play(bench)
    const all = await ledgerOf(bench.store)
    for (const limit of [1, 2, 7, 1000]) {
      assert.deepEqual(await auditAll(bench.store, {}, { limit }), all)
      const newest = await auditAll(bench.store, {}, { limit, order: 'newest' })
      assert.deepEqual(newest, all.toReversed())
    }
  },

  'it goes on from any place, in both directions': async (bench) => {
    await play(bench)
    const all = await ledgerOf(bench.store)
    for (const [i, { pos: after }] of all.entries()) {
      const later = await bench.store.audit({}, { after, limit: 1000 })
      assert.deepEqual(later.items, all.slice(i + 1))
      const earlier = await bench.store.audit({}, { after, limit: 1000, order: 'newest' })
      assert.deepEqual(earlier.items, all.slice(0, i).toReversed())
    }
  },

  'it is by job, actor, operator, kind of fact, reason and time': async (bench) => {
    await play(bench)
    const { store } = bench
    const all = (await ledgerOf(store)).map(({ fact }) => fact)
    for (const { jobId } of all) await assertShows(store, { jobId }, (f) => f.jobId === jobId)
    for (const actor of ['worker', 'client', 'engine', 'operator'] as const) {
      await assertShows(store, { actor }, (fact) => fact.actor === actor)
    }
    for (const operator of ['ann', 'ben']) {
      await assertShows(store, { operator }, (fact) => fact.operator === operator)
    }
    for (const { trigger } of all) {
      await assertShows(store, { trigger }, (fact) => fact.trigger === trigger)
    }
    for (const reason of new Set(all.flatMap(({ reason = [] }) => reason))) {
      await assertShows(store, { reason }, (fact) => fact.reason === reason)
    }
    for (const { at } of all) await assertShows(store, { from: at }, (fact) => fact.at >= at)
    const last = Math.max(...all.map(({ at }) => at))
    await assertShows(store, { before: last }, (fact) => fact.at < last)
    assert.deepEqual(await auditAll(store, { before: all[0]?.at ?? 0 }), [])
  },

  'it is by the worker whose attempt it was: claim, steps, reports and expiry': async (bench) => {
    await play(bench)
    const holders = new Map<string, string>()
    const holderOf = (fact: Fact) => {
      const { worker } = fact.execution ?? {}
      if (worker !== undefined) holders.set(fact.jobId, worker)
      const isOfAttempt = fact.actor === 'worker' || fact.execution !== undefined
      return isOfAttempt ? holders.get(fact.jobId) : undefined
    }
    const owners = (await ledgerOf(bench.store)).map(({ fact }) => [holderOf(fact), fact] as const)
    for (const worker of ['w-1', 'w-2', 'w-3']) {
      const own = owners.filter(([holder]) => holder === worker).map(([, fact]) => ({ fact }))
      const shown = await auditAll(bench.store, { worker })
      assert.deepEqual(keysOf(shown), keysOf(own))
    }
    const triggers = (worker: string) =>
      auditAll(bench.store, { worker }).then((all) => all.map(({ fact }) => fact.trigger))
    assert.deepEqual(await triggers('w-2'), ['claim', 'retry'])
    assert.deepEqual(await triggers('w-1'), ['claim', 'step', 'commit', 'claim', 'fail'])
    assert.ok((await triggers('w-3')).includes('expire'))
  },

  'it is by the state that was left or entered, also on the way': async (bench) => {
    await play(bench)
    const { store } = bench
    const states = ['created', 'queued', 'running', 'retrying', 'failed', 'quarantined', 'pending']
    for (const state of states) {
      await assertShows(store, { toState: state }, (fact) => entered(fact).includes(state))
    }
    for (const state of ['created', 'queued', 'running', 'failed']) {
      const leaves = (fact: Fact) => hopsOf(fact).some(({ from }) => from === state)
      await assertShows(store, { fromState: state }, leaves)
    }
    // The hardened lifecycle gives up through failed, in one step.
    const ways = [
      { fromState: 'running', toState: 'quarantined' },
      { fromState: 'failed', toState: 'quarantined' },
    ]
    for (const way of ways) {
      const [only, ...others] = await auditAll(store, way)
      assert.deepEqual([only?.fact.via, only?.fact.to, others], [['failed'], 'quarantined', []])
    }
    assert.deepEqual(await auditAll(store, { fromState: 'quarantined', toState: 'failed' }), [])
    // A new priority leaves no state and enters none.
    const stayed = await auditAll(store, { trigger: 'prioritise' })
    assert.equal(stayed.length, 1)
    const to = stayed[0]?.fact.to ?? ''
    assert.deepEqual(await auditAll(store, { trigger: 'prioritise', toState: to }), [])
  },

  'conditions are combined': async (bench) => {
    await play(bench)
    const { store } = bench
    await assertShows(
      store,
      { worker: 'w-1', trigger: 'claim', fromState: 'queued', toState: 'running' },
      ({ trigger, execution }) => trigger === 'claim' && execution?.worker === 'w-1',
    )
    await assertShows(
      store,
      { actor: 'operator', operator: 'ann', trigger: 'park' },
      ({ trigger }) => trigger === 'park',
    )
    assert.deepEqual(await auditAll(store, { operator: 'ben', trigger: 'park' }), [])
    const [{ fact }] = (await auditAll(store, { operator: 'ben' })) as [AuditEntry]
    await assertShows(
      store,
      { jobId: fact.jobId, actor: 'operator', from: fact.at },
      (other) => other.jobId === fact.jobId && other.actor === 'operator' && other.at >= fact.at,
    )
  },

  'payloads come with their facts where they are asked for, and null where there is none': async (
    bench,
  ) => {
    await play(bench)
    const entries = await auditAll(bench.store, {}, { payloads: true, limit: 4 })
    for (const { fact, payload } of entries) {
      if (fact.trigger === 'create') assert.ok(payload?.startsWith('{'))
      if (fact.trigger === 'step') assert.equal(payload, '"step"')
      if (fact.trigger === 'commit') assert.equal(payload, '"result"')
      if (fact.trigger === 'claim') assert.equal(payload, null)
    }
    assert.ok((await auditAll(bench.store, {})).every((entry) => !('payload' in entry)))
  },

  'what a transaction of many jobs wrote is shown page by page as well': async (bench) => {
    const items = Array.from({ length: 2500 }, () => bench.item({ queue: 'many' }))
    await bench.store.enqueue(items)
    const { id } = await bench.enqueue()
    const all = await auditAll(bench.store, {}, { limit: 700 })
    assert.equal(new Set(keysOf(all)).size, 2501)
    assert.equal(all.at(-1)?.fact.jobId, id)
    const back = await auditAll(bench.store, {}, { limit: 700, order: 'newest' })
    assert.deepEqual(keysOf(back), keysOf(all).toReversed())
  },

  'a rare fact is found behind many others': async (bench) => {
    const { id } = await bench.enqueue()
    done(await bench.applyCommand(id, { kind: 'park' }, OPERATOR))
    await bench.store.enqueue(Array.from({ length: 2500 }, () => bench.item()))
    const last = await bench.enqueue()
    done(await bench.applyCommand(last.id, { kind: 'park' }, OPERATOR))
    for (const order of ['oldest', 'newest'] as const) {
      const found = await auditAll(bench.store, { operator: 'ann' }, { order })
      const ids = found.map(({ fact }) => fact.jobId)
      assert.deepEqual(ids, order === 'oldest' ? [id, last.id] : [last.id, id])
    }
  },

  'what is hostile, unknown or misspelt finds nothing or is refused': async (bench) => {
    await play(bench)
    const { store } = bench
    for (const word of ["'", '%', '"', '>', '\\', '_', 'w-1" OR 1=1', 'ü', '></']) {
      const filters = [{ worker: word }, { operator: word }, { reason: word }, { jobId: word }]
      for (const filter of [...filters, { fromState: word }, { toState: word }]) {
        assert.deepEqual(await auditAll(store, filter), [], JSON.stringify(filter))
      }
    }
    const refused: unknown[] = [
      { opertor: 'ann' },
      { operator: undefined },
      { operator: '' },
      { worker: 'a\0b' },
      { trigger: 'dance' },
      { actor: 'nobody' },
      { from: -1 },
      { before: Number.NaN },
      { jobId: 7 },
      { toString: 'x' },
    ]
    for (const filter of refused) {
      const asking = store.audit(filter as AuditFilter)
      await assert.rejects(asking, { code: 'E_COMMAND_INVALID' }, JSON.stringify(filter))
    }
    await assert.rejects(store.audit({}, { after: "'" }), { code: 'E_VALUE_INVALID' })
    await assert.rejects(store.audit({}, { order: 'up' as 'oldest' }), /oldest/)
    assert.deepEqual(await store.audit({}, { limit: 0 }), { items: [] })
  },
}
