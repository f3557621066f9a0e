// `pawl doctor` as a user has it: a process of its own, on both stores.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Report } from '../../src/doctor/doctor.ts'
import { createPawl, defineJob } from '../../src/index.ts'
import { execute, rowsOf } from '../processes/inspect.ts'
import { connected } from '../support/postgres/clients.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres/databases.ts'
import { EVIL_NAME, HIDDEN } from './hostile-text.ts'
import { linesOf, type Place } from './pawl.ts'
import { runPlace } from './run-place.ts'

const LONG = 60_000
const APPLY = ['doctor', '--apply', '--reason', 'INC-7: disk']

/** A folder with a store, and a way past the store to its tables: `@` stands before their names. */
interface Clinic {
  readonly place: Place
  sql(text: string): Promise<unknown[]>
}

async function onFile(): Promise<Clinic> {
  const place = runPlace()
  const sql = async (text: string) => {
    const named = text.replaceAll('@', 'pawl_')
    if (/^select/i.test(text)) return rowsOf(place.path, named)
    execute(place.path, 'PRAGMA ignore_check_constraints = ON', named)
    return []
  }
  return { place, sql }
}

async function onServer(): Promise<Clinic> {
  const url = await freshDatabase(sharedPostgres())
  const client = await connected(url)
  const sql = async (text: string) => (await client.query(text.replaceAll('@', 'pawl.'))).rows
  return { place: runPlace(url), sql }
}

const DUMP = ['jobs', 'ledger', 'outbox', 'quarantined', 'ended_counts'] as const

async function dump({ sql }: Clinic): Promise<string[][]> {
  const tables: string[][] = []
  for (const table of DUMP) {
    const rows = await sql(`SELECT * FROM @${table}`)
    tables.push(rows.map((row) => JSON.stringify(row)).sort())
  }
  return tables
}

/** A job, and what is done to its row behind the back of the store. */
async function damaged(clinic: Clinic, set = 'priority = 77'): Promise<string> {
  const id = (await clinic.place.ok('job', 'enqueue', 'mail', '{"to":"ann"}')).trim()
  await clinic.sql(`UPDATE @jobs SET ${set} WHERE id = '${id}'`)
  return id
}

async function reportOf(place: Place, ...args: string[]) {
  const { code, stdout } = await place.run(['doctor', ...args, '--json'])
  const [report] = linesOf<Report>(stdout)
  if (report === undefined) throw new Error('it said nothing')
  return { code, report }
}

