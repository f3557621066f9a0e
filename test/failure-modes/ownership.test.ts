// Failures of ownership that other engines had, each named by what must not happen here.
import { createPawl, defineJob, type Lifecycle } from 'pawl'
import { type Fact, leased, standard } from 'pawl/rules'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Held, Settlement, Store } from '../../src/stores/contract/store.ts'
import { wait } from '../engine/processes/jobs.ts'
import { PLACES } from '../engine/processes/places.ts'
import { WorkerProcess } from '../engine/processes/worker-process.ts'
import { brokenPromises } from '../processes/inspect.ts'
import { TWO_STORES, type TwoStores } from './two-stores.ts'

const LEASE_MS = 30_000

describe.each(TWO_STORES)('on $name', ({ open }) => {
  it('a late failure of an older attempt does not revive what a newer one ended', async () => {
    const stores = await open()
    for (const lifecycle of [standard, leased]) {
      const first = await enqueued(stores, lifecycle)
      const second = await takenOver(stores)
      const [ended] = await settle(stores.other, second, 'terminal')
      expect(ended).toMatchObject({ kind: 'done', job: { outcome: 'failed', attempt: 2 } })
      const before = await stores.one.facts(first.job.id)
      for (const failureClass of ['retryable', 'terminal'] as const) {
        const [answer] = await settle(stores.one, first, failureClass)
        expect(answer).toMatchObject({ kind: 'rejected', error: { code: 'E_STALE_FENCE' } })
      }
      expect(await stores.one.facts(first.job.id)).toEqual(before)
    }
    expect(await brokenPromises(stores.one)).toEqual([])
  })

  it('recovery does not act on what it saw before a holder renewed or finished', async () => {
    const stores = await open()
    const { environment, one, other } = stores
    const held = await enqueued(stores, standard)
    environment.advance(LEASE_MS - 1)
    const fence = fenceOf(held)
    // Both at once, in the last moment of the lease; whoever is first, the lease lives.
    const [beat, early] = await Promise.all([
      one.heartbeat([{ ref: held.ref, fence }], LEASE_MS),
      other.recover(10),
    ])
    expect([beat.lost, early]).toEqual([[], []])
    environment.advance(LEASE_MS - 1)
    const [{ answers }, late] = await Promise.all([
      one.settle([{ held, command: { kind: 'commit', fence }, payload: '1' }]),
      other.recover(10),
    ])
    expect([answers[0]?.kind, late]).toEqual(['done', []])
    environment.advance(LEASE_MS)
    expect(await other.recover(10)).toEqual([])
    expect(triggersOf(await one.facts(held.job.id))).toEqual(['create', 'claim', 'commit'])
  })

  it('a commit whose lease runs out under it is not half done when recovery comes', async () => {
    const stores = await open()
    const { environment, one, other } = stores
    const held = await enqueued(stores, standard)
    environment.advance(LEASE_MS - 1)
    let recovering: Promise<unknown> | undefined
    const answer = await one.commit(held, async (tx) => {
      await tx.query('CREATE TABLE half_done (n INTEGER)')
      environment.advance(1)
      recovering = other.recover(10)
      await turns()
      return '1'
    })
    expect(answer).toMatchObject({ kind: 'rejected', error: { code: 'E_STALE_FENCE' } })
    await passTime(stores, recovering as Promise<unknown>)
    await other.recover(10)
    expect(triggersOf(await one.facts(held.job.id))).toEqual(['create', 'claim', 'expire'])
    const next = await takenOver(stores, { isRecovered: true })
    const looking = one.commit(next, async (tx) => {
      await tx.query('SELECT * FROM half_done')
      return '1'
    })
    await expect(looking).rejects.toThrow(/half_done/)
    expect(await brokenPromises(one)).toEqual([])
  })

  it('an empty or odd id is not taken for none', async () => {
    const { one } = await open()
    const job = defineJob({ name: 'job' })
    const pawl = await createPawl({ store: one, jobs: [job] })
    onTestFinished(() => pawl.close())
    for (const jobId of ['', ' ', '0', '\0', 'null', 'x'.repeat(1_000_000)]) {
      const enqueueing = pawl.enqueue(job, null, { jobId })
      await expect(enqueueing).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
    }
    for (const key of ['', 'x'.repeat(1_000_000)]) {
      const enqueueing = pawl.enqueue(job, null, { key })
      await expect(enqueueing).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
    }
    for (const worker of ['', '\n']) {
      const claiming = one.claim({ worker, limit: 1, leaseMs: LEASE_MS, start: true })
      await expect(claiming).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
    }
    expect((await one.list({})).items).toEqual([])
  })
})

