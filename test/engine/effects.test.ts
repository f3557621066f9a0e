// Effects as handlers declare them and as the compiler sees them.
import { type Delivery, typed } from 'pawl'
import { describe, expect, it } from 'vitest'
import { createPawl } from '../../src/engine/create-pawl.ts'
import { defineJob } from '../../src/engine/define-job.ts'
import { EffectUnknown } from '../../src/engine/errors.ts'
import { TxEnded } from '../../src/stores/errors.ts'
import { EngineBench } from './bench.ts'

interface Mail {
  readonly to: string
}

/** A delivery without its signal, which is different each time. */
const plain = ({ signal: _, ...delivery }: Delivery) => delivery

describe('an effect', () => {
  it('is delivered after the commit, with a stable key; then its job has succeeded', async () => {
    const delivered: object[] = []
    const job = defineJob({
      name: 'order',
      effects: {
        email: (delivery: Delivery<Mail>) => delivered.push(plain(delivery)),
        hook: { deliver: (delivery: Delivery) => delivered.push(plain(delivery)), timeout: '5s' },
      },
      run: ({ commit }) =>
        commit((tx) => {
          tx.effect('email', { to: 'ann' })
          tx.effect('hook')
          tx.effect('email', { to: 'bob' })
          expect(delivered).toEqual([])
          return 'ordered'
        }),
    })
    const bench = await EngineBench.open([job])
    await bench.work()
    const { id } = await bench.pawl.enqueue(job, null)
    await bench.until(async () => (await bench.state(id)) === 'succeeded')
    const common = { jobId: id, tries: 1 }
    expect(delivered).toEqual([
      { ...common, name: 'email', key: `${id}/email/1`, payload: { to: 'ann' } },
      { ...common, name: 'hook', key: `${id}/hook/1`, payload: undefined },
      { ...common, name: 'email', key: `${id}/email/2`, payload: { to: 'bob' } },
    ])
    const triggers = (await bench.store.facts(id)).map(({ trigger }) => trigger)
    expect(triggers).toEqual(['create', 'claim', 'commit', 'done'])
  })

  it('is not waited for by the result of its job', async () => {
    let deliver: () => void = () => {}
    const job = defineJob({
      name: 'slow mail',
      effects: {
        email: () =>
          new Promise<void>((resolve) => {
            deliver = resolve
          }),
      },
      run: ({ commit }) =>
        commit((tx) => {
          tx.effect('email')
          return 'ordered'
        }),
    })
    const bench = await EngineBench.open([job])
    await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    const outcome = await bench.finish(handle.result())
    expect(outcome).toMatchObject({
      kind: 'succeeded',
      output: 'ordered',
      job: { outcome: null, execution: { status: 'COMMITTED' } },
    })
    // Neither in this process, nor in another that asks later.
    const other = await createPawl({ store: bench.store, environment: bench.environment })
    const later = await bench.finish(other.job(handle.id).result())
    expect(later).toMatchObject({ kind: 'succeeded', output: 'ordered' })
    await bench.until(() => bench.store.counts().then(({ lanes }) => lanes.delivering === 1))
    deliver()
    await bench.until(async () => (await handle.get()).outcome === 'succeeded')
    expect(await bench.finish(handle.result())).toMatchObject({ output: 'ordered' })
  })

  it('that nobody could deliver fails its commit, even if the refusal is caught', async () => {
    const errors: unknown[] = []
    const job = defineJob({
      name: 'typo',
      retry: { max: 1, delay: 0 },
      effects: { email: () => {} },
      run: ({ commit, attempt }) =>
        commit(async (tx) => {
          await tx.query('CREATE TABLE IF NOT EXISTS rows (n INTEGER)')
          await tx.query('INSERT INTO rows VALUES (1)')
          try {
            if (attempt === 1) tx.effect('emial' as 'email')
          } catch (error) {
            errors.push(error)
          }
          return tx.query('SELECT n FROM rows')
        }),
    })
    const bench = await EngineBench.open([job])
    await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    const outcome = await bench.finish(handle.result())
    expect(errors).toEqual([expect.any(EffectUnknown)])
    expect(outcome).toMatchObject({ output: [{ n: 1 }], job: { attempt: 2 } })
    const facts = await bench.store.facts(handle.id)
    expect(facts.find(({ trigger }) => trigger === 'retry')?.error?.message).toContain('emial')
    expect((await bench.store.listEffects({})).items).toEqual([])
  })

  it('of a commit that fails was never there', async () => {
    let delivered = 0
    const job = defineJob({
      name: 'rolled back',
      retry: { max: 0 },
      effects: { email: () => delivered++ },
      run: ({ commit }) =>
        commit((tx) => {
          tx.effect('email')
          throw new Error('no')
        }),
    })
    const bench = await EngineBench.open([job])
    await bench.work()
    await bench.finish((await bench.pawl.enqueue(job, null)).result())
    await bench.until(() => bench.events.some(({ type }) => type === 'reported'))
    expect((await bench.store.listEffects({})).items).toEqual([])
    expect(delivered).toBe(0)
  })

  it('whose payload cannot be stored is refused, with the commit', async () => {
    const job = defineJob({
      name: 'unstorable',
      retry: { max: 0 },
      effects: { email: (_: Delivery<unknown>) => {} },
      run: ({ commit }) =>
        commit((tx) => {
          tx.effect('email', () => 10)
          return 1
        }),
    })
    const bench = await EngineBench.open([job])
    await bench.work()
    const outcome = await bench.finish((await bench.pawl.enqueue(job, null)).result())
    expect(outcome).toMatchObject({ kind: 'failed', error: { kind: 'validation' } })
  })

  it('can be declared beside a job that is enqueued in the same transaction', async () => {
    const follow = defineJob({ name: 'follow', run: () => 'followed' })
    const order = defineJob({
      name: 'order',
      effects: { email: () => {} },
      run: ({ commit }) =>
        commit(async (tx) => {
          tx.effect('email')
          const { id } = await bench.pawl.enqueue(follow, null, { tx })
          return id
        }),
    })
    const bench = await EngineBench.open([order, follow])
    await bench.work()
    const outcome = await bench.finish((await bench.pawl.enqueue(order, null)).result())
    if (outcome.kind !== 'succeeded') throw new Error(outcome.kind)
    const followed = await bench.finish(bench.pawl.job(outcome.output).result())
    expect(followed).toMatchObject({ output: 'followed' })
  })

  it('cannot be declared once the commit has ended', async () => {
    const errors: unknown[] = []
    const job = defineJob({
      name: 'late',
      effects: { email: () => {} },
      run: async ({ commit }) => {
        let late: () => void = () => {}
        await commit((tx) => {
          late = () => tx.effect('email')
          return 1
        })
        try {
          late()
        } catch (error) {
          errors.push(error)
        }
      },
    })
    const bench = await EngineBench.open([job])
    await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    await bench.until(() => errors.length > 0)
    expect(errors).toEqual([expect.any(TxEnded)])
    expect((await bench.finish(handle.result())).kind).toBe('succeeded')
    expect((await bench.store.listEffects({})).items).toEqual([])
  })
})