describe.each([
  { name: 'a SQLite file', open: onFile },
  { name: 'PostgreSQL', open: onServer },
])('pawl doctor on $name', { timeout: LONG }, ({ open }) => {
  it('ends with 0 without findings, and with 3 with findings', async () => {
    const { place, sql } = await open()
    expect(await place.run(['doctor'])).toMatchObject({ code: 4 })
    const id = (await place.ok('job', 'enqueue', 'mail')).trim()
    expect(await place.ok('doctor')).toBe('healthy; checked all 1 jobs\n')
    const well = await reportOf(place, '--full')
    expect(well).toEqual({
      code: 0,
      report: {
        ...{ ok: true, complete: true, jobs: 1, errors: 0, warnings: 0, notices: 0 },
        ...{ findings: [], repairs: [], repairCount: 0 },
      },
    })
    await sql(`UPDATE @jobs SET priority = 77 WHERE id = '${id}'`)
    const { code, stdout } = await place.run(['doctor'])
    expect(code).toBe(3)
    expect(stdout).toMatch(
      new RegExp(
        `^error   P9  job ${id}: row and facts differ in priority\n` +
          ' +row-is-fold {2}repair: rebuild the row from its facts\n' +
          'findings: 1 errors; checked all 1 jobs\n$',
      ),
    )
  })

  it('shows what a repair would change, and changes nothing', async () => {
    const clinic = await open()
    const { place } = clinic
    const id = await damaged(clinic)
    const before = await dump(clinic)
    const { code, stdout } = await place.run(['doctor', '--plan'])
    expect(code).toBe(3)
    expect(stdout).toContain('A repair would\n')
    expect(stdout).toContain(`  job ${id}: rebuild the row from its facts\n`)
    expect(stdout).toContain('    priority: 77 → 0\n')
    expect(stdout).toContain('    recorded as fact 2\n')
    const plan = await reportOf(place, '--plan')
    expect(plan).toMatchObject({ code: 3, report: { repairCount: 1 } })
    expect(plan.report.repairs).toMatchObject([
      { subject: `job ${id}`, remedy: 'rebuild the row from its facts', factSeq: 2, aside: 0 },
    ])
    expect(plan.report.repairs[0]?.changes).toContainEqual({ column: 'priority', from: 77, to: 0 })
    expect(await dump(clinic)).toEqual(before)
  })

  it('repairs by name and with a reason only, and the ledger says so', async () => {
    const clinic = await open()
    const { place } = clinic
    const id = await damaged(clinic)
    const before = await dump(clinic)
    const refused = [
      { args: ['doctor', '--apply'], why: 'A reason is required' },
      { args: ['doctor', '--apply', '--reason', ' '], why: '--reason must not be empty' },
      { args: [...APPLY, '--plan'], why: '--plan and --apply' },
    ]
    for (const { args, why } of refused) {
      const stderr = expect.stringContaining(why)
      expect(await place.run(args), args.join(' ')).toMatchObject({ code: 2, stderr })
    }
    expect(await dump(clinic)).toEqual(before)
    const { code, stdout } = await place.run(APPLY)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^\nRepaired\n {2}job /)
    expect(stdout).toMatch(/\nhealthy; checked all 1 jobs\n$/)
    const [story] = await place.json<{ job: object; facts: object[] }>('job', 'show', id)
    expect(story).toMatchObject({ job: { priority: 0, state: 'queued' } })
    expect(story?.facts.at(-1)).toMatchObject({
      ...{ trigger: 'repair', actor: 'doctor', operator: 'ada', note: 'INC-7: disk' },
    })
    expect(await place.ok('doctor', '--plan')).toMatch(/^Nothing has to be repaired\.\nhealthy/)
    const again = await place.run([...APPLY, '--json'])
    expect(linesOf(again.stdout)).toMatchObject([
      { repaired: { repairCount: 0 }, after: { ok: true } },
    ])
  })

  it('opens a store that its findings block, and unblocks it by a repair', async () => {
    const clinic = await open()
    const { place, sql } = clinic
    await place.ok('job', 'enqueue', 'mail')
    await sql('DROP INDEX @one_commit')
    const { code, stdout, stderr } = await place.run(['doctor'])
    expect(code).toBe(3)
    expect(stdout).toMatch(/^error {3}P3 {2}index (pawl_)?one_commit: it is missing\n/)
    expect(stderr).toContain('The store is damaged')
    expect(await place.run(APPLY)).toMatchObject({ code: 0 })
    expect(await place.run(['doctor', '--full'])).toMatchObject({ code: 0, stderr: '' })
  })

  it('makes hostile names visible, and commands that can be pasted harmless', async () => {
    const clinic = await open()
    const { place, sql } = clinic
    const pawl = await createPawl({ store: place.store })
    const evil = defineJob({ name: EVIL_NAME, queue: `${EVIL_NAME}; reboot` })
    const { id } = await pawl.enqueue(evil, null, { key: EVIL_NAME })
    await pawl.close()
    await sql(`UPDATE @jobs SET run_at = 5, state = '${EVIL_NAME}\u001b[31m' WHERE id = '${id}'`)
    for (const args of [['--full'], ['--plan'], ['--full', '--json']]) {
      const { code, stdout, stderr } = await place.run(['doctor', ...args])
      expect(code).toBe(3)
      expect(stdout + stderr, args.join(' ')).not.toMatch(HIDDEN)
      expect(stdout).toContain(id)
    }
    const { stdout } = await place.run(['doctor'])
    expect(stdout).toContain(String.raw`has no state "n\u{202e}\u{2066}\u{200f}\u{2028}x\x1b[31m"`)
    expect(stdout).toContain(String.raw`--queue 'n\u{202e}\u{2066}\u{200f}\u{2028}x; reboot'`)
    const applied = await place.run([...APPLY, '--operator', 'ann'])
    expect(applied.stdout + applied.stderr).not.toMatch(HIDDEN)
    const [story] = await place.json<{ job: object }>('job', 'show', id)
    expect(story).toMatchObject({ job: { state: 'queued', key: EVIL_NAME } })
  })

  it('repairs the snapshot of a run in the store, and reports a log that is damaged', async () => {
    const { place, sql } = await open()
    for (const id of ['d1', 'd2', 'd3']) {
      await place.run(['run', 'start', 'docs', '--id', id, '--in-store'])
    }
    expect(await place.run(['doctor'])).toMatchObject({ code: 0 })
    const good = await place.ok('run', 'replay', 'd1', '--in-store')
    await sql(`UPDATE @runs SET snapshot = '' WHERE id = 'd1'`)
    await sql(
      `UPDATE @runs SET snapshot = replace(snapshot, '"DRAFTING"', '"CREATED"') WHERE id = 'd2'`,
    )
    const events = 'run_events'
    const guard = `${events}_are_never_updated`
    const isFile = place.store.startsWith('sqlite:')
    await sql(isFile ? `DROP TRIGGER @${guard}` : `ALTER TABLE @${events} DISABLE TRIGGER ALL`)
    await sql(`UPDATE @${events} SET line = replace(line, '"actor"', '"aktor"')
      WHERE run = 'd3' AND seq = 2`)
    if (!isFile) await sql(`ALTER TABLE @${events} ENABLE TRIGGER ALL`)
    const { code, report } = await reportOf(place)
    expect(code).toBe(3)
    const runs = report.findings.filter(({ check }) => check === 'runs-are-whole')
    expect(runs.map(({ subject, severity, remedy }) => [subject, severity, remedy])).toEqual([
      ['run d1 in the store', 'warning', 'rebuild the snapshot'],
      ['run d2 in the store', 'warning', 'rebuild the snapshot'],
      ['run d3 in the store', 'error', undefined],
    ])
    const applied = await place.run([...APPLY, '--json'])
    // What was changed in a log cannot be had again.
    expect(applied.code).toBe(3)
    const [{ after }] = linesOf<{ after: Report }>(applied.stdout) as [{ after: Report }]
    expect(after.findings.map(({ subject }) => subject)).toEqual(['run d3 in the store'])
    expect(await place.ok('run', 'replay', 'd1', '--in-store')).toBe(good)
    expect(await place.run(['run', 'verify', 'd1', 'd2', '--in-store'])).toMatchObject({ code: 0 })
  })
})

