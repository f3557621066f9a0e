/** Seals: they cover the ledger without gaps, and retention is accounted for. */
import assert from 'node:assert/strict'
import { sealUp } from '../../../src/audit/seal-up.ts'
import { verifyArchives, verifyExport, verifySeals } from '../../../src/audit/verify-seals.ts'
import type { AuditEntry } from '../../../src/stores/audit.ts'
import type { Store } from '../../../src/stores/contract/store.ts'
import { LedgerSum, type Seal } from '../../../src/stores/seals.ts'
import { type Bench, type Cases, CLIENT, done, OPERATOR } from './bench.ts'

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

const seal = (store: Store): Promise<Seal[]> => all(sealUp(store))

const findings = (store: Store) => all(verifySeals(store.seals))

/** So many jobs that have ended, each in some transactions of its own. */
async function ended(bench: Bench, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let i = 0; i < count; i++) {
    const held = await bench.hold({ input: `{"n":${i}}` })
    if (i % 2 === 0) done(await bench.fail(held, 'terminal'))
    else await bench.store.commit(held, () => `"result ${i}"`)
    ids.push(held.job.id)
  }
  return ids
}

async function entriesOf(store: Store): Promise<AuditEntry[]> {
  return (await store.audit({}, { payloads: true, limit: 1000 })).items.slice()
}