describe('the definition of effects', () => {
  it.each([
    [{ '': () => {} }],
    [{ 'a\nb': () => {} }],
    [{ a: { deliver: 1 } }],
    [{ a: undefined }],
    [{ a: { deliver: () => {}, timeout: '2h' } }],
    [{ a: { deliver: () => {}, timeout: 0 } }],
    [{ a: { deliver: () => {}, retry: { max: -1 } } }],
    [{ a: { deliver: () => {}, retry: { delay: 'soon' } } }],
  ])('%j is refused when the job is defined', (effects) => {
    const error = expect.objectContaining({ code: 'E_DEFINITION_INVALID' })
    const given = effects as unknown as Record<string, () => void>
    expect(() => defineJob({ name: 'a', effects: given })).toThrow(error)
    expect(() => defineJob({ name: 'a' }).implement(() => 1, { effects: given })).toThrow(error)
  })

  it('types names and payloads in the commit', () => {
    const effects = {
      email: (delivery: Delivery<Mail>) => delivery.payload.to,
      count: { deliver: ({ payload }: Delivery<number>) => payload, timeout: '5s' },
      bare: () => {},
    } as const
    defineJob({
      name: 'typed',
      input: typed<{ n: number }>(),
      effects,
      run: ({ input, commit }) =>
        commit((tx) => {
          tx.effect('email', { to: 'ann' })
          tx.effect('count', input.n)
          tx.effect('bare')
          // @ts-expect-error there is no such effect
          tx.effect('mail', { to: 'ann' })
          // @ts-expect-error it takes something else
          tx.effect('email', { from: 'ann' })
          // @ts-expect-error it takes something
          tx.effect('count')
        }),
    })
    defineJob({ name: 'elsewhere', input: typed<{ n: number }>() }).implement(
      ({ input, commit }) =>
        commit((tx) => {
          tx.effect('count', input.n)
          // @ts-expect-error it takes something else
          tx.effect('count', 'one')
          // @ts-expect-error there is no such effect
          tx.effect('mail', 1)
        }),
      { effects },
    )
    defineJob({
      name: 'plain',
      effects: { email: ({ key, payload }) => [key, payload] },
      run: ({ commit }) =>
        commit((tx) => {
          tx.effect('email', { to: 'anybody' })
          // @ts-expect-error there is no such effect
          tx.effect('mail', 1)
        }),
    })
    // What stands behind its code the compiler does not know yet; the commit does.
    defineJob({
      name: 'behind',
      run: ({ commit }) => commit((tx) => tx.effect('email', 1)),
      effects: { email: ({ key, payload }) => [key, payload] },
    })
  })

  it('can be given with the code alone, and stays out of processes that only enqueue', async () => {
    const key = defineJob({ name: 'apart' })
    let delivered = 0
    const code = key.implement(
      ({ commit }) =>
        commit((tx) => {
          tx.effect('email')
          return 1
        }),
      { effects: { email: () => delivered++ } },
    )
    expect([key.effects.size, code.effects.size]).toEqual([0, 1])
    const bench = await EngineBench.open([code])
    await bench.work()
    await bench.pawl.enqueue(key, null)
    await bench.until(() => delivered === 1)
  })
})