describe('pawl doctor and runs in a folder', { timeout: LONG }, () => {
  it('repairs snapshots and torn ends, and reports a damaged log', async () => {
    const { place } = await onFile()
    await place.ok('job', 'enqueue', 'mail')
    for (const id of ['d1', 'd2', 'd3', 'd4']) await place.run(['run', 'start', 'docs', '--id', id])
    expect(await place.run(['doctor'])).toMatchObject({ code: 0 })
    const file = (id: string, name: string) => join(place.folder, 'runs', id, name)
    const [snapshot, log] = ['snapshot.json', 'events.ndjson']
    const whole = readFileSync(file('d1', snapshot))
    rmSync(file('d1', snapshot))
    writeFileSync(file('d2', snapshot), '{"half":')
    writeFileSync(file('d3', log), `${readFileSync(file('d3', log), 'utf8')}{"torn`)
    writeFileSync(file('d4', log), readFileSync(file('d4', log), 'utf8').replace('"actor"', '"b"'))
    const { code, report } = await reportOf(place, '--plan')
    expect(code).toBe(3)
    const told = report.findings.map(({ subject, severity, remedy }) => {
      return [subject.slice(0, 6), severity, remedy]
    })
    expect(told).toEqual([
      ['run d1', 'warning', 'rebuild the snapshot'],
      ['run d2', 'warning', 'rebuild the snapshot'],
      ['run d3', 'warning', 'rebuild the snapshot'],
      ['run d4', 'error', undefined],
    ])
    expect(report.findings[3]?.advice).toBe('See all of it: pawl run verify d4')
    expect(readFileSync(file('d2', snapshot), 'utf8')).toBe('{"half":')
    const damagedLog = readFileSync(file('d4', log))
    const applied = await place.run(APPLY)
    expect(applied).toMatchObject({ code: 3, stdout: expect.stringMatching(/findings: 1 errors/) })
    expect(readFileSync(file('d1', snapshot))).toEqual(whole)
    expect(await place.run(['run', 'verify', 'd1', 'd2', 'd3'])).toMatchObject({ code: 0 })
    expect(readFileSync(file('d4', log))).toEqual(damagedLog)
  })
})
