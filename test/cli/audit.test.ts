// Commands of auditors, end to end on a SQLite file.
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SealFinding } from 'pawl/audit'
import { type Fact, standard } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { createPawl } from '../../src/engine/create-pawl.ts'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { loadDriver } from '../../src/stores/sqlite/driver.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
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
  await store.applyCommand([gone], { kind: 'park' }, ann)
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

/** Opens the file past its guards, as somebody with a shell would. */
function vandalise(path: string, sql: string): void {
  const database = new (loadDriver().DatabaseSync)(path)
  database.exec(sql)
  database.close()
}

const DELETE_LEDGER = `DROP TRIGGER pawl_ledger_is_never_deleted;
  DELETE FROM pawl_ledger WHERE pos = 3`

describe('pawl audit seal and verify', () => {
  it('find what is deleted afterwards, with exit code 3', async () => {
    const { place } = await played()
    const none = await place.run(['audit', 'verify'])
    expect([none.code, none.stderr]).toEqual([0, expect.stringContaining('no seals')])
    const made = await place.ok('audit', 'seal')
    expect(made).toMatch(/^seal 1 {2}6 facts, positions 1 to 6, \S+ to \S+ {2}[0-9a-f]{64}\n$/)
    const again = await place.run(['audit', 'seal'])
    expect([again.stdout, again.stderr]).toEqual(['', expect.stringContaining('no new facts')])
    const fine = await place.run(['audit', 'verify'])
    expect(fine).toMatchObject({ code: 0, stdout: '', stderr: '1 seals verified, 0 findings.\n' })
    vandalise(place.path, DELETE_LEDGER)
    const found = await place.run(['audit', 'verify'])
    expect(found.code).toBe(3)
    expect(found.stdout).toMatch(/^missing: 1 of the 6 facts of seal 1 are missing, from \d{4}-/)
    const json = await place.run(['audit', 'verify', '--json'])
    const [finding] = linesOf<SealFinding>(json.stdout)
    expect(finding).toMatchObject({ kind: 'missing', seal: 1, range: [1, 6], facts: 1 })
  })

  it('verify by a copy, which also knows seals that were replaced', async () => {
    const { place } = await played()
    await place.ok('audit', 'seal', '--out', 'seals.ndjson')
    expect(await place.ok('audit', 'verify', '--seals', 'seals.ndjson')).toBe('')
    vandalise(
      place.path,
      `${DELETE_LEDGER}; DROP TRIGGER pawl_seals_are_never_deleted; DELETE FROM pawl_seals`,
    )
    await place.ok('audit', 'seal')
    await place.ok('audit', 'verify')
    const found = await place.run(['audit', 'verify', '--seals', 'seals.ndjson', '--json'])
    const kinds = linesOf<SealFinding>(found.stdout).map(({ kind }) => kind)
    expect([found.code, kinds]).toEqual([3, ['seal-changed', 'missing']])
  })

  it('verify an export without its store, whatever its payloads hold', async () => {
    const place = new Place()
    const odd = JSON.stringify({ text: 'a\u2028b\r\n\u001b[2J \u202e"\\ ü 𝄞' })
    await place.ok('job', 'enqueue', 'odd', odd)
    await place.ok('job', 'enqueue', 'plain', '1')
    await place.ok('audit', 'export', '--payloads', '--out', 'ledger.ndjson')
    await place.ok('audit', 'seal', '--out', 'seals.ndjson')
    rmSync(place.path)
    const verify = ['audit', 'verify', '--ledger', 'ledger.ndjson', '--seals', 'seals.ndjson']
    expect(await place.run(verify)).toMatchObject({ code: 0, stdout: '' })
    const path = join(place.folder, 'ledger.ndjson')
    writeFileSync(path, readFileSync(path, 'utf8').replace('"plain"', '"other"'))
    const changed = await place.run(verify)
    expect([changed.code, changed.stdout]).toEqual([3, expect.stringMatching(/^changed: /)])
  })

  it('compare archives of retention with what was taken from the seals', async () => {
    const { place } = await played()
    await place.ok('audit', 'seal')
    await using store = await openSqliteStore({ path: place.path })
    const path = join(place.folder, 'pruned.ndjson')
    const archive = async (lines: string) => appendFileSync(path, lines)
    expect(await store.prune({ endedBefore: store.now() + 1, limit: 10, archive })).toBe(2)
    expect(await place.ok('audit', 'verify', '--archive', 'pruned.ndjson')).toBe('')
    writeFileSync(path, readFileSync(path, 'utf8').replace('"sent\\"', '"lost\\"'))
    const found = await place.run(['audit', 'verify', '--archive', 'pruned.ndjson'])
    expect([found.code, found.stdout]).toEqual([3, expect.stringMatching(/^archive-missing: /)])
  })

  it('refuse files that are something else', async () => {
    const { place } = await played()
    await place.ok('audit', 'seal')
    await place.ok('audit', 'export', '--out', 'bare.ndjson')
    writeFileSync(join(place.folder, 'bad.ndjson'), '{"number":1}\n')
    writeFileSync(join(place.folder, 'no.json'), 'no\n')
    for (const line of [
      ['--seals', 'nowhere.ndjson'],
      ['--seals', 'bad.ndjson'],
      ['--seals', 'no.json'],
      ['--ledger', 'bare.ndjson'],
      ['--ledger', 'bare.ndjson', '--seals', 'bad.ndjson'],
      ['--archive', 'nowhere.ndjson'],
    ]) {
      const { code, stderr } = await place.run(['audit', 'verify', ...line])
      expect([code, stderr]).toEqual([2, expect.stringContaining('E_USAGE')])
    }
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
