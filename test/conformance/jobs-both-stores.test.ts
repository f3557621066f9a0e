// What R0 to R3 ask of a job that is stored: times, counters, fields and records,
// read back from SQLite and from PostgreSQL, by their clock, which the test moves.
import { JobNotFound, type Lifecycle } from 'pawl'
import { type Command, document, hardened, leased, task } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { hopsOf } from '../../src/core/job/facts.ts'
import { type Examined, STORES } from '../stores/examined-stores.ts'
import { TABLES } from '../transitions/tables.ts'
import { ANN, LEASE_MS, StoredJob } from './stored-job.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** Every command that a person or the engine can give a job that nobody holds or somebody holds. */
const COMMANDS: readonly Command[] = [
  { kind: 'submit' },
  { kind: 'due' },
  { kind: 'exhaust' },
  { kind: 'cancel' },
  { kind: 'park' },
  { kind: 'redrive' },
  { kind: 'discard' },
  { kind: 'done', attempt: 1 },
]

/** Jobs of a lifecycle in each state that they can have at rest. */
async function everyState(examined: Examined, lifecycle: Lifecycle): Promise<StoredJob[]> {
  const jobs: StoredJob[] = []
  const enqueue = async () => {
    const job = await StoredJob.enqueue(examined, lifecycle)
    jobs.push(job)
    return job
  }
  const succeeded = await enqueue()
  await succeeded.commit(await succeeded.claim())
  const failed = await enqueue()
  await failed.fail(await failed.claim(), 'terminal')
  const retried = await enqueue()
  await retried.fail(await retried.claim(), 'retryable')
  const held = await enqueue()
  await held.claim()
  await enqueue()
  return jobs
}