/** What seals cover, and what they say after whatever may happen to a ledger. */
export const sealCases: Cases = {
  'a store has no seals unless somebody makes them, and an empty one has none to make': async ({
    store,
  }) => {
    assert.deepEqual(await seal(store), [])
    assert.deepEqual(await store.seals.list(0, 10), [])
    assert.deepEqual(await findings(store), [])
  },

  'seals follow each other without gaps, and cover every fact once': async (bench) => {
    const { store } = bench
    const made: Seal[] = []
    for (let i = 0; i < 3; i++) {
      await ended(bench, i + 1)
      made.push(...(await seal(store)))
      assert.deepEqual(await seal(store), [], 'there is nothing new')
    }
    assert.deepEqual(await store.seals.list(0, 10), made)
    assert.deepEqual(await store.seals.list(1, 1), made.slice(1, 2))
    assert.deepEqual(
      made.map(({ number }) => number),
      made.map((_, i) => i + 1),
    )
    for (const [i, { first }] of made.entries()) assert.equal(first, (made[i - 1]?.last ?? 0) + 1)
    const entries = await entriesOf(store)
    assert.equal(
      made.reduce((sum, { facts }) => sum + facts, 0),
      entries.length,
    )
    const times = entries.map(({ fact }) => fact.at)
    assert.equal(made[0]?.firstAt, Math.min(...times))
    assert.equal(made.at(-1)?.lastAt, Math.max(...times))
    assert.deepEqual(await findings(store), [])
  },

  'what happens after a seal does not concern it': async (bench) => {
    const { store } = bench
    const [first = ''] = await ended(bench, 3)
    await seal(store)
    done(await bench.applyCommand(first, { kind: 'redrive' }, OPERATOR))
    await bench.enqueue()
    assert.deepEqual(await findings(store), [])
  },

  'what retention removes is accounted for, sealed or not, also when it goes on for long': async (
    bench,
  ) => {
    const { store } = bench
    await ended(bench, 3)
    await seal(store)
    await ended(bench, 3)
    await seal(store)
    await ended(bench, 2)
    for (const removed of [2, 2, 4]) {
      await bench.advance(1)
      const request = { endedBefore: store.now(), limit: removed }
      assert.equal(await store.prune(request), removed)
      assert.deepEqual(await findings(store), [])
    }
    const prunings = await store.seals.prunings(0, 10)
    assert.equal(prunings.length, 3)
    for (const { facts, removals } of prunings) {
      assert.equal(
        removals.reduce((sum, removal) => sum + removal.facts, 0),
        facts,
      )
    }
    const seals = prunings.map(({ removals }) => removals.map((removal) => removal.seal).sort())
    assert.deepEqual(seals, [[1], [1, 2], [0, 2]])
    const [left] = await store.seals.list(0, 1)
    assert.equal((await store.seals.measure(left?.first ?? 0, left?.last ?? 0)).facts, 0)
    await ended(bench, 1)
    await seal(store)
    assert.deepEqual(await findings(store), [])
  },

  'retention notes nothing where there are no seals': async (bench) => {
    await ended(bench, 2)
    await bench.advance(1)
    await bench.store.prune({ endedBefore: bench.store.now(), limit: 10 })
    const [pruning] = await bench.store.seals.prunings(0, 10)
    assert.deepEqual([pruning?.jobs, pruning?.removals], [2, []])
  },

  'an archive proves what was removed, also where a job changed while it was archived': async (
    bench,
  ) => {
    const { store } = bench
    await ended(bench, 1)
    const [redriven = ''] = await ended(bench, 1)
    await ended(bench, 2)
    await seal(store)
    await ended(bench, 1)
    await bench.advance(1)
    let text = ''
    const archive = async (lines: string) => {
      text += lines
      if (text === lines) done(await bench.applyCommand(redriven, { kind: 'redrive' }, OPERATOR))
    }
    const request = { endedBefore: store.now(), limit: 10, archive }
    assert.equal(await store.prune(request), 4)
    assert.deepEqual(await findings(store), [])
    const [pruning] = await store.seals.prunings(0, 10)
    assert.deepEqual(pruning?.removals[0]?.leftOut, [redriven])
    done((await store.cancel([redriven], CLIENT))[0])
    await bench.advance(1)
    assert.equal(await store.prune({ ...request, endedBefore: store.now() }), 1)

    const lines = text.split('\n').filter(Boolean)
    const verified = (given: readonly string[]) =>
      all(
        verifyArchives(
          store.seals,
          (async function* () {
            yield* given
          })(),
        ),
      )
    assert.deepEqual(await verified(lines), [])
    // A crash between archive and removal archives the same lines twice.
    assert.deepEqual(await verified([...lines.slice(0, 5), ...lines, ...lines.slice(3)]), [])
    const kinds = async (given: readonly string[]) =>
      (await verified(given)).map(({ kind, pruned }) => [kind, pruned === pruning?.number])
    const changed = lines.map((line, i) => (i === 1 ? line.replace('worker-1', 'worker-9') : line))
    assert.notDeepEqual(changed, lines)
    assert.deepEqual(await kinds(changed), [['archive-missing', true]])
    assert.deepEqual(await kinds(lines.slice(1)), [['archive-missing', true]])
    assert.deepEqual((await verified([])).length, 2)
  },

  'two who seal at once make one chain': async (bench) => {
    const { store } = bench
    for (let i = 0; i < 3; i++) {
      await ended(bench, 2)
      await Promise.all([seal(store), seal(store), seal(store)])
    }
    assert.deepEqual(await findings(store), [])
    const facts = (await store.seals.list(0, 100)).reduce((sum, one) => sum + one.facts, 0)
    assert.equal(facts, (await entriesOf(store)).length)
  },

  'retention and sealing may meet': async (bench) => {
    const { store } = bench
    for (let i = 0; i < 5; i++) {
      await ended(bench, 3)
      await bench.advance(1)
      const request = { endedBefore: store.now(), limit: 2 }
      await Promise.all([store.prune(request), seal(store), store.prune(request), seal(store)])
      assert.deepEqual(await findings(store), [])
    }
  },

  'an exported ledger is verified without its store, and a change of any fact is found': async (
    bench,
  ) => {
    const { store } = bench
    await ended(bench, 4)
    await seal(store)
    await ended(bench, 1)
    await bench.advance(1)
    await store.prune({ endedBefore: store.now(), limit: 1 })
    const seals = await store.seals.list(0, 10)
    const copies = await Promise.all(
      seals.map(async (one) => {
        const removed = new LedgerSum()
        for (const removal of await store.seals.removalsOf(one.number)) removed.merge(removal)
        return { ...one, removed: { facts: removed.facts, sum: removed.sum } }
      }),
    )
    const entries = await entriesOf(store)
    const verified = async (given: readonly AuditEntry[]) => {
      const found = await all(
        verifyExport(
          (async function* () {
            yield* given
          })(),
          copies,
        ),
      )
      return found.map(({ kind, seal }) => [kind, seal])
    }
    assert.deepEqual(await verified(entries), [])
    const { last = 0 } = seals.at(-1) ?? {}
    for (const [i, entry] of entries.entries()) {
      const isSealed = Number.parseInt(entry.pos, 10) <= last
      const without = entries.filter((other) => other !== entry)
      assert.deepEqual(await verified(without), isSealed ? [['missing', 1]] : [])
      const other = { ...entry, payload: `${entry.payload} ` }
      assert.deepEqual(await verified(entries.with(i, other)), isSealed ? [['changed', 1]] : [])
      const twice = [...entries, entry]
      assert.deepEqual(await verified(twice), isSealed ? [['added', 1]] : [])
    }
  },
}
