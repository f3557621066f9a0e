// One row that cannot be read or trusted stops nobody: it is set aside by itself, with a fact, and
// the doctor lets it go on. On both databases, with constraints and triggers in place unless said.
import type { Job } from 'pawl'
import { LIFECYCLES, standard } from 'pawl/rules'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { Doctor } from '../../src/doctor/doctor.ts'
import { createPawl } from '../../src/engine/create-pawl.ts'
import { circumstancesOf } from '../../src/engine/operators/circumstances.ts'
import { explain } from '../../src/engine/operators/explain.ts'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { claim as claimOne, type Examined, enqueue, STORES, succeeded } from './examined-stores.ts'

const OPERATOR = { actor: 'operator', operator: 'ann', note: 'because' } as const
const LEASE_MS = 1000
const REQUEST = { worker: 'w2', queues: ['a'], limit: 10, leaseMs: LEASE_MS, start: true }

const idsOf = (held: readonly Held[]) => held.map(({ job }) => job.id).toSorted()
const damage = (examined: Examined, id: string | undefined, set: string) =>
  examined.sql(`UPDATE @jobs SET ${set} WHERE id = '${id}'`)

function doctorOf({ store, environment }: Examined): Doctor {
  return new Doctor({ store, environment, lifecycles: LIFECYCLES })
}

/** It waits as a parked job, its last fact says why, and its attempt is over. */
async function expectSetAside(store: Store, id: string, why: RegExp): Promise<void> {
  const last = (await store.facts(id)).at(-1)
  expect(last).toMatchObject({
    trigger: 'park',
    actor: 'engine',
    reason: 'damaged',
    blockedReason: 'damaged',
    metadata: { damage: expect.stringMatching(why) },
  })
  const { lanes } = await store.counts()
  expect(lanes).toMatchObject({ held: 0, parked: 1 })
}

/** The doctor finds it, repairs it, and then finds nothing. */
async function expectRepaired(examined: Examined, id: string): Promise<Job | undefined> {
  const doctor = doctorOf(examined)
  const { findings } = await doctor.check({ full: true })
  const subjects = findings.filter(({ severity }) => severity === 'error').map((f) => f.subject)
  expect(new Set(subjects)).toEqual(new Set([`job ${id}`]))
  await doctor.repair({ operator: 'ann', reason: 'damaged by hand' })
  expect(await doctor.check({ full: true })).toMatchObject({ errors: 0, repairCount: 0 })
  return examined.store.get(id)
}

