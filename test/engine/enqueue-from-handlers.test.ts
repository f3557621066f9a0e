// Jobs that handlers enqueue, outside of their commit and inside of it, on both stores: none is
// made twice when an attempt is repeated, and none of a commit that was rolled back.
import { createPawl, defineJob, Terminal, typed } from 'pawl'
import { createTestPawl, runJob } from 'pawl/testing'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { childId } from '../../src/stores/derived-ids.ts'
import { brokenPromises } from '../processes/inspect.ts'
import { PLACES } from './processes/places.ts'

const WAIT = { timeout: 15_000, interval: 10 }
const timeout = 30_000

const audit = defineJob({
  name: 'audit',
  input: typed<{ n: number }>(),
  run: async ({ input }) => input.n,
})

const codeOf = (error: unknown) => (error as { code?: string }).code

describe.each(PLACES)('on $name', ({ place }) => {
  it('repeated attempts enqueue the same jobs once', { timeout }, async () => {
    const { store } = await place()
    const seen: { id: string; created: boolean }[][] = []
    const parent = defineJob({
      name: 'parent',
      retry: { max: 3, delay: 0 },
      run: async ({ enqueue, attempt }) => {
        const handles = [
          await enqueue(audit, { n: attempt }),
          await enqueue(audit, { n: 10 + attempt }),
          await enqueue(audit, { n: 20 }, { key: 'own', onConflict: 'reject' }),
          await enqueue(audit, { n: 30 }, { name: 'last' }),
        ]
        seen.push(handles.map(({ id, created }) => ({ id, created })))
        if (attempt < 3) throw new Error('once more')
        return (await handles[1]?.result({ timeout: '10s' }))?.kind
      },
    })
    const pawl = await createPawl({ store, jobs: [parent, audit] })
    onTestFinished(() => pawl.close())
    await pawl.work()
    const handle = await pawl.enqueue(parent, null)
    const outcome = await handle.result({ timeout: '15s' })
    expect(outcome).toMatchObject({ kind: 'succeeded', output: 'succeeded' })
    const ids = ['audit/1', 'audit/2', 'audit/3', 'last/1'].map((as) => childId(handle.id, as))
    expect(seen).toEqual([true, false, false].map((created) => ids.map((id) => ({ id, created }))))
    const inputs = await Promise.all(ids.map((id) => pawl.store.payloads(id)))
    expect(inputs.map((texts) => texts?.input)).toEqual([1, 11, 20, 30].map((n) => `{"n":${n}}`))
    await vi.waitFor(async () => expect((await pawl.store.counts()).lanes.ended).toBe(5), WAIT)
    const [created] = await pawl.store.facts(ids[0] as string)
    expect(created).toMatchObject({
      actor: 'worker',
      metadata: { enqueuedBy: handle.id, enqueuedAs: 'audit/1' },
    })
    const explanation = await pawl.explain(ids[0] as string)
    expect(explanation).toMatchObject({ kind: 'ended', enqueuedBy: handle.id })
    expect(explanation.says).toMatch(`It was enqueued by job ${handle.id}.`)
    expect((await pawl.explain(handle.id)).enqueuedBy).toBeUndefined()
    expect(await brokenPromises(pawl.store)).toEqual([])
  })

  it('jobs of a commit exist if and only if it succeeds', { timeout }, async () => {
    const { store } = await place()
    const codes: unknown[] = []
    let made: string | undefined
    const parent = defineJob({
      name: 'parent',
      retry: { max: 3, delay: 0 },
      run: async ({ commit, enqueue, attempt }) => {
        if (attempt === 1) {
          await commit(async (tx) => {
            await tx.enqueue(audit, { n: 1 })
            throw new Error('rolled back')
          })
        }
        if (attempt === 2) {
          // A refusal fails the commit, also if it is caught.
          await commit(async (tx) => {
            await tx.enqueue(audit, { n: 2 }, { key: 'one' })
            const again = tx.enqueue(audit, { n: 3 }, { key: 'one', onConflict: 'reject' })
            await again.catch((error) => codes.push(codeOf(error)))
          })
        }
        await commit(async (tx) => {
          await enqueue(audit, { n: 4 }).catch((error) => codes.push(codeOf(error)))
          // The commit waits for calls that its function does not wait for.
          void tx.enqueue(audit, { n: 5 }).then(({ id }) => {
            made = id
          })
        })
        await enqueue(audit, { n: 6 }).catch((error) => codes.push(codeOf(error)))
      },
    })
    const pawl = await createPawl({ store, jobs: [parent, audit] })
    onTestFinished(() => pawl.close())
    await pawl.work()
    const handle = await pawl.enqueue(parent, null)
    expect(await handle.result({ timeout: '15s' })).toMatchObject({ kind: 'succeeded' })
    await vi.waitFor(() => expect(codes).toEqual(['E_KEY_TAKEN', 'E_USE_TX', 'E_COMMITTED']), WAIT)
    expect(await pawl.job(made as string).result({ timeout: '10s' })).toMatchObject({ output: 5 })
    const { items } = await pawl.store.list({ type: 'audit' })
    expect(items.map(({ id }) => id)).toEqual([made])
    expect((await pawl.explain(made as string)).enqueuedBy).toBe(handle.id)
    expect(await brokenPromises(pawl.store)).toEqual([])
  })
})

