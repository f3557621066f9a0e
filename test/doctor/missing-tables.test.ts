// Tables that somebody has dropped: the doctor gets in, tells of them, restores what can be had
// again, and says what can not.
import { LIFECYCLES } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { Doctor, type Report } from '../../src/doctor/doctor.ts'
import { type Examined, fill, STORES } from '../stores/examined-stores.ts'

const [FILE, SERVER] = STORES
const ANN = { operator: 'ann', reason: 'somebody dropped it' }

async function doctorOf({ again, environment }: Examined): Promise<Doctor> {
  const store = await again({ onFindings: 'warn' })
  return new Doctor({ store, lifecycles: LIFECYCLES, environment })
}

const told = ({ findings }: Report) => findings.map(({ check, subject }) => `${check}: ${subject}`)
const done = ({ repairs }: Report) => repairs.map(({ remedy, subject }) => `${remedy}: ${subject}`)

describe('a table of a SQLite file that was dropped', () => {
  it.each([
    'workers',
    'outbox',
    'queues',
    'queue_records',
    'schedules',
    'schedule_records',
    'links',
    'flows',
    'ended_counts',
    'pruned',
    'duties',
    'quarantined',
  ])('is told of, and is there again after a repair: %s', async (table) => {
    const examined = await FILE.open()
    await fill(examined)
    await examined.sql(`DROP TABLE @${table}`)
    const doctor = await doctorOf(examined)
    const found = await doctor.check({ full: true })
    expect(found.ok).toBe(false)
    expect(told(found)).toContain(`schema-is-as-declared: table pawl_${table}`)
    const repaired = await doctor.repair(ANN)
    expect(told(repaired)).toContain(`schema-is-as-declared: table pawl_${table}`)
    expect(done(repaired)).toContain(`restore the schema: table pawl_${table}`)
    expect(await doctor.check({ full: true })).toMatchObject({ ok: true, repairCount: 0 })
  })

  it('comes back with every job, where the facts are still there', async () => {
    const examined = await FILE.open()
    const { store, sql } = examined
    const ids = Object.values(await fill(examined))
    const before = await Promise.all(ids.map((id) => store.get(id)))
    await sql('PRAGMA foreign_keys = OFF')
    await sql('DROP TABLE @jobs')
    const doctor = await doctorOf(examined)
    expect(told(await doctor.check())).toContain('schema-is-as-declared: table pawl_jobs')
    await doctor.repair(ANN)
    expect(await doctor.check({ full: true })).toMatchObject({ ok: true, complete: true })
    const after = await Promise.all(ids.map((id) => store.get(id)))
    for (const [i, job] of after.entries()) {
      const { state, outcome, attempt, key, queue } = before[i] ?? {}
      expect(job).toMatchObject({ state, outcome, attempt, key, queue })
    }
  })
})

describe('a table of PostgreSQL that was dropped', () => {
  it.each(['workers', 'outbox', 'pruned', 'duties'])(
    'is told of, what else there is gets its repair, and that it cannot is told: %s',
    async (table) => {
      const examined = await SERVER.open()
      const { succeeded } = await fill(examined)
      await examined.sql(`DROP TABLE @${table} CASCADE`)
      await examined.sql('DROP INDEX @jobs_key')
      const doctor = await doctorOf(examined)
      const found = await doctor.check({ full: true })
      expect(told(found)).toContain(`schema-is-as-declared: table ${table}`)
      const repaired = await doctor.repair(ANN)
      expect(done(repaired)).toContain('restore the schema: index jobs_key')
      expect(repaired.findings).toContainEqual(
        expect.objectContaining({
          check: 'repairs-are-carried-out',
          subject: `table ${table}`,
          what: expect.stringContaining('cannot be repaired automatically'),
        }),
      )
      expect(await examined.store.get(succeeded)).toMatchObject({ outcome: 'succeeded' })
    },
  )
})