describe.each(STORES)('a damaged row on $name', ({ open }) => {
  let examined: Examined
  let store: Store
  let ids: string[]

  beforeEach(async () => {
    examined = await open()
    store = examined.store
    ids = [await enqueue(examined, 'a'), await enqueue(examined, 'a'), await enqueue(examined, 'a')]
  })

  const neighbours = () => [ids[0] as string, ids[2] as string].toSorted()
  const hurt = () => ids[1] as string

  it.each([
    ["tags = 'oops'", /its tags cannot be read/],
    ["tags = '{}'", /its tags are not a list of texts/],
    ["policy = '{'", /its policy cannot be read/],
    ['policy = \'{"retry":5}\'', /its policy is not one/],
    ["error = 'x'", /its error cannot be read/],
    ['attempt = 2147483647', /its attempt is 2147483647/],
    ['failures = 2000000000', /its failures is/],
    ['created_at = 9223372036854775807', /its createdAt is/],
    ['timeout_ms = -5', /its timeoutMs is -5/],
  ])(
    'with %s is set aside by the claim that meets it, which takes its neighbours',
    async (set, why) => {
      await damage(examined, hurt(), set)
      expect(idsOf(await store.claim(REQUEST))).toEqual(neighbours())
      const isolated = await store.isolate()
      expect(isolated).toMatchObject([{ jobId: hurt(), why: expect.stringMatching(why) }])
      await expect(store.settle([])).resolves.toBeDefined()
      const last = (await store.facts(hurt())).at(-1)
      expect(last).toMatchObject({ trigger: 'park', actor: 'engine', reason: 'damaged' })
      expect((await store.counts()).lanes).toMatchObject({ held: 2, parked: 1, ready: 0 })
      const job = await expectRepaired(examined, hurt())
      expect(job).toMatchObject({ state: 'queued', blockedReason: null, tags: [], policy: null })
      expect(idsOf(await store.claim(REQUEST))).toEqual([hurt()])
    },
  )

  it.each(['bogus', 'running', 'scheduled', 'succeeded'])(
    'in the state %s is never claimed from the lane of ready jobs, and is set aside',
    async (state) => {
      await damage(examined, hurt(), `state = '${state}'`)
      expect(idsOf(await store.claim(REQUEST))).toEqual(neighbours())
      expect((await store.facts(hurt())).length).toBe(1)
      const { findings } = await doctorOf(examined).round(undefined)
      expect(findings.map(({ subject }) => subject)).toContain(`job ${hurt()}`)
      expect(await store.isolate()).toMatchObject([{ jobId: hurt(), lane: 'ready' }])
      expect(await expectRepaired(examined, hurt())).toMatchObject({ state: 'queued' })
      expect(idsOf(await store.claim(REQUEST))).toEqual([hurt()])
    },
  )

  it('that lacks the last fact of its job is set aside', async () => {
    await store.applyCommand([hurt()], { kind: 'prioritise', priority: 5 }, OPERATOR)
    await damage(examined, hurt(), 'seq = 1')
    await damage(examined, ids[2], 'seq = 7')
    const isolated = (await store.isolate()).map(({ jobId }) => jobId)
    expect(isolated.toSorted()).toEqual([hurt(), ids[2]])
    expect(idsOf(await store.claim(REQUEST))).toEqual([ids[0]])
    // What the row alone tells of is not written over.
    expect((await store.facts(ids[2] as string)).length).toBe(1)
    const doctor = doctorOf(examined)
    await doctor.repair({ operator: 'ann', reason: 'damaged by hand' })
    expect(await doctor.check({ full: true })).toMatchObject({ errors: 0 })
  })

  it('that is held is set aside when its lease has expired, unlike its neighbours', async () => {
    const held = await store.claim(REQUEST)
    expect(held).toHaveLength(3)
    await damage(examined, hurt(), "tags = 'oops'")
    examined.environment.clock.advance(LEASE_MS + 1)
    const recovered = await store.recover(100)
    expect(recovered.map(({ kind }) => kind)).toEqual(['done', 'done'])
    await expectSetAside(store, hurt(), /its tags cannot be read/)
    expect((await store.facts(hurt())).at(-1)?.execution).toMatchObject({
      statuses: ['ABORTED'],
      abort: 'forced',
    })
    const job = await expectRepaired(examined, hurt())
    expect(job).toMatchObject({ state: 'queued', attempt: 1, execution: null })
  })

  it('that waits for its time is set aside when it is due, unlike its neighbours', async () => {
    const runAt = store.now() + 500
    for (const id of ids) await store.applyCommand([id], { kind: 'reschedule', runAt }, OPERATOR)
    await damage(examined, hurt(), "policy = 'oops'")
    examined.environment.clock.advance(501)
    expect(await store.promote(100)).toBe(2)
    await expectSetAside(store, hurt(), /its policy cannot be read/)
    expect(await expectRepaired(examined, hurt())).toMatchObject({ state: 'scheduled' })
    expect(await store.promote(100)).toBe(1)
  })

  it('in a bounded queue does not keep others from being shed', async () => {
    await store.limitQueue('a', { maxWaitMs: 100 })
    await damage(examined, hurt(), "error = 'oops'")
    examined.environment.clock.advance(200)
    expect(await store.shed(100)).toHaveLength(2)
    await expectSetAside(store, hurt(), /its error cannot be read/)
  })

  it('in the way of the next claim loses no report', async () => {
    const held = await claimOne(examined, 'b')
    await damage(examined, hurt(), "tags = 'oops'")
    await damage(examined, ids[0], 'attempt = 2147483647')
    const fence = { attempt: held.job.attempt, claim: held.job.execution?.claim ?? '' }
    const command = { kind: 'commit', fence } as const
    const { answers, claimed } = await store.settle([{ held, command, payload: '1' }], REQUEST)
    expect(answers).toMatchObject([{ kind: 'done', job: { outcome: 'succeeded' } }])
    expect(idsOf(claimed)).toEqual([ids[2]])
  })

  it('is named by whatever asks for it alone, and changes nothing for others', async () => {
    await damage(examined, hurt(), "tags = 'oops'")
    const told = await store.applyCommand(ids, { kind: 'prioritise', priority: 9 }, OPERATOR)
    expect(told).toMatchObject([
      { kind: 'done' },
      { kind: 'rejected', error: { code: 'E_JOB_DAMAGED', details: { jobId: hurt() } } },
      { kind: 'done' },
    ])
    const cancelled = await store.cancel(ids, OPERATOR)
    expect(cancelled.map(({ kind }) => kind)).toEqual(['done', 'rejected', 'done'])
    await expect(store.get(hurt())).rejects.toMatchObject({
      code: 'E_JOB_DAMAGED',
      message: `Job ${hurt()} is damaged: its tags cannot be read`,
    })
    expect((await store.getMany(ids)).map(({ id }) => id).toSorted()).toEqual(neighbours())
  })

  it('is shown as damaged by lists, which show all others', async () => {
    await damage(examined, hurt(), "tags = 'oops', error = 'oops'")
    const page = await store.list({})
    expect(page.items.map(({ id }) => id).toSorted()).toEqual(neighbours())
    expect(page.damaged).toEqual([
      { id: hurt(), lane: 'ready', why: expect.stringMatching(/cannot be read/) },
    ])
    expect((await store.list({ tag: 'x' })).items).toEqual([])
    expect((await store.list({ error: 'x' })).items).toEqual([])
    const walked = []
    for (let after: string | undefined; ; ) {
      const one = await store.list({}, { limit: 1, ...(after !== undefined && { after }) })
      walked.push(...one.items.map(({ id }) => id), ...(one.damaged ?? []).map(({ id }) => id))
      after = one.next
      if (after === undefined) break
    }
    expect(walked.toSorted()).toEqual(ids.toSorted())
  })

  it('that has the key of a new job is the refusal of that job alone', async () => {
    const offer = (key: string) => ({
      lifecycle: standard,
      command: { jobId: examined.environment.ids.next(), type: 'mail', queue: 'a', key },
      input: '1',
    })
    const [first] = await store.enqueue([offer('k')])
    await damage(examined, first?.kind === 'created' ? first.job.id : '', "tags = 'oops'")
    const answers = await store.enqueue([offer('k'), offer('l')])
    expect(answers).toMatchObject([
      { kind: 'rejected', error: { code: 'E_JOB_DAMAGED' } },
      { kind: 'created' },
    ])
  })

  it('is reported when the store is opened, which gives out work all the same', async () => {
    await damage(examined, hurt(), "state = 'bogus'")
    await damage(examined, ids[0], "tags = 'oops'")
    const lines: [object, string][] = []
    const none = () => {}
    const error = (fields: object, line: string) => void lines.push([fields, line])
    const again = await examined.again({ logger: { debug: none, info: none, warn: none, error } })
    expect(lines.map(([fields]) => fields)).toMatchObject([
      { event: 'store.job_damaged', job_id: ids[0] },
      { event: 'store.job_damaged', job_id: hurt() },
    ])
    expect(idsOf(await again.claim(REQUEST))).toEqual([ids[2]])
  })
})

