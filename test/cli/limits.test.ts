// Limits from the command line: what runs and waits, who has set a number, and why.
import { defineJob, defineLimit, typed } from 'pawl'
import { describe, expect, it } from 'vitest'
import { createPawl } from '../../src/engine/create-pawl.ts'
import type { Pawl } from '../../src/engine/pawl.ts'
import { Place } from './pawl.ts'

const WHY = ['--reason', 'INC-7: too slow']

const openai = defineLimit({ name: 'openai', concurrency: 2 })
const sync = defineJob({
  name: 'sync',
  input: typed<string>(),
  concurrency: [openai, { name: 'tenant', key: (tenant) => tenant, limit: 1 }],
  throttle: { name: 'calls', limit: 100, period: '10s', key: (tenant) => tenant },
})

/** A place in which `acme` runs one job and has two that are blocked. */
async function busyPlace(): Promise<{ place: Place; ids: string[] }> {
  const place = new Place()
  const ids: string[] = []
  await onStore(place, async (pawl) => {
    for (const tenant of ['acme', 'acme', 'acme', 'b']) {
      ids.push((await pawl.enqueue(sync, tenant)).id)
    }
    const request = { worker: 'web-1', limit: 10, leaseMs: 600_000, start: true }
    expect(await pawl.store.claim(request)).toHaveLength(2)
  })
  return { place, ids }
}

async function onStore(place: Place, work: (pawl: Pawl) => Promise<void>): Promise<void> {
  await using pawl = await createPawl({ store: place.store, jobs: [sync] })
  await work(pawl)
}

interface Line {
  readonly gate: string
  readonly used: number
  readonly max: number | null
  readonly blocked: number
}

describe('pawl limit list', () => {
  it('shows what runs and is blocked, and who holds or has set it', async () => {
    const { place, ids } = await busyPlace()
    await place.ok('limit', 'set', 'openai', '--concurrency', '1', ...WHY)
    const lines = (await place.ok('limit', 'list')).trimEnd().split('\n')
    expect(lines.map((line) => line.split('\t').slice(0, 5))).toEqual([
      ['sync/tenant', 'acme', '1', '1', '2'],
      ['sync/tenant', 'b', '1', '1', '0'],
      ['openai', '-', '2', '1 (code: 2)', '0'],
    ])
    expect(lines[0]).toMatch(new RegExp(`${ids[0]} on web-1, \\S+$`))
    expect(lines[2]).toMatch(/2 jobs; ada: INC-7: too slow$/)
    const blocked = await place.json<Line>('limit', 'list', '--blocked')
    expect(blocked).toMatchObject([{ gate: 'job/sync/tenant/acme', used: 1, max: 1, blocked: 2 }])
    const throttles = await place.ok('limit', 'list', '--throttles')
    expect(throttles).toMatch(/^rate\/sync\/calls\tacme\t-\t100 in 10s\t0\t-\t\n/)
    expect((await place.run(['limit', 'list', '--limit', '1'])).stderr).toMatch(/There are more/)
  })

  it('says that there are none', async () => {
    const place = new Place()
    await place.ok('db', 'migrate')
    expect((await place.run(['limit', 'list'])).stderr).toContain('No limit is declared.')
    expect((await place.run(['limit', 'history'])).stderr).toContain('No limit was ever declared')
  })
})