it.each(PLACES)(
  'on $name a worker that comes back under its old name neither owns nor strands what it held',
  async ({ place }) => {
    const { pawl, store } = await place()
    const options = { id: 'node-1', concurrency: 1, lease: '1s', recover: '50ms' } as const
    const killed = await WorkerProcess.start(store, options)
    const job = await pawl.enqueue(wait, {})
    await killed.tells({ kind: 'started', jobId: job.id, attempt: 1 })
    await killed.kill9()
    const back = await WorkerProcess.start(store, options)
    await back.tells({ kind: 'started', jobId: job.id, attempt: 2 })
    back.order(job.id)
    expect(await job.result({ timeout: '15s' })).toMatchObject({ output: { attempt: 2 } })
    const facts = await pawl.store.facts(job.id)
    expect(triggersOf(facts)).toEqual(['create', 'claim', 'expire', 'due', 'claim', 'commit'])
    const expired = facts[2] as Fact
    expect(expired.at).toBeGreaterThanOrEqual(expired.execution?.leaseUntil as number)
  },
)

function fenceOf({ job }: Held) {
  return { attempt: job.attempt, claim: job.execution?.claim ?? '' }
}

const triggersOf = (facts: readonly Fact[]) => facts.map(({ trigger }) => trigger)

/** A job that the first process holds. */
async function enqueued({ one, environment }: TwoStores, lifecycle: Lifecycle): Promise<Held> {
  const command = { jobId: environment.ids.next(), type: 'job', queue: 'default' }
  await one.enqueue([{ lifecycle, command, input: 'null' }])
  return claimed(one, 'older')
}

/** The same job, when its lease has run out, held by the second process. */
async function takenOver(
  { environment, other }: TwoStores,
  { isRecovered = false } = {},
): Promise<Held> {
  if (!isRecovered) environment.advance(LEASE_MS)
  await other.recover(10)
  environment.advance(((await other.nextDue()) ?? other.now()) - other.now())
  await other.promote(10)
  return claimed(other, 'newer')
}

async function claimed(store: Store, worker: string): Promise<Held> {
  const [held] = await store.claim({ worker, limit: 1, leaseMs: LEASE_MS, start: true })
  return held as Held
}

async function settle(store: Store, held: Held, failureClass: 'retryable' | 'terminal') {
  const kind = failureClass === 'terminal' ? 'terminal' : 'error'
  const failure = { class: failureClass, kind, message: 'no' } as const
  const command: Settlement['command'] = { kind: 'fail', fence: fenceOf(held), failure }
  return (await store.settle([{ held, command }])).answers
}

/** A few turns of the event loop, in which others can do something. */
async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise<void>((resolve) => setImmediate(resolve))
}

/** Lets a promise settle that may wait for a lock, and for time to try again. */
async function passTime({ environment }: TwoStores, promise: Promise<unknown>): Promise<void> {
  let isSettled = false
  const mark = () => {
    isSettled = true
  }
  promise.then(mark, mark)
  for (let i = 0; i < 1000 && !isSettled; i++) {
    environment.advance(1)
    await turns()
  }
  await promise
}