describe.each(STORES)('an unreadable fact on $name', ({ open }) => {
  it('is shown by the tail and the audit in its place, and named by its job', async () => {
    const examined = await open()
    const { store, sql, names } = examined
    const id = await succeeded(examined, 'a')
    const other = await succeeded(examined, 'a')
    for (const { name, drop } of await names.trigger()) if (/updated/.test(name)) await sql(drop)
    const column =
      examined.refColumn === 'rid' ? `(SELECT rid FROM @jobs WHERE id = '${id}')` : `'${id}'`
    await sql(`UPDATE @ledger SET data = '{' WHERE job = ${column} AND seq = 1`)
    const tail = await store.tail(undefined, 100)
    expect(tail).toHaveLength(6)
    const unreadable = { jobId: id, seq: 1, unreadable: expect.stringContaining(id) }
    expect(tail.filter((entry) => 'unreadable' in entry)).toMatchObject([unreadable])
    const page = await store.audit({}, { limit: 100 })
    expect(page.items).toHaveLength(5)
    expect(page.unreadable).toMatchObject([unreadable])
    await expect(store.facts(id)).rejects.toMatchObject({ code: 'E_LEDGER_BROKEN' })
    // Retention keeps what it cannot archive, and removes the rest.
    examined.environment.clock.advance(10)
    expect(await store.prune({ endedBefore: store.now(), limit: 10 })).toBe(1)
    expect(await store.get(other)).toBeUndefined()
  })
})

describe.each(STORES)('an explanation on $name', ({ open }) => {
  it.each([
    ['lane = 0', /lane idle instead of ready/],
    ['priority = 77', /priority/],
    ['deadline_at = 1', /deadline_at/],
    ["queue = 'b'", /queue/],
  ])('says that a row with %s is damaged, and what mends it', async (set, fault) => {
    const examined = await open()
    const { store } = examined
    const id = await enqueue(examined, 'a')
    const ask = async () => explain(await circumstancesOf(store, LIFECYCLES, id))
    expect((await ask()).kind).toBe('no-worker')
    await damage(examined, id, set)
    expect(await ask()).toMatchObject({
      kind: 'damaged',
      says: expect.stringMatching(fault),
      command: 'pawl doctor --full --plan',
    })
    await expectRepaired(examined, id)
    expect((await ask()).kind).toBe('no-worker')
  })
})

describe.each(STORES)('a job whose machine has no row on $name', ({ open }) => {
  it('is named as damaged by whatever asks for it, and goes on after the repair', async () => {
    const examined = await open()
    const { store } = examined
    const id = await enqueue(examined, 'a')
    if (examined.refColumn === 'rid') await examined.sql('PRAGMA foreign_keys = OFF')
    await damage(examined, id, 'machine = 77')
    const damaged = { code: 'E_JOB_DAMAGED', message: expect.stringContaining('machine 77') }
    await expect(store.get(id)).rejects.toMatchObject(damaged)
    const told = await store.applyCommand([id], { kind: 'park' }, OPERATOR)
    const cancelled = await store.cancel([id], OPERATOR)
    for (const [answer] of [told, cancelled]) {
      expect(answer).toMatchObject({ kind: 'rejected', error: damaged })
    }
    await expect(circumstancesOf(store, LIFECYCLES, id)).rejects.toMatchObject(damaged)
    const pawl = await createPawl({ store: await examined.again() })
    onTestFinished(() => pawl.close())
    const operator = pawl.operator({ name: 'ann', reason: 'x' })
    await expect(operator.cancel(id)).rejects.toMatchObject(damaged)
    const { refused } = await operator.cancel({ ids: [id] })
    expect(refused).toBe(1)
    await expectRepaired(examined, id)
    expect(idsOf(await store.claim(REQUEST))).toEqual([id])
  })
})
