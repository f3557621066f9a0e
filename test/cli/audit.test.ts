// Commands of auditors, end to end on a SQLite file.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Fact, standard } from 'pawl'
import { describe, expect, it } from 'vitest'
import { createPawl } from '../../src/engine/pawl.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import type { Held, Store } from '../../src/stores/store.ts'
import { linesOf, Place } from './pawl.ts'

type Line = Fact & { readonly pos: string }

/** Two jobs: one committed by a worker, one parked and cancelled by people. */
async function play(store: Store): Promise<{ readonly done: string; readonly gone: string }> {
  const ids = ['0198a1b2-0000-7000-8000-00000000000a', '0198a1b2-0000-7000-8000-00000000000b']
  const items = ids.map((jobId, n) => ({
    lifecycle: standard,
    input: JSON.stringify({ n }),
    command: { jobId, type: 'mail', queue: `q${n}` },
  }))
  await store.enqueue(items)
  const claim = { worker: 'w1', queues: ['q0'], limit: 1, leaseMs: 30_000, start: true }
  const [held] = (await store.claim(claim)) as [Held]
  await store.commit(held, () => '"sent"')
  const [done = '', gone = ''] = ids
  const ann = { actor: 'operator', operator: 'ann', note: '=cmd()\u001b[2J' } as const
  await store.tell([gone], { kind: 'park' }, ann)
  await store.cancel([gone], { actor: 'operator', operator: 'ben', note: 'no use' })
  return { done, gone }
}

async function played() {
  const place = new Place()
  await using store = await openSqliteStore({ path: place.path })
  return { place, ...(await play(store)) }
}

describe('pawl audit list', () => {
  it('shows who did what to which job and why, newest first, by any condition', async () => {
    const { place, done, gone } = await played()
    const facts = async (...filter: string[]) =>
      (await place.json<Line>('audit', 'list', ...filter)).map(
        ({ jobId, trigger }) => `${jobId === done ? 'done' : 'gone'} ${trigger}`,
      )
    const all = ['gone cancel', 'gone park', 'done commit', 'done claim', 'gone create']
    expect(await facts()).toEqual([...all, 'done create'])
    expect(await facts('--oldest', '--limit', '2')).toEqual(['done create', 'gone create'])
    expect(await facts('--operator', 'ann')).toEqual(['gone park'])
    expect(await facts('--actor', 'operator', '--job', gone)).toEqual(['gone cancel', 'gone park'])
    expect(await facts('--worker', 'w1')).toEqual(['done commit', 'done claim'])
    expect(await facts('--to-state', 'running')).toEqual(['done claim'])
    expect(await facts('--from-state', 'quarantined')).toEqual(['gone cancel'])
    expect(await facts('--trigger', 'create', '--from', '1h')).toHaveLength(2)
    expect(await facts('--before', '1h')).toEqual([])
    const text = await place.ok('audit', 'list', '--operator', 'ann')
    expect(text).toContain(`${gone} #2`)
    expect(text).toContain('operator ann')
    expect(text).toContain('=cmd()\\x1b[2J')
  })

  it('goes on from where a page ended, and says when nothing matches', async () => {
    const { place } = await played()
    const first = await place.run(['audit', 'list', '--limit', '4', '--json'])
    const next = /--after (\S+)/.exec(first.stderr)?.[1] ?? ''
    const rest = await place.json<Line>('audit', 'list', '--after', next)
    expect(linesOf<Line>(first.stdout).length + rest.length).toBe(6)
    const none = await place.run(['audit', 'list', '--operator', 'nobody'])
    expect(none).toMatchObject({ code: 0, stdout: '', stderr: 'No fact matches.\n' })
    expect((await place.run(['audit', 'list', '--trigger', 'dance'])).code).toBe(2)
    expect((await place.run(['audit', 'list', '--from', 'soon'])).code).toBe(2)
  })
})

describe('pawl audit export', () => {
  it('writes NDJSON in the order of the ledger, with payloads where they are wanted', async () => {
    const { place } = await played()
    await place.ok('audit', 'export', '--payloads', '--out', 'ledger.ndjson')
    type Exported = { pos: string; fact: Fact; payload: string | null }
    const text = readFileSync(join(place.folder, 'ledger.ndjson'), 'utf8')
    const lines = linesOf<Exported>(text)
    expect(lines.map(({ pos }) => pos)).toEqual(['1', '2', '3', '4', '5', '6'])
    const payloads = ['{"n":0}', '{"n":1}', null, '"sent"', null, null]
    expect(lines.map(({ payload }) => payload)).toEqual(payloads)
    const some = await place.ok('audit', 'export', '--trigger', 'claim')
    expect(linesOf<Exported>(some)[0]).toEqual({ pos: '3', fact: lines[2]?.fact })
  })

  it('writes CSV that is quoted and runs nothing, and replaces no file', async () => {
    const { place } = await played()
    const csv = await place.ok('audit', 'export', '--format', 'csv', '--operator', 'ann')
    const [head = '', row = '', end] = csv.split('\r\n')
    expect(head.split(',').slice(0, 3)).toEqual(['pos', 'job', 'seq'])
    expect(row).toContain(`,ann,`)
    expect(row).toContain(`,'=cmd()\\x1b[2J,`)
    expect(end).toBe('')
    await place.ok('audit', 'export', '--format', 'csv', '--out', 'a.csv')
    const again = await place.run(['audit', 'export', '--out', 'a.csv'])
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('EEXIST')])
    const nowhere = await place.run(['audit', 'export', '--out', 'no/such/folder'])
    expect(nowhere.code).toBe(2)
    expect(existsSync(join(place.folder, 'no'))).toBe(false)
  })
})

describe('pawl.audit', () => {
  it('is walked to its end, or to as many facts as are asked for', async () => {
    await using store = await openSqliteStore({ path: ':memory:' })
    const { gone } = await play(store)
    const pawl = await createPawl({ store })
    const seen: string[] = []
    for await (const { fact } of pawl.audit({ jobId: gone })) seen.push(fact.trigger)
    expect(seen).toEqual(['create', 'park', 'cancel'])
    const two: string[] = []
    for await (const { pos } of pawl.audit({}, { limit: 2, order: 'newest' })) two.push(pos)
    expect(two).toEqual(['6', '5'])
  })
})
