// The commit boundary as a handler sees it.
import { StaleFence } from 'pawl'
import { Committed, standard } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { defineJob } from '../../src/engine/define-job.ts'
import type { Store } from '../../src/stores/contract/store.ts'
import { StoreUnavailable } from '../../src/stores/errors.ts'
import { wrapStore } from '../../src/stores/wrap-store.ts'
import { EngineBench } from './bench.ts'

const INVOICES = 'CREATE TABLE IF NOT EXISTS invoices (number TEXT NOT NULL) STRICT'

describe('a commit', () => {
  it('makes the rows and the result true together, and ends the attempt', async () => {
    const job = defineJob({
      name: 'invoice',
      run: async ({ commit, jobId }) => {
        const result = await commit(async (tx) => {
          await tx.query(INVOICES)
          await tx.query('INSERT INTO invoices VALUES (?)', [jobId])
          return { invoiced: 1 }
        })
        expect(result).toEqual({ invoiced: 1 })
        return 'ignored'
      },
    })
    const bench = await EngineBench.open([job])
    await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    const outcome = await bench.finish(handle.result())
    expect(outcome).toMatchObject({ kind: 'succeeded', output: { invoiced: 1 } })
    const facts = await bench.store.facts(handle.id)
    expect(facts.map(({ trigger }) => trigger)).toEqual(['create', 'claim', 'commit'])
  })

  it('whose function throws leaves nothing, and the job is retried', async () => {
    const job = defineJob({
      name: 'failing',
      retry: { max: 1, delay: 0 },
      run: ({ commit, attempt }) =>
        commit(async (tx) => {
          await tx.query(INVOICES)
          await tx.query('INSERT INTO invoices VALUES (?)', [`attempt ${attempt}`])
          if (attempt === 1) throw new Error('the printer is on fire')
          return tx.query('SELECT number FROM invoices')
        }),
    })
    const bench = await EngineBench.open([job])
    await bench.work()
    const outcome = await bench.finish((await bench.pawl.enqueue(job, null)).result())
    expect(outcome).toMatchObject({ kind: 'succeeded', output: [{ number: 'attempt 2' }] })
  })

  it('a second time is given the result of the first, and its function does not run', async () => {
    let runs = 0
    const job = defineJob({
      name: 'twice',
      run: async ({ commit }) => [await commit(() => ++runs), await commit(() => ++runs)],
    })
    const bench = await EngineBench.open([job])
    await bench.work()
    const outcome = await bench.finish((await bench.pawl.enqueue(job, null)).result())
    expect(outcome).toMatchObject({ kind: 'succeeded', output: 1 })
    expect(runs).toBe(1)
  })

  it('stands although the handler throws after it', async () => {
    const job = defineJob({
      name: 'afterwards',
      run: async ({ commit }) => {
        await commit(() => 'kept')
        throw new Error('too late to matter')
      },
    })
    const bench = await EngineBench.open([job])
    await bench.work()
    const outcome = await bench.finish((await bench.pawl.enqueue(job, null)).result())
    expect(outcome).toMatchObject({ kind: 'succeeded', output: 'kept', job: { attempt: 1 } })
  })

  it('that was made unheard is not reported as a failure again and again', async () => {
    const job = defineJob({ name: 'unheard', run: ({ commit }) => commit(() => 'kept') })
    const reports: string[] = []
    const bench = await EngineBench.open([job], (store) => {
      const settle: Store['settle'] = (settlements, next) => {
        reports.push(...settlements.map(({ command }) => command.kind))
        return store.settle(settlements, next)
      }
      const commit: Store['commit'] = async (...values) => {
        await store.commit(...values)
        throw new StoreUnavailable(0, 'simulated')
      }
      const own: Partial<Store> = { settle, commit }
      return new Proxy(store, {
        get(target, name) {
          const value = own[name as keyof Store] ?? target[name as keyof Store]
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
    })
    const worker = await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    const outcome = await bench.finish(handle.result())
    expect(outcome).toMatchObject({ kind: 'succeeded', output: 'kept', job: { failures: 0 } })
    await bench.until(() => worker.running === 0)
    expect(reports).toEqual(['release'])
    const refused = bench.events.filter(({ type }) => type === 'refused')
    const expected = { command: 'release', jobId: handle.id, error: expect.any(Committed) }
    expect(refused).toEqual([expect.objectContaining(expected)])
  })

  it.each([
    ['lets the error through', (error: unknown) => Promise.reject(error)],
    ['hides it behind its own', () => Promise.reject(new Error('the booking failed'))],
  ])('that the store failed spends a release and no failure: a handler that %s', async (_, on) => {
    let outages = 3
    const job = defineJob({
      name: 'again',
      retry: { max: 0 },
      run: ({ commit }) => commit(() => 'kept').catch(on),
    })
    const bench = await EngineBench.open([job], (store) =>
      wrapStore(store, {
        commit: (...values) =>
          outages-- > 0
            ? Promise.reject(new StoreUnavailable(0, 'away', 'none'))
            : store.commit(...values),
      }),
    )
    await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    expect(await bench.finish(handle.result())).toMatchObject({ kind: 'succeeded', output: 'kept' })
    expect(await handle.get()).toMatchObject({ attempt: 4, failures: 0, crashes: 0, releases: 3 })
  })

  it('that the store never accepts is released a bounded number of times', async () => {
    const job = defineJob({ name: 'never', run: ({ commit }) => commit(() => 'never') })
    const away = () => Promise.reject(new StoreUnavailable(0, 'away', 'none'))
    const bench = await EngineBench.open([job], (store) => wrapStore(store, { commit: away }))
    await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    expect(await bench.finish(handle.result())).toMatchObject({ kind: 'parked' })
    expect(await handle.get()).toMatchObject({ failures: 0, releases: 100 })
  })

  it('that follows one which the store failed may fail for reasons of its own', async () => {
    let outages = 1
    const job = defineJob({
      name: 'own',
      retry: { max: 0 },
      run: async ({ commit }) => {
        await commit(() => 1).catch(() => {})
        return commit(() => {
          throw new Error('no such order')
        })
      },
    })
    const bench = await EngineBench.open([job], (store) =>
      wrapStore(store, {
        commit: (...values) =>
          outages-- > 0 ? Promise.reject(new StoreUnavailable(0, 'away')) : store.commit(...values),
      }),
    )
    await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    await bench.finish(handle.result())
    expect(await handle.get()).toMatchObject({ attempt: 1, outcome: null, releases: 0 })
  })

  it('of an attempt that lost its job is refused, and writes nothing', async () => {
    let enter: () => void = () => {}
    const errors: unknown[] = []
    const job = defineJob({
      name: 'late',
      run: async ({ commit }) => {
        await new Promise<void>((resolve) => {
          enter = resolve
        })
        await commit(() => 'never').catch((error: unknown) => {
          errors.push(error)
          throw error
        })
      },
    })
    const bench = await EngineBench.open([job])
    await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    await bench.until(async () => (await bench.state(handle.id)) === 'running')
    const requester = { actor: 'operator', operator: 'ann', note: 'stop it' } as const
    await bench.store.applyCommand([handle.id], { kind: 'park' }, requester)
    enter()
    await bench.until(() => errors.length > 0)
    expect(errors[0]).toBeInstanceOf(StaleFence)
    expect((await handle.get()).state).toBe('quarantined')
    expect(standard.roles.get('quarantined')).toBe('parked')
  })

  it('cannot be cancelled any more', async () => {
    const job = defineJob({ name: 'done', run: ({ commit }) => commit(() => 1) })
    const bench = await EngineBench.open([job])
    await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    await bench.finish(handle.result())
    await expect(handle.cancel()).rejects.toThrow(Committed)
  })
})
