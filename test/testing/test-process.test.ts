// What a process of the kit is when it has died: nobody answers it, and nothing wakes it.
import { standard } from 'pawl/rules'
import { ProcessDied, testEnvironment } from 'pawl/testing'
import { expect, it } from 'vitest'
import type { EffectReport, Held } from '../../src/stores/contract/store.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { TestProcess } from '../../src/testing/test-process.ts'

it('a dead process gets no answer, no timer and no hint', async () => {
  const environment = testEnvironment()
  await using store = await openSqliteStore({ path: ':memory:', environment })
  const process = new TestProcess(environment, store)
  const heard: string[] = []
  const hear = (what: string) => () => void heard.push(what)
  const unsubscribe = process.store.onWake(hear('hint'))
  process.environment.timers.after(10, hear('timer'))
  process.environment.timers.defer(hear('turn'))
  process.store.counts().then(hear('answer'), hear('error'))
  expect(process.isBusy).toBe(true)
  process.die('test', new ProcessDied('test'))
  process.die('again', new ProcessDied('again'))
  process.store.counts().then(hear('later answer'), hear('later error'))
  await store.pauseQueue('mail', { actor: 'client' })
  environment.advance(100)
  for (let turn = 0; turn < 10; turn++) await new Promise<void>((done) => setImmediate(done))
  unsubscribe()
  expect(heard).toEqual([])
  expect(process).toMatchObject({ cause: 'test', calls: 1, isBusy: false })
})

it('a process is busy until it has reported each effect, or is dead', async () => {
  const environment = testEnvironment()
  await using store = await openSqliteStore({ path: ':memory:', environment })
  const command = { jobId: environment.ids.next(), type: 'job', queue: 'default' }
  await store.enqueue([{ lifecycle: standard, command, input: 'null' }])
  const [held] = await store.claim({ worker: 'w', limit: 1, leaseMs: 30_000, start: true })
  await store.commit(held as Held, (tx) => {
    for (const n of ['1', '2', '3']) tx.effect('mail', n)
    return 'null'
  })
  const process = new TestProcess(environment, store)
  const effects = await process.store.claimEffects({ limit: 10, leaseMs: 30_000 })
  const [first, ...others] = effects.map((effect) => ({ kind: 'delivered', effect }) as const)
  expect(others).toHaveLength(2)
  await process.store.settleEffects(others)
  expect(process.isBusy).toBe(true)
  const other = new TestProcess(environment, store)
  environment.advance(30_000)
  await other.store.claimEffects({ limit: 10, leaseMs: 30_000 })
  expect(other.isBusy).toBe(true)
  other.die('test', new ProcessDied('test'))
  expect(other.isBusy).toBe(false)
  await process.store.settleEffects([first as EffectReport])
  expect(process.isBusy).toBe(false)
})

it('a living process receives all of it, and its commits and errors are its own', async () => {
  const environment = testEnvironment()
  await using store = await openSqliteStore({ path: ':memory:', environment })
  const process = new TestProcess(environment, store)
  const heard: string[] = []
  process.environment.timers.after(10, () => void heard.push('timer'))
  process.store.onWake(() => void heard.push('hint'))
  await process.store.pauseQueue('mail', { actor: 'client' })
  environment.advance(10)
  expect(heard).toEqual(['hint', 'timer'])
  await expect(process.store.promote(-1)).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
  expect(process).toMatchObject({ cause: undefined, calls: 2, isBusy: false })
  expect(process.store.now()).toBe(store.now())
})