describe('in the test kit', () => {
  const parent = defineJob({
    name: 'parent',
    retry: { max: 1, delay: '1s' },
    crashesMax: 3,
    run: async ({ enqueue, attempt, commit }) => {
      await enqueue(audit, { n: attempt })
      if (attempt === 1) throw new Error('once more')
      await commit(async (tx) => {
        await tx.enqueue(audit, { n: 100 })
      })
    },
  })

  it('enqueued() shows what handlers enqueued, and drain() runs it', async () => {
    await using kit = await createTestPawl({ jobs: [parent, audit] })
    await kit.pawl.enqueue(parent, null)
    const drained = await kit.fastForward()
    expect(drained.succeeded).toHaveLength(3)
    expect(await kit.enqueued(audit)).toEqual([{ n: 1 }, { n: 100 }])
  })

  it.each(['enqueue.written', 'enqueue.committed', 'commit.written', 'commit.committed'] as const)(
    'a process that dies at %s enqueues nothing twice',
    async (point) => {
      await using kit = await createTestPawl({ jobs: [parent, audit] })
      await kit.pawl.enqueue(parent, null)
      kit.crashAt(point)
      for (let round = 0; round < 6; round++) {
        await kit.fastForward()
        await kit.advance('1m')
      }
      const inputs = await kit.enqueued(audit)
      expect(inputs).toHaveLength(2)
      expect(inputs).toContainEqual({ n: 100 })
      expect(await brokenPromises(kit.store)).toEqual([])
    },
  )

  it('runJob shows the jobs of one attempt', async () => {
    const first = await runJob(parent, null)
    expect(first).toMatchObject({ kind: 'failed', enqueued: [{ type: 'audit', input: { n: 1 } }] })
    const second = await runJob(parent, null, { attempt: 2 })
    expect(second.enqueued.map(({ input }) => input)).toEqual([{ n: 2 }, { n: 100 }])
  })

  it('refuses what it cannot do, in the call of the handler', async () => {
    const codes: unknown[] = []
    const job = defineJob({
      name: 'refused',
      run: async ({ enqueue }) => {
        const note = (error: unknown) => codes.push((error as Error).message)
        const options = { jobId: childId('0', 'a') } as object
        await enqueue(audit, { n: 1 }, options).catch(note)
        await enqueue(audit, { n: 1 }, { name: '' }).catch(note)
        await enqueue(audit, { n: 1 }, { name: 'other' })
        // @ts-expect-error: the input is not that of the type
        await enqueue(audit, { m: 1 })
        throw new Terminal('enough')
      },
    })
    await runJob(job, null)
    expect(codes).toEqual([expect.stringContaining('jobId'), expect.stringContaining('name')])
  })

  it('a name that an earlier attempt gave to another type is refused', async () => {
    const other = defineJob({ name: 'other', run: async () => null })
    const job = defineJob({
      name: 'renamed',
      retry: { max: 1, delay: 0 },
      run: async ({ enqueue, attempt }) => {
        await (attempt === 1
          ? enqueue(audit, { n: 1 }, { name: 'child' })
          : enqueue(other, null, { name: 'child' }))
        throw new Error(`failure ${attempt}`)
      },
    })
    await using kit = await createTestPawl({ jobs: [job, audit, other] })
    const { id } = await kit.pawl.enqueue(job, null)
    await kit.fastForward()
    expect((await kit.store.get(id))?.error?.message).toMatch('child/1 is a job of type audit')
  })
})
