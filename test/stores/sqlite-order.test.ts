// One writer per process: what a caller asks for without waiting is done in the order of asking.
import { standard } from 'pawl/rules'
import { testEnvironment } from 'pawl/testing'
import { expect, it } from 'vitest'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'

it('writes of one caller are done in the order in which they were called', async () => {
  const environment = testEnvironment()
  await using store = await openSqliteStore({ path: ':memory:', environment })
  const jobId = environment.ids.next()
  const command = { jobId, type: 'example', queue: 'main' }
  await store.enqueue([{ lifecycle: standard, command, input: '{}' }])
  const request = { worker: 'worker-1', limit: 1, leaseMs: 30_000, start: true }
  const [held] = await store.claim(request)
  if (held === undefined) throw new Error('nothing was claimed')
  const prioritise = (priority: number) =>
    store.applyCommand([jobId], { kind: 'prioritise', priority }, { actor: 'client' })
  const told = [1, 2, 3, 4, 5].map(prioritise)
  const committed = store.commit(held, () => '1')
  const late = prioritise(6)
  const kinds = (await Promise.all(told)).map(([answer]) => answer?.kind)
  expect(kinds).toEqual(['done', 'done', 'done', 'done', 'done'])
  expect((await committed).kind).toBe('done')
  expect((await late)[0]?.kind).toBe('rejected')
  expect((await store.get(jobId))?.priority).toBe(5)
})
