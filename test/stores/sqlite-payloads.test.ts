// Size and depth of payloads are bounded, and the bounds are the opener's to choose.
import { standard } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { systemEnvironment } from '../../src/environment/system.ts'
import type { SqliteOptions } from '../../src/stores/sqlite/options.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'

const { ids } = systemEnvironment()

/** Bounds, a text that just fits them, and one that just does not. */
const BOUNDS: Readonly<Record<string, [Partial<SqliteOptions>, fits: string, not: string]>> = {
  size: [{ payloadBytesMax: 100 }, textOf(100), textOf(102)],
  depth: [{ payloadDepthMax: 3 }, '[{"[[[[":[1, 2]}, "{{{{"]', '[{"a":[1, {}]}, "b"]'],
  'a depth of nothing': [{ payloadDepthMax: 0 }, '"[[]]"', '[]'],
}

function textOf(bytes: number): string {
  return `"${'é'.repeat((bytes - 2) / 2)}"`
}

describe.each(Object.entries(BOUNDS))('a bound on %s', (_, [options, fits, not]) => {
  it('keeps what just fits, and refuses the rest everywhere', async () => {
    await using store = await openSqliteStore({ path: ':memory:', ...options })
    const enqueue = (input: string) => {
      const command = { jobId: ids.next(), type: 'a', queue: 'q' }
      return store.enqueue([{ lifecycle: standard, command, input }])
    }
    expect(await enqueue(not)).toMatchObject([{ error: { code: 'E_VALUE_INVALID' } }])
    expect(await enqueue(fits)).toMatchObject([{ kind: 'created' }])
    const [held] = await store.claim({ worker: 'w', limit: 1, leaseMs: 60_000, start: true })
    if (held === undefined) throw new Error('nothing was claimed')
    expect(held.input).toBe(fits)

    const fence = { attempt: 1, claim: held.job.execution?.claim ?? '' }
    const step = { kind: 'step', fence, name: 's', n: 1 } as const
    const refused = { held, command: step, payload: not }
    const { answers } = await store.settle([refused, { ...refused, payload: fits }])
    expect(answers).toMatchObject([{ error: { code: 'E_VALUE_INVALID' } }, { kind: 'done' }])
    // Told once more, also by its id, the first result stands.
    expect(await store.applyCommand([held.job.id], step, { actor: 'worker' })).toMatchObject([
      { kind: 'same' },
    ])

    const invalid = { code: 'E_VALUE_INVALID' }
    await expect(store.commit(held, () => not)).rejects.toMatchObject(invalid)
    const effect = store.commit(held, (tx) => {
      tx.effect('mail', not)
      return '1'
    })
    await expect(effect).rejects.toMatchObject(invalid)
    expect(await store.commit(held, () => fits)).toMatchObject({ result: fits })
  })
})

it.each([
  { payloadBytesMax: 0 },
  { payloadBytesMax: Number.NaN },
  { payloadDepthMax: -1 },
  { payloadDepthMax: 0.5 },
])('a bound that makes no sense is refused before anything is opened: %o', async (options) => {
  const opening = openSqliteStore({ path: '/nowhere/at/all.db', ...options })
  await expect(opening).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
})
