// The size of payloads is bounded, and the bound is the opener's to choose.
import { standard } from 'pawl'
import { expect, it } from 'vitest'
import { systemEnvironment } from '../../src/environment/system.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'

const { ids } = systemEnvironment()
const textOf = (bytes: number) => `"${'é'.repeat((bytes - 2) / 2)}"`

it('a payload of the largest size is kept, and a larger one refused everywhere', async () => {
  await using store = await openSqliteStore({ path: ':memory:', payloadBytesMax: 100 })
  const enqueue = (input: string) => {
    const command = { jobId: ids.next(), type: 'a', queue: 'q' }
    return store.enqueue([{ lifecycle: standard, command, input }])
  }
  expect(await enqueue(textOf(102))).toMatchObject([{ error: { code: 'E_VALUE_INVALID' } }])
  expect(await enqueue(textOf(100))).toMatchObject([{ kind: 'created' }])
  const [held] = await store.claim({ worker: 'w', limit: 1, leaseMs: 60_000, start: true })
  if (held === undefined) throw new Error('nothing was claimed')
  expect(held.input).toBe(textOf(100))

  const fence = { attempt: 1, claim: held.job.execution?.claim ?? '' }
  const step = { kind: 'step', fence, name: 's', n: 1 } as const
  const large = { held, command: step, payload: textOf(102) }
  const { answers } = await store.settle([large, { ...large, payload: textOf(100) }])
  expect(answers).toMatchObject([{ error: { code: 'E_VALUE_INVALID' } }, { kind: 'done' }])
  // Told once more, also by its id, the first result stands.
  expect(await store.tell([held.job.id], step, { actor: 'worker' })).toMatchObject([
    { kind: 'same' },
  ])

  const tooLarge = { code: 'E_VALUE_INVALID' }
  await expect(store.commit(held, () => textOf(102))).rejects.toMatchObject(tooLarge)
  const effect = store.commit(held, (tx) => {
    tx.effect('mail', textOf(102))
    return '1'
  })
  await expect(effect).rejects.toMatchObject(tooLarge)
  expect(await store.commit(held, () => textOf(100))).toMatchObject({ result: textOf(100) })
})
