// A job as it was after each of its facts, with the payloads of that time, and what happened since.
import type { AuditEntry } from 'pawl/audit'
import { standard } from 'pawl/rules'
import { testEnvironment } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { changesBetween } from '../../src/audit/diff.ts'
import { factsBetween, momentAt } from '../../src/audit/time-travel.ts'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'

const ID = '0198a1b2-0000-7000-8000-000000000001'

/** A job whose input was replaced before it was worked on. */
async function play(store: Store): Promise<AuditEntry[]> {
  const command = { jobId: ID, type: 'mail', queue: 'q', key: 'k' }
  const offer = (input: string) =>
    store.enqueue([{ lifecycle: standard, command, input, onConflict: 'replace' }])
  await offer('"first"')
  await offer('"second"')
  const claim = { worker: 'w', limit: 1, leaseMs: 1000, start: true }
  const [held] = (await store.claim(claim)) as [Held]
  await store.commit(held, () => '"result"')
  return (await store.audit({ jobId: ID }, { payloads: true })).items.slice()
}

async function withEntries(
  use: (entries: readonly AuditEntry[], store: Store) => void | Promise<void>,
): Promise<void> {
  const environment = testEnvironment()
  await using store = await openSqliteStore({ path: ':memory:', environment })
  await use(await play(store), store)
}

describe('a moment of a job', () => {
  it('is the job as the store has it as of that fact, with its facts until then', async () => {
    await withEntries(async (entries, store) => {
      expect(entries.map(({ fact }) => fact.trigger)).toEqual([
        ...['create', 'replace', 'claim', 'commit'],
      ])
      for (const { fact } of entries) {
        const moment = momentAt(entries, fact.seq)
        expect(moment?.job).toEqual(await store.asOf(ID, fact.seq))
        expect(moment?.facts).toHaveLength(fact.seq)
      }
    })
  })

  it('has the input and the result of that time', async () => {
    await withEntries((entries) => {
      const texts = [1, 2, 3, 4].map((seq) => {
        const { input, result } = momentAt(entries, seq) ?? {}
        return [input, result]
      })
      expect(texts).toEqual([
        ['"first"', undefined],
        ['"second"', undefined],
        ['"second"', undefined],
        ['"second"', '"result"'],
      ])
    })
  })

  it('is not there for a number that no fact has', async () => {
    await withEntries((entries) => {
      for (const seq of [0, 5, -1, 1.5]) expect(momentAt(entries, seq)).toBeUndefined()
      expect(momentAt([], 1)).toBeUndefined()
    })
  })
})

describe('the difference of two moments', () => {
  it('names each field that changed, and the facts in between', async () => {
    await withEntries((entries) => {
      const [before, after] = [momentAt(entries, 2)?.job ?? {}, momentAt(entries, 3)?.job ?? {}]
      const changed = changesBetween(before, after).map(({ path }) => path.join('.'))
      expect(changed).toEqual(['attempt', 'execution', 'seq', 'startedAt', 'state'])
      expect(changesBetween(before, before)).toEqual([])
      const triggers = factsBetween(entries, 1, 3).map(({ trigger }) => trigger)
      expect(triggers).toEqual(['replace', 'claim'])
    })
  })
})
