// R1 (state model) through the real engine: what its execution records show after a crash, and
// a worker that is killed in the middle of a job.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createPawl, defineJob } from 'pawl'
import { executionId, executionsOf, type Fact, leased, stateOfExecutions } from 'pawl/rules'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Store } from '../../src/stores/contract/store.ts'
import { StoreUnavailable } from '../../src/stores/errors.ts'
import { EngineBench } from '../engine/bench.ts'
import { freshFolder } from '../processes/folder.ts'

/** The statuses of a job's executions; its state is told by them alone, after each of its facts. */
async function statusesOf(store: Store, id: string): Promise<string[]> {
  const facts = await store.facts(id)
  for (const [i, { to }] of facts.entries()) {
    expect(stateOfExecutions(executionsOf(facts.slice(0, i + 1)))).toBe(to)
  }
  const executions = executionsOf(facts)
  expect(executions.map(({ execId }) => execId)).toEqual(
    executions.map((_, i) => executionId(id, i + 1)),
  )
  return executions.map(({ status, abort }) => (abort === null ? status : `${status}: ${abort}`))
}

describe('after a crash', () => {
  it('before COMMITTED the next worker takes over, and the record shows both', async () => {
    const job = defineJob({ name: 'taken', lifecycle: leased, run: ({ attempt }) => attempt })
    const bench = await EngineBench.open([job])
    const handle = await bench.pawl.enqueue(job, null)
    await bench.store.claim({ worker: 'crashed', limit: 1, leaseMs: 30_000, start: true })
    await bench.work({ id: 'next' })
    expect(await bench.finish(handle.result())).toMatchObject({ output: 2 })
    expect(await statusesOf(bench.store, handle.id)).toEqual(['ABORTED: lease_expired', 'DONE'])
    const executions = executionsOf(await bench.store.facts(handle.id))
    expect(executions.map(({ leaseOwner }) => leaseOwner)).toEqual(['crashed', 'next'])
  })

  it('of the way to the store after COMMITTED no worker runs the job again', async () => {
    let runs = 0
    const job = defineJob({
      name: 'committed',
      lifecycle: leased,
      run: ({ commit }) => {
        runs++
        return commit(async (tx) => {
          await tx.query('CREATE TABLE IF NOT EXISTS effects (n INTEGER NOT NULL)')
          await tx.query('INSERT INTO effects VALUES (1)')
          return tx.query('SELECT count(*) AS n FROM effects')
        })
      },
    })
    const losingAnswers = (store: Store): Store =>
      new Proxy(store, {
        get(target, name: keyof Store) {
          const value: unknown = target[name]
          if (typeof value !== 'function') return value
          if (name !== 'commit') return value.bind(target)
          return async (...given: Parameters<Store['commit']>) => {
            await target.commit(...given)
            throw new StoreUnavailable(0, 'the answer was lost')
          }
        },
      })
    const bench = await EngineBench.open([job], losingAnswers)
    await Promise.all([bench.work(), bench.work()])
    const handle = await bench.pawl.enqueue(job, null)
    expect(await bench.finish(handle.result())).toMatchObject({ output: [{ n: 1 }] })
    const start = bench.environment.clock.now()
    await bench.until(() => bench.environment.clock.now() >= start + 120_000)
    expect(runs).toBe(1)
    expect(await statusesOf(bench.store, handle.id)).toEqual(['DONE'])
  })
})

describe('a worker process', () => {
  const PROGRAM = fileURLToPath(new URL('killed-worker.mjs', import.meta.url))
  const LEASE_MS = 2000

  it('keeps its lease while it lives, and loses it in time when it is killed', {
    timeout: 40_000,
  }, async () => {
    const store = `sqlite:${join(freshFolder(), 'jobs.db')}`
    const job = defineJob({ name: 'long', lifecycle: leased, run: ({ attempt }) => attempt })
    await using pawl = await createPawl({ store, jobs: [job] })
    const handle = await pawl.enqueue(job, null)
    const child = spawn(process.execPath, [PROGRAM, store, String(LEASE_MS)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const said = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    expect(await said.next()).toMatchObject({ value: 'started' })
    // From now on somebody looks for expired leases all the time.
    await pawl.work({ id: 'next', recover: 100 })
    expect(await said.next()).toMatchObject({ value: 'outlived its lease' })
    expect(await handle.get()).toMatchObject({ state: 'RUNNING', attempt: 1 })
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    const killedAt = pawl.store.now()
    await exited
    expect(await handle.result({ timeout: '20s' })).toMatchObject({ output: 2 })
    expect(await statusesOf(pawl.store, handle.id)).toEqual(['ABORTED: lease_expired', 'DONE'])
    const facts = await pawl.store.facts(handle.id)
    const expired = facts.find(({ trigger }) => trigger === 'expire') as Fact
    expect(expired.at).toBeGreaterThanOrEqual(expired.execution?.leaseUntil as number)
    expect(expired.at - killedAt).toBeLessThanOrEqual(LEASE_MS + 2000)
  })
})
