// Steps and effects under the test kit.
import { defineJob } from 'pawl'
import { createTestPawl, runJob } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'

describe('drain', () => {
  it('delivers the effects of its jobs, and waits for slow deliveries', async () => {
    const sent: unknown[] = []
    const order = defineJob({
      name: 'order',
      effects: {
        mail: async ({ payload, key }: { payload: string; key: string }) => {
          await (await import('node:fs/promises')).readFile('package.json')
          sent.push([payload, key])
        },
      },
      run: ({ commit }) => commit((tx) => tx.effect('mail', 'hello')),
    })
    const test = await createTestPawl({ jobs: [order] })
    onTestFinished(() => test.close())
    const { id } = await test.pawl.enqueue(order, null)
    expect(await test.drain()).toMatchObject({ succeeded: [id], delivering: [] })
    expect(sent).toEqual([['hello', `${id}/mail/1`]])
  })

  it('returns jobs whose effects wait, and fastForward waits for these as well', async () => {
    let tries = 0
    const order = defineJob({
      name: 'order',
      effects: {
        mail: {
          retry: { max: 3, delay: '1h', backoff: 'fixed', jitter: 0 },
          deliver: () => {
            if (++tries < 3) throw new Error('away')
          },
        },
      },
      run: ({ commit }) => commit((tx) => tx.effect('mail', 1)),
    })
    const test = await createTestPawl({ jobs: [order] })
    onTestFinished(() => test.close())
    const { id } = await test.pawl.enqueue(order, null)
    expect(await test.drain()).toMatchObject({ succeeded: [], delivering: [id] })
    await test.advance('1h')
    expect(await test.drain()).toMatchObject({ attempts: [] })
    expect(tries).toBe(2)
    await test.fastForward()
    expect(tries).toBe(3)
    expect(await test.store.get(id)).toMatchObject({ outcome: 'succeeded' })
  })

  it('can crash between a delivery and its record: the effect is delivered again', async () => {
    const keys: string[] = []
    const order = defineJob({
      name: 'order',
      effects: { mail: ({ key }: { key: string }) => void keys.push(key) },
      run: ({ commit }) => commit((tx) => tx.effect('mail', 1)),
    })
    const test = await createTestPawl({ jobs: [order] })
    onTestFinished(() => test.close())
    const { id } = await test.pawl.enqueue(order, null)
    test.crashAt('settleEffects.written')
    expect(await test.drain()).toMatchObject({ crashed: 'settleEffects.written', delivering: [id] })
    await test.fastForward()
    expect(keys).toEqual([`${id}/mail/1`, `${id}/mail/1`])
    expect(await test.store.get(id)).toMatchObject({ outcome: 'succeeded', attempt: 1 })
  })
})

describe('runJob', () => {
  it('tells steps and effects, and knows what earlier attempts have finished', async () => {
    const made: string[] = []
    const job = defineJob({
      name: 'job',
      effects: { mail: () => {} },
      run: async ({ step, commit }) => {
        const make = (what: string) => () => {
          made.push(what)
          return what
        }
        const parts = [await step('a', make('a1')), await step('a', make('a2'))]
        return commit((tx) => {
          tx.effect('mail', { to: 'ann' })
          return parts
        })
      },
    })
    const outcome = await runJob(job, null, { attempt: 2, steps: [{ name: 'a', result: 'old' }] })
    expect(outcome).toMatchObject({
      output: ['old', 'a2'],
      steps: [{ name: 'a', n: 2, result: 'a2' }],
      effects: [{ name: 'mail', payload: { to: 'ann' } }],
    })
    expect(made).toEqual(['a2'])
  })
})