describe('pawl limit set and reset', () => {
  it('say what would change, change it, and record who did it', async () => {
    const { place } = await busyPlace()
    const set = ['limit', 'set', 'sync/tenant', '--key', 'acme', '--concurrency', '2', ...WHY]
    expect(await place.ok(...set, '--dry-run')).toBe(
      'sync/tenant acme: override none → 2, 1 blocked jobs could start; 1 run, 2 are blocked ' +
        '(dry run, nothing was written)\n',
    )
    expect((await place.json<Line>('limit', 'list', '--blocked'))[0]).toMatchObject({ max: 1 })
    expect(await place.ok(...set)).toBe('sync/tenant acme override none → 2; 1 of 2 in use\n')
    expect(await place.ok(...set)).toMatch(/already has this number/)
    const [shown] = await place.json<object>('limit', 'show', 'sync/tenant', '--key', 'acme')
    expect(shown).toMatchObject({
      max: 2,
      setting: { override: 2, overrideBy: 'ada' },
      holders: [{ worker: 'web-1' }],
      records: [{ action: 'set', operator: 'ada', note: 'INC-7: too slow' }],
    })
    await place.ok('limit', 'reset', 'sync/tenant', '--key', 'acme', '--reason', 'over')
    const history = await place.ok('limit', 'history', 'sync/tenant', '--key', 'acme')
    expect(history.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/ sync\/tenant acme override 2 → none, by operator ada: over$/),
      expect.stringMatching(
        / sync\/tenant acme override none → 2, by operator ada: INC-7: too slow$/,
      ),
    ])
    expect(await place.ok('limit', 'show', 'openai')).toMatch(
      /^openai: 2 of 2 in use, 0 blocked\n {2}\S+ sync on web-1 for [\s\S]*code none → 2 \(/,
    )
  })

  it.each([
    [['openai', '--concurrency', '3'], 2, /A reason is required/],
    [['openai', ...WHY], 2, /No number is given/],
    [['openai', '--concurrency', '-1', ...WHY], 2, /--concurrency must be a whole number/],
    [['opneai', '--concurrency', '3', ...WHY], 4, /There is no limit "opneai"[\s\S]*openai/],
    [['rate/sync/calls', '--concurrency', '3', ...WHY], 2, /only code changes/],
    [['a/b/c', '--concurrency', '3', ...WHY], 2, /must be a limit or its name/],
  ])('%j is refused, and changes nothing', async (args, exit, why) => {
    const { place } = await busyPlace()
    const { code, stderr } = await place.run(['limit', 'set', ...args])
    expect(stderr).toMatch(why)
    expect(code).toBe(exit)
    const records = await place.json<{ action: string }>('limit', 'history')
    expect(records.every(({ action }) => action === 'declare')).toBe(true)
  })

  it('limit a queue that has none yet, as "queue limit" does', async () => {
    const { place } = await busyPlace()
    await place.ok('limit', 'set', 'queue/mail', '--concurrency', '3', ...WHY)
    const text = await place.ok('queue', 'limit', 'mail', '--concurrency', '5', ...WHY)
    expect(text).toBe('mail concurrency override 3 → 5\n')
    const both = ['--max-depth', '9', '--concurrency', 'none', ...WHY]
    const lifted = await place.ok('queue', 'limit', 'mail', ...both)
    expect(lifted).toBe('mail max depth none → 9, concurrency override 5 → none\n')
  })
})

describe('what blocks a job', () => {
  it('is shown by "job list --lane blocked" and "job explain"', async () => {
    const { place, ids } = await busyPlace()
    const listed = await place.ok('job', 'list', '--lane', 'blocked')
    const rows = listed.trimEnd().split('\n')
    expect(rows).toHaveLength(2)
    for (const row of rows) expect(row).toMatch(/\tsync\/tenant acme$/)
    const explained = await place.ok('job', 'explain', ids[2] as string)
    expect(explained).toMatch(/^It is blocked: the limit sync\/tenant for acme has 1 of 1 in use/)
    expect(explained).toMatch(/1 job is ahead\.\n {2}pawl limit set sync\/tenant --key=acme/)
  })
})

describe('pawl limit audit', () => {
  it('says that the ledger never shows more jobs than the limit allowed', async () => {
    const { place } = await busyPlace()
    expect(await place.ok('limit', 'audit', 'openai', '--since', '30d')).toMatch(
      /^openai: never above the limit; at most 2 at once \(\S+\); 2 claims in \S+ since /,
    )
    const [report] = await place.json('limit', 'audit', 'sync/tenant', '--key', 'acme')
    expect(report).toMatchObject({ key: 'acme', claims: 1, peak: { used: 1 }, violationCount: 0 })
    expect((await place.run(['limit', 'audit', 'rate/sync/calls'])).code).toBe(2)
    expect((await place.run(['limit', 'audit', 'nothing'])).code).toBe(4)
  })

  it('ends with 3 if a claim made too many run', async () => {
    const { place } = await busyPlace()
    await onStore(place, async ({ store }) => {
      await store.transaction((tx) => tx.query('UPDATE pawl_limits SET override = 9'))
    })
    await onStore(place, async (pawl) => {
      await pawl.enqueue(sync, 'c')
      const request = { worker: 'web-1', limit: 10, leaseMs: 600_000, start: true }
      expect((await pawl.store.claim(request)).length).toBeGreaterThan(0)
    })
    const { code, stdout } = await place.run(['limit', 'audit', 'openai'])
    expect(stdout).toMatch(/^openai: \d times above it; at most [345] at once/)
    expect(code).toBe(3)
  })
})
