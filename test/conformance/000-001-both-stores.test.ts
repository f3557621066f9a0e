// What R0 and R1 ask of transitions, through the real engine on both stores and in real
// time: they are edges or refused, once or not at all, by one at a time, and all on record.
import {
  createPawl,
  defineJob,
  type JobHandle,
  type Lifecycle,
  type PawlEvent,
  StaleFence,
  Terminal,
} from 'pawl'
import {
  executionsOf,
  type Fact,
  hardened,
  InvalidTransition,
  leased,
  stateOfExecutions,
} from 'pawl/rules'
import type { Held, Store } from 'pawl/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { PLACES } from '../engine/processes/places.ts'
import { brokenPromises } from '../processes/inspect.ts'

const timeout = 30_000
const LEASE_MS = 60_000

const fenceOf = ({ job }: Held) => ({
  attempt: job.attempt,
  claim: job.execution?.claim ?? '',
})
const commitOf = (held: Held) => ({
  held,
  command: { kind: 'commit', fence: fenceOf(held) } as const,
  payload: '1',
})
const ends = (facts: readonly Fact[]) => facts.map(({ to }) => to)

describe.each(PLACES)('on $name', ({ place }) => {
  /** A Pawl on a fresh store, in which one job of a lifecycle is known. */
  async function open(lifecycle: Lifecycle, run: () => unknown = () => 'done') {
    const { store: name } = await place()
    const job = defineJob({ name: 'work', lifecycle, run })
    const events: PawlEvent[] = []
    const pawl = await createPawl({ store: name, jobs: [job], onEvent: (e) => events.push(e) })
    onTestFinished(() => pawl.close())
    const claim = async (limit = 1) =>
      pawl.store.claim({ worker: 'test', limit, leaseMs: LEASE_MS, start: true })
    return { pawl, store: pawl.store, job, events, claim }
  }

  async function expectSound(store: Store): Promise<void> {
    expect(await brokenPromises(store)).toEqual([])
  }

  it('R0: a job takes the edges of its table, and each leaves a fact', { timeout }, async () => {
    let isBroken = true
    const { pawl, store, job } = await open(hardened, () => {
      if (isBroken) throw new Terminal('not yet')
    })
    await pawl.work({ poll: '50ms' })
    const handle = await pawl.enqueue(job, null)
    expect(await handle.result({ timeout: '10s' })).toMatchObject({ kind: 'parked' })
    isBroken = false
    const ann = pawl.operator({ name: 'ann', reason: 'mended' })
    expect(await ann.redrive(handle.id)).toMatchObject({ done: 1 })
    await expect.poll(async () => (await handle.get()).state, { timeout: 10_000 }).toBe('succeeded')
    const facts = await store.facts(handle.id)
    const states = ['pending', 'running', 'quarantined', 'pending', 'running', 'succeeded']
    expect(ends(facts)).toEqual(states)
    expect(facts[2]?.via).toEqual(['failed'])
    await expectSound(store)
  })

  it('R0: what is no edge is refused, changes nothing, and is reported', { timeout }, async () => {
    const { pawl, store, job, events, claim } = await open(hardened)
    const { id } = await pawl.enqueue(job, null)
    await claim()
    const before = [await store.get(id), await store.facts(id)]
    const requester = { actor: 'operator', operator: 'ann', note: 'a mistake' } as const
    const [answer] = await pawl.store.applyCommand([id], { kind: 'redrive' }, requester)
    expect(answer).toMatchObject({ kind: 'rejected', error: expect.any(InvalidTransition) })
    expect([await store.get(id), await store.facts(id)]).toEqual(before)
    expect(events.filter(({ type }) => type === 'refused')).toMatchObject([{ jobId: id }])
  })

  it('R0: a command that is repeated changes nothing more', { timeout }, async () => {
    const { pawl, store, job, claim } = await open(hardened)
    const { id } = await pawl.enqueue(job, null)
    const [held] = (await claim()) as [Held]
    const first = await store.settle([commitOf(held)])
    const again = await store.settle([commitOf(held)])
    expect([first, again].map(({ answers }) => answers[0]?.kind)).toEqual(['done', 'same'])
    expect(ends(await store.facts(id))).toEqual(['pending', 'running', 'succeeded'])
  })

  it('R0: a transition that fails half way never was', { timeout }, async () => {
    const { pawl, store, job, claim } = await open(hardened)
    const { id } = await pawl.enqueue(job, null)
    const [held] = (await claim()) as [Held]
    const before = [await store.get(id), await store.facts(id)]
    const failing = store.commit(held, async (tx) => {
      await tx.query('CREATE TABLE half (n int)')
      tx.effect('mail', '1')
      throw new Error('half way')
    })
    await expect(failing).rejects.toThrow('half way')
    expect([await store.get(id), await store.facts(id)]).toEqual(before)
    expect((await store.listEffects({ jobId: id })).items).toEqual([])
    // The table is not there either, or it could not be made now.
    const done = await store.commit(held, async (tx) => {
      await tx.query('CREATE TABLE half (n int)')
      return '1'
    })
    expect(done.kind).toBe('done')
    await expectSound(store)
  })

  it('R0: of many who want one job at one moment, one gets it', { timeout }, async () => {
    const { pawl, store, job, claim } = await open(hardened)
    const handles = await pawl.enqueueMany(
      job,
      Array.from({ length: 20 }, () => ({ input: null })),
    )
    const claims = await Promise.all(Array.from({ length: 10 }, () => claim(5)))
    const taken = claims.flat()
    expect(new Set(taken.map(({ job }) => job.id)).size).toBe(taken.length)
    const settled = await Promise.all(
      taken.flatMap((held) => [store.settle([commitOf(held)]), store.settle([commitOf(held)])]),
    )
    const kinds = settled.map(({ answers }) => answers[0]?.kind)
    expect(kinds.filter((kind) => kind === 'done')).toHaveLength(taken.length)
    expect(kinds.filter((kind) => kind === 'same')).toHaveLength(taken.length)
    expect(taken.length + (await store.counts()).lanes.ready).toBe(handles.length)
    await expectSound(store)
  })

  it('R0: the record says who did what, when, and why', { timeout }, async () => {
    const { pawl, store, job } = await open(hardened)
    const { id } = await pawl.enqueue(job, null)
    await pawl.operator({ name: 'ann', reason: 'INC-7' }).quarantine(id)
    await pawl.operator({ name: 'bob', reason: 'INC-7 is closed' }).redrive(id)
    const facts = await store.facts(id)
    expect(facts.map(({ actor, operator, note }) => ({ actor, operator, note }))).toEqual([
      { actor: 'client' },
      { actor: 'operator', operator: 'ann', note: 'INC-7' },
      { actor: 'operator', operator: 'bob', note: 'INC-7 is closed' },
    ])
    expect(facts.map(({ seq }) => seq)).toEqual([1, 2, 3])
    const times = facts.map(({ at }) => at)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
  })

  it('R1: the state of a job follows from its executions alone', { timeout }, async () => {
    const { pawl, store, job, claim } = await open(leased)
    const { id } = await pawl.enqueue(job, null)
    const [first] = (await claim()) as [Held]
    const fence = fenceOf(first)
    await store.settle([{ held: first, command: { kind: 'release', fence } }])
    const [second] = (await claim()) as [Held]
    await store.settle([commitOf(second)])
    const facts = await store.facts(id)
    for (const [i, { to }] of facts.entries()) {
      expect(stateOfExecutions(executionsOf(facts.slice(0, i + 1)))).toBe(to)
    }
    const executions = executionsOf(facts)
    expect(executions.map(({ execId, status }) => [execId, status])).toEqual([
      [`${id}/1`, 'ABORTED'],
      [`${id}/2`, 'DONE'],
    ])
  })

  it('R1: a worker that lost the job cannot commit, and no worker commits twice', {
    timeout,
  }, async () => {
    const { pawl, store, job, claim } = await open(leased)
    const handle: JobHandle = await pawl.enqueue(job, null)
    const [late] = (await claim()) as [Held]
    await store.settle([{ held: late, command: { kind: 'release', fence: fenceOf(late) } }])
    const [present] = (await claim()) as [Held]
    let runs = 0
    const work = () => `${++runs}`
    const refused = await store.commit(late, work)
    expect(refused).toMatchObject({ kind: 'rejected', error: expect.any(StaleFence) })
    expect(await store.commit(present, work)).toMatchObject({ kind: 'done', result: '1' })
    expect(await store.commit(present, work)).toMatchObject({ kind: 'same', result: '1' })
    expect(runs).toBe(1)
    const commits = (await store.facts(handle.id)).filter(({ trigger }) => trigger === 'commit')
    expect(commits).toHaveLength(1)
    await expectSound(store)
  })
})