describe.each(STORES)('on $name', ({ open }) => {
  describe('R0', () => {
    it('each change of state is one stored fact with time, actor and reason', async () => {
      const job = await StoredJob.enqueue(await open(), hardened)
      await job.fail(await job.claim(), 'terminal')
      await job.applyCommand({ kind: 'redrive' })
      const facts = await job.facts()
      expect(facts.map(({ seq }) => seq)).toEqual([1, 2, 3, 4])
      for (const fact of facts) {
        expect(fact).toMatchObject({ jobId: job.id, at: job.now(), to: expect.any(String) })
      }
      expect(facts[0]).toMatchObject({ trigger: 'create', to: 'pending' })
      expect(facts[1]).toMatchObject({ trigger: 'claim', from: 'pending', to: 'running' })
      expect(facts[1]).toMatchObject({ actor: 'worker' })
      expect(facts[2]).toMatchObject({ from: 'running', via: ['failed'], to: 'quarantined' })
      expect(facts[3]).toMatchObject({ from: 'quarantined', to: 'pending', actor: 'operator' })
      const { operator, note, metadata } = ANN
      expect(facts[3]).toMatchObject({ operator, note, metadata })
      await job.expectSound()
    })

    it('a claim raises attempts by one and sets updated_at to its time', async () => {
      const job = await StoredJob.enqueue(await open(), hardened)
      const before = await job.view()
      expect(before).toMatchObject({ status: 'pending', attempts: 0 })
      await job.pass(1234)
      await job.claim()
      const after = await job.view()
      expect(after).toMatchObject({ status: 'running', attempts: 1, updated_at: job.now() })
      expect(after.created_at).toBe(before.created_at)
      expect((await job.get()).execution).toMatchObject({ worker: 'w1', status: 'IN_PROGRESS' })
    })

    it('a retryable failure waits in failed, and is pending when it is due', async () => {
      const job = await StoredJob.enqueue(await open(), hardened)
      await job.fail(await job.claim(), 'retryable')
      expect(await job.state()).toBe('failed')
      const runAt = (await job.get()).runAt as number
      expect(runAt).toBeGreaterThan(job.now())
      await job.pass(runAt - job.now() - 1)
      expect(await job.state()).toBe('failed')
      await job.pass(1)
      expect(await job.state()).toBe('pending')
      expect((await job.ways()).at(-1)).toBe('failed → pending')
      await job.expectSound()
    })

    it('a job that crashes more often than its budget allows is quarantined', async () => {
      const job = await StoredJob.enqueue(await open(), hardened)
      const { crashesMax } = hardened.policy
      for (let crash = 1; crash <= crashesMax; crash++) {
        await job.claim()
        await job.pass(LEASE_MS)
        expect(await job.get()).toMatchObject({ crashes: crash })
        await job.pass(60_000)
        expect(await job.state()).toBe('pending')
      }
      await job.claim()
      await job.pass(LEASE_MS)
      expect(await job.get()).toMatchObject({ state: 'quarantined', attempt: crashesMax + 1 })
      expect((await job.ways()).at(-1)).toBe('running → failed → quarantined')
      await job.expectSound()
    })

    it('the same state again writes no fact; an unknown job is JobNotFound', async () => {
      const examined = await open()
      const job = await StoredJob.enqueue(examined, hardened)
      const held = await job.claim()
      const settlement = (kind: string) => ({
        held,
        command: {
          kind,
          fence: { attempt: 1, claim: held.job.execution?.claim ?? '' },
        } as never,
        payload: '1',
      })
      const start = await job.store.settle([settlement('start')])
      expect(start.answers[0]?.kind).toBe('same')
      await job.store.settle([settlement('commit')])
      const facts = await job.facts()
      const again = await job.store.settle([settlement('commit')])
      expect(again.answers[0]?.kind).toBe('same')
      expect(await job.facts()).toEqual(facts)
      const parked = await StoredJob.enqueue(examined, hardened)
      await parked.applyCommand({ kind: 'park' })
      expect((await parked.applyCommand({ kind: 'park' }))?.kind).toBe('same')
      expect(await parked.facts()).toHaveLength(2)
      const unknown = examined.environment.ids.next()
      const [answer] = await job.store.applyCommand([unknown], { kind: 'park' }, ANN)
      expect(answer).toMatchObject({ kind: 'rejected', error: expect.any(JobNotFound) })
    })
  })

  describe.each([hardened, leased, document, task])('the lifecycle $name', (lifecycle) => {
    it('takes edges of its document only, in every state and whatever is asked', async () => {
      const { documented, added } = TABLES.find(({ name }) => name === lifecycle.name) as never as {
        documented: Record<string, string>
        added: Record<string, string>
      }
      const isEdge = (from: string, to: string) =>
        `${documented[from] ?? ''} ${added[from] ?? ''}`.split(/\s+/).includes(to)
      const seen = { done: 0, same: 0, rejected: 0, asked: 0 }
      const examined = await open()
      for (const command of COMMANDS) {
        for (const job of await everyState(examined, lifecycle)) {
          const before = [await job.get(), await job.facts()] as const
          const answer = await job.applyCommand(command)
          const what = `${command.kind} of a job that is ${before[0].state}`
          seen[answer?.kind ?? 'asked']++
          if (answer?.kind === 'done') {
            const moves = hopsOf(answer.fact).filter(({ from, to }) => from !== to)
            for (const { from, to } of moves) expect(isEdge(`${from}`, to), what).toBe(true)
            expect(await job.facts()).toHaveLength(before[1].length + 1)
          } else {
            expect([await job.get(), await job.facts()], what).toEqual(before)
          }
        }
      }
      await (await StoredJob.enqueue(examined, lifecycle)).expectSound()
      expect(seen.done).toBeGreaterThan(0)
      expect(seen.rejected).toBeGreaterThan(0)
    })
  })

  describe('R1', () => {
    it('a job has a unique id, a payload of any kind, an attempt and times', async () => {
      const examined = await open()
      const payload = '{"any":["kind",1,null,{"of":"thing"}]}'
      const job = await StoredJob.enqueue(examined, leased, {}, payload)
      expect(job.id).toMatch(UUID)
      expect((await job.store.payloads(job.id))?.input).toBe(payload)
      const view = await job.view()
      expect(view).toMatchObject({ job_id: job.id, state: 'PENDING', attempt: 0 })
      expect(view).toMatchObject({ created_at: job.now(), updated_at: job.now() })
      await job.pass(500)
      await job.release(await job.claim())
      await job.pass(500)
      await job.claim()
      const later = await job.view()
      expect(later).toMatchObject({ state: 'RUNNING', attempt: 2, updated_at: job.now() })
      expect(later.created_at).toBe(view.created_at)
    })

    it('an execution has its documented fields, and every attempt stays on record', async () => {
      const job = await StoredJob.enqueue(await open(), leased)
      await job.claim({ worker: 'a', start: false })
      const [leasedOnly] = await job.executions()
      expect(leasedOnly).toMatchObject({
        execId: `${job.id}/1`,
        jobId: job.id,
        attempt: 1,
        leaseOwner: 'a',
        leaseExpiresAt: job.now() + LEASE_MS,
        status: 'LEASED',
        startedAt: null,
        finishedAt: null,
      })
      const claimedAt = job.now()
      await job.pass(LEASE_MS)
      const second = await job.claim({ worker: 'b' })
      await job.pass(1000)
      await job.commit(second)
      const executions = await job.executions()
      expect(executions).toMatchObject([
        { execId: `${job.id}/1`, status: 'ABORTED', abort: 'lease_expired', startedAt: null },
        {
          execId: `${job.id}/2`,
          attempt: 2,
          leaseOwner: 'b',
          status: 'DONE',
          startedAt: claimedAt + LEASE_MS,
          finishedAt: claimedAt + LEASE_MS + 1000,
        },
      ])
      await job.expectSound()
    })

    it('a lease that expires before the start is a release, after it a crash', async () => {
      const job = await StoredJob.enqueue(await open(), leased)
      await job.claim({ start: false })
      await job.pass(LEASE_MS)
      expect(await job.get()).toMatchObject({ state: 'PENDING', releases: 1, crashes: 0 })
      await job.claim()
      await job.pass(LEASE_MS - 1)
      expect(await job.state()).toBe('RUNNING')
      await job.pass(1)
      expect(await job.get()).toMatchObject({ state: 'PENDING', releases: 1, crashes: 1 })
    })

    it('a terminal error ends in FAILED with a final ABORTED execution', async () => {
      const job = await StoredJob.enqueue(await open(), leased)
      await job.fail(await job.claim(), 'terminal')
      expect(await job.get()).toMatchObject({ state: 'FAILED', outcome: 'failed' })
      expect(await job.executions()).toMatchObject([{ status: 'ABORTED', abort: 'error' }])
      await job.expectSound()
    })
  })

  describe('R2', () => {
    it('its metadata is stored in every state that a job passes', async () => {
      const job = await StoredJob.enqueue(await open(), document, { hold: true })
      const born = job.now()
      const fixed = { jobId: job.id, createdAt: born, maxRetries: 3 }
      const fresh = { startedAt: null, completedAt: null, retryCount: 0 }
      const clean = { lastError: null, errorType: null }
      expect(await job.view()).toEqual({ ...fixed, state: 'CREATED', ...fresh, ...clean })
      await job.applyCommand({ kind: 'submit' })
      expect(await job.view()).toEqual({ ...fixed, state: 'QUEUED', ...fresh, ...clean })
      await job.pass(100)
      const first = await job.claim()
      const startedAt = job.now()
      expect(await job.view()).toMatchObject({ ...fixed, state: 'RUNNING', startedAt })
      await job.fail(first, 'retryable', 'no memory')
      expect(await job.view()).toMatchObject({
        ...{ ...fixed, state: 'RETRYING', retryCount: 1, completedAt: null },
        ...{ lastError: expect.stringContaining('no memory'), errorType: 'RETRYABLE' },
      })
      await job.pass(1000)
      const again = await job.claim()
      expect(await job.view()).toMatchObject({ startedAt: startedAt + 1000, retryCount: 1 })
      await job.pass(10)
      await job.commit(again)
      expect(await job.view()).toEqual({
        ...{ ...fixed, state: 'SUCCEEDED', startedAt: startedAt + 1000, retryCount: 1, ...clean },
        completedAt: startedAt + 1010,
      })
      await job.expectSound()
    })

    it('a job is retried three times, each exactly one second later, and then FAILED', async () => {
      const job = await StoredJob.enqueue(await open(), document)
      for (let retry = 1; retry <= 3; retry++) {
        await job.fail(await job.claim(), 'retryable')
        expect(await job.view()).toMatchObject({ state: 'RETRYING', retryCount: retry })
        await job.pass(999)
        expect(await job.state()).toBe('RETRYING')
        await job.pass(1)
        expect(await job.state()).toBe('QUEUED')
      }
      await job.fail(await job.claim(), 'retryable')
      const view = await job.view()
      expect(view).toMatchObject({ state: 'FAILED', retryCount: 3, errorType: 'RETRYABLE' })
      expect(view.completedAt).toBe(job.now())
      expect((await job.get()).reason).toBe('retries_exhausted')
      await job.expectSound()
    })

    it('a terminal error is FAILED at once, and a lost worker is retried', async () => {
      const examined = await open()
      const job = await StoredJob.enqueue(examined, document)
      await job.fail(await job.claim(), 'terminal')
      expect(await job.view()).toMatchObject({ state: 'FAILED', retryCount: 0 })
      expect(await job.view()).toMatchObject({ errorType: 'TERMINAL', completedAt: job.now() })
      const lost = await StoredJob.enqueue(examined, document)
      await lost.claim()
      await lost.pass(LEASE_MS)
      expect(await lost.view()).toMatchObject({ state: 'RETRYING', retryCount: 1 })
      await job.expectSound()
    })

    it('a delayed job stays CREATED until it is due, and is given to one worker', async () => {
      const examined = await open()
      const runAt = examined.store.now() + 5000
      const job = await StoredJob.enqueue(examined, document, { runAt })
      await job.pass(4999)
      expect(await job.state()).toBe('CREATED')
      await job.pass(1)
      expect(await job.state()).toBe('QUEUED')
      await job.claim()
      const request = { worker: 'w2', limit: 1, leaseMs: LEASE_MS, start: true }
      expect(await (await examined.again()).claim(request)).toEqual([])
    })

    it('cancellation ends in FAILED from every active state', async () => {
      const examined = await open()
      const made = async (submit: boolean) =>
        StoredJob.enqueue(examined, document, submit ? {} : { hold: true })
      const retrying = await made(true)
      await retrying.fail(await retrying.claim(), 'retryable')
      const running = await made(true)
      await running.claim()
      const queued = await made(true)
      const created = await made(false)
      for (const job of [created, queued, running, retrying]) {
        const from = await job.state()
        expect((await job.applyCommand({ kind: 'cancel' }))?.kind, from).toBe('done')
        expect(await job.get(), from).toMatchObject({ state: 'FAILED', reason: 'cancelled' })
      }
      await created.expectSound()
    })
  })

  describe('R3', () => {
    it('a claimed task is running under an owner, with a lease that lasts', async () => {
      const examined = await open()
      const job = await StoredJob.enqueue(examined, task)
      expect(await job.view()).toMatchObject({ status: 'pending', try_count: 0, max_tries: 3 })
      await job.pass(100)
      await job.claim({ worker: 'w1' })
      expect(await job.view()).toMatchObject({
        ...{ id: job.id, status: 'running', try_count: 1, lease_owner: 'w1', error: null },
        ...{ lease_timeout: job.now() + LEASE_MS, updated_at: job.now() },
      })
      const request = { worker: 'w2', limit: 1, leaseMs: LEASE_MS, start: true }
      expect(await (await examined.again()).claim(request)).toEqual([])
    })

    it('done and error come with a new updated_at, the exception and one fact each', async () => {
      const examined = await open()
      const good = await StoredJob.enqueue(examined, task)
      const held = await good.claim()
      await good.pass(1000)
      await good.commit(held)
      expect(await good.view()).toMatchObject({ status: 'done', updated_at: good.now() })
      expect(await good.ways()).toEqual(['pending → running', 'running → done'])
      const bad = await StoredJob.enqueue(examined, task)
      const other = await bad.claim()
      await bad.pass(1000)
      await bad.fail(other, 'terminal', 'no such file')
      const view = await bad.view()
      expect(view).toMatchObject({ status: 'error', updated_at: bad.now(), lease_owner: null })
      expect(view.error).toContain('no such file')
      expect(await bad.ways()).toEqual(['pending → running', 'running → error'])
      await good.expectSound()
    })

    it('an expired lease returns the task to pending until its tries are spent', async () => {
      const job = await StoredJob.enqueue(await open(), task)
      await job.release(await job.claim())
      for (let tries = 1; tries <= 3; tries++) {
        await job.pass(60_000)
        const held = await job.claim()
        expect(await job.view()).toMatchObject({ try_count: tries, max_tries: 3 })
        await job.pass(LEASE_MS)
        expect(await job.state()).toBe(tries < 3 ? 'pending' : 'error')
        const fence = { attempt: held.job.attempt, claim: held.job.execution?.claim ?? '' }
        const late = { held, command: { kind: 'commit', fence } as const, payload: '1' }
        const { answers } = await job.store.settle([late])
        expect(answers[0]).toMatchObject({ kind: 'rejected', error: { code: 'E_STALE_FENCE' } })
      }
      await job.expectSound()
    })

    it('a cancelled task ends in error, and only an operator resets it', async () => {
      const examined = await open()
      const running = await StoredJob.enqueue(examined, task)
      await running.claim()
      await running.applyCommand({ kind: 'cancel' })
      expect(await running.get()).toMatchObject({ state: 'error', reason: 'cancelled' })
      await running.pass(600_000)
      expect(await running.state()).toBe('error')
      await running.applyCommand({ kind: 'redrive' })
      expect((await running.facts()).at(-1)).toMatchObject({ operator: 'ann', to: 'pending' })
    })
  })
})
