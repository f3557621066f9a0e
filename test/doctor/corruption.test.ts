// Damage done by hand, past every constraint: each kind is found by the check that is meant for it,
// repaired with a record of who did it, and the store is clean afterwards.

import type { Job } from 'pawl'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Report } from '../../src/doctor/doctor.ts'
import { thorough } from '../support/extent.ts'
import { freshServerDatabase } from '../support/postgres/databases.ts'
import {
  admit,
  type Clinic,
  fill,
  type Kind,
  liftGuards,
  liftUniqueIds,
  nextId,
  openClinic,
  type Patients,
} from './clinic.ts'

/** One kind of damage. */
interface Damage {
  readonly what: string
  /** The job that is damaged; none where the store itself is. */
  readonly whose?: keyof Patients
  readonly sql: (clinic: Clinic, id: string, all: Patients) => string
  /** The check that must find it, and what it must planRepair. */
  readonly check: string
  readonly remedy: string
  /** What the job must be afterwards: unchanged unless said otherwise. */
  readonly after?: Partial<Job>
}

const FACT = `kind, at, path, actor, attempt, statuses, claim, worker, lease_until, data, payload`

/** Appends a fact that is like another one of the same job, but for some columns. */
function copyFact(clinic: Clinic, id: string, from: number, seq: number, changes: string): string {
  const columns = FACT.split(', ')
  const changed = new Map(
    changes.split('; ').map((change) => change.split(' = ') as [string, string]),
  )
  const values = columns.map((column) => changed.get(column) ?? column).join(', ')
  const more = clinic.kind === 'postgres' ? ', tx' : ''
  return `INSERT INTO @ledger (job, seq, ${FACT}${more})
    SELECT job, ${seq}, ${values}${more} FROM @ledger
    WHERE job = ${clinic.ref(id)} AND seq = ${from}`
}

const onRow = (set: string) => (_: Clinic, id: string) =>
  `UPDATE @jobs SET ${set} WHERE id = '${id}'`
const onFact = (seq: number, set: string) => (clinic: Clinic, id: string) =>
  `UPDATE @ledger SET ${set} WHERE job = ${clinic.ref(id)} AND seq = ${seq}`

const REBUILD = 'rebuild the row from its facts'
const QUARANTINE = 'quarantine the job'
const PARKED = { state: 'quarantined', outcome: null, execution: null } as const

const DAMAGES: readonly Damage[] = [
  {
    what: 'a negative number of attempts',
    whose: 'succeeded',
    sql: onRow('attempt = -1'),
    check: 'attempts-rise',
    remedy: REBUILD,
  },
  {
    what: 'a state that the lifecycle has not',
    whose: 'ready',
    sql: onRow(`state = 'lost'`),
    check: 'states-are-known',
    remedy: REBUILD,
  },
  {
    what: 'a lifecycle that nobody knows',
    whose: 'ready',
    sql: onRow('machine = 99'),
    check: 'states-are-known',
    remedy: REBUILD,
  },
  {
    what: 'an outcome without an end',
    whose: 'waiting',
    sql: onRow(`outcome = 'succeeded'`),
    check: 'states-are-known',
    remedy: REBUILD,
  },
  {
    what: 'a row that is not what its facts say',
    whose: 'ready',
    sql: onRow('priority = 77'),
    check: 'row-is-fold',
    remedy: REBUILD,
  },
  {
    what: 'a row that cannot be read',
    whose: 'failed',
    sql: onRow(`error = '{"message'`),
    check: 'states-are-known',
    remedy: REBUILD,
  },
  {
    what: 'a row of a succeeded job that was set back',
    whose: 'succeeded',
    sql: onRow(`state = 'queued', lane = 2, outcome = NULL, ended_at = NULL, status = NULL`),
    check: 'row-is-fold',
    remedy: REBUILD,
  },
  {
    what: 'a time of the last change that no fact has',
    whose: 'parked',
    sql: onRow('updated_at = updated_at - 5'),
    check: 'row-is-fold',
    remedy: REBUILD,
  },
  {
    what: 'a job in a lane where nobody finds it',
    whose: 'ready',
    sql: onRow('lane = 0'),
    check: 'row-is-fold',
    remedy: REBUILD,
  },
  {
    what: 'a held job without a lease',
    whose: 'held',
    sql: onRow('lease_until = NULL'),
    check: 'row-is-fold',
    remedy: REBUILD,
  },
  {
    what: 'a lease that never ends',
    whose: 'held',
    sql: onRow('lease_until = 9000000000000000'),
    check: 'row-is-fold',
    remedy: REBUILD,
  },
  {
    what: 'a row that was deleted',
    whose: 'ready',
    sql: (_, id) => `DELETE FROM @jobs WHERE id = '${id}'`,
    check: 'jobs-have-rows',
    remedy: 'restore the row from its facts',
  },
  {
    what: 'a row of a running job that was deleted',
    whose: 'held',
    sql: (_, id) => `DELETE FROM @jobs WHERE id = '${id}'`,
    check: 'jobs-have-rows',
    remedy: 'restore the row from its facts',
  },
  {
    what: 'a gap in the ledger of a succeeded job',
    whose: 'succeeded',
    sql: (clinic, id) => `DELETE FROM @ledger WHERE job = ${clinic.ref(id)} AND seq = 2`,
    check: 'ledger-is-whole',
    remedy: QUARANTINE,
    after: { state: 'succeeded', outcome: 'succeeded' },
  },
  {
    what: 'a ledger without its end',
    whose: 'held',
    sql: (clinic, id) => `DELETE FROM @ledger WHERE job = ${clinic.ref(id)} AND seq = 2`,
    check: 'ledger-is-whole',
    remedy: QUARANTINE,
    after: PARKED,
  },
  {
    what: 'a ledger that is gone',
    whose: 'ready',
    sql: (clinic, id) => `DELETE FROM @ledger WHERE job = ${clinic.ref(id)}`,
    check: 'ledger-is-whole',
    remedy: QUARANTINE,
    after: PARKED,
  },
  {
    what: 'a fact of an unknown kind',
    whose: 'failed',
    sql: onFact(3, 'kind = 99'),
    check: 'ledger-is-whole',
    remedy: QUARANTINE,
    after: { state: 'failed', outcome: 'failed' },
  },
  {
    what: 'a fact that cannot be read',
    whose: 'parked',
    sql: onFact(2, `data = '{"note'`),
    check: 'ledger-is-whole',
    remedy: QUARANTINE,
    after: PARKED,
  },
  {
    what: 'a first fact that names a lifecycle which no job has',
    whose: 'ready',
    sql: onFact(1, `data = replace(data, '"standard"', '"stanzard"')`),
    check: 'row-is-fold',
    remedy: QUARANTINE,
    after: PARKED,
  },
  {
    what: 'a fact of another version',
    whose: 'ready',
    sql: onFact(1, 'version = 7'),
    check: 'ledger-is-whole',
    remedy: QUARANTINE,
    after: PARKED,
  },
  {
    what: 'a change that is no edge',
    whose: 'held',
    sql: onFact(2, `path = 'queued>succeeded>running'`),
    check: 'changes-are-edges',
    remedy: QUARANTINE,
    after: PARKED,
  },
  {
    what: 'a second commit',
    whose: 'succeeded',
    sql: (clinic, id) => copyFact(clinic, id, 3, 4, `path = 'succeeded'; statuses = 'C'`),
    check: 'one-commit',
    remedy: QUARANTINE,
    after: { state: 'succeeded', outcome: 'succeeded' },
  },
  {
    what: 'attempts that fall',
    whose: 'held',
    sql: onFact(2, 'attempt = 7'),
    check: 'attempts-rise',
    remedy: QUARANTINE,
    after: PARKED,
  },
  {
    what: 'a change after the end',
    whose: 'succeeded',
    sql: (clinic, id) =>
      `${copyFact(clinic, id, 1, 4, `kind = 16; path = 'succeeded'; data = '{"priority":3}'`)};
       UPDATE @jobs SET seq = 4, priority = 3 WHERE id = '${id}'`,
    check: 'ended-jobs-rest',
    remedy: QUARANTINE,
    after: { state: 'succeeded', outcome: 'succeeded' },
  },
  {
    what: 'a write under a foreign claim',
    whose: 'failed',
    sql: onFact(3, `claim = '00000000-0000-7000-8000-00000000dead'`),
    check: 'writes-were-fenced',
    remedy: 'note what is wrong and go on',
  },
  {
    what: 'a claim before its time',
    whose: 'held',
    sql: onFact(2, 'at = at - 1000000'),
    check: 'retries-were-due',
    remedy: 'note what is wrong and go on',
    after: { state: 'running', attempt: 1 },
  },
  {
    what: 'an input that is gone',
    whose: 'ready',
    sql: onFact(1, 'payload = NULL'),
    check: 'inputs-are-kept',
    remedy: QUARANTINE,
    after: PARKED,
  },
  {
    what: 'effects that are gone',
    whose: 'delivering',
    sql: (clinic, id) => `DELETE FROM @outbox WHERE job = ${clinic.ref(id)}`,
    check: 'commits-are-finished',
    remedy: 'note what is wrong and go on',
    after: { state: 'succeeded', outcome: 'succeeded', reason: 'effects_lost' },
  },
  {
    what: 'an effect that nobody declared',
    whose: 'ready',
    sql: (clinic, id) => `INSERT INTO @outbox (job, type, name, n, payload, run_at)
      VALUES (${clinic.ref(id)}, 'mail', 'bill', 1, '{}', 9000000000000)`,
    check: 'effects-move',
    remedy: 'take the contradicting rows aside',
  },
  {
    what: 'an effect of no job at all',
    sql: ({ kind }) => `INSERT INTO @outbox (job, type, name, n, payload, run_at)
      VALUES (${kind === 'sqlite' ? '999999' : `'${nextId()}'`}, 'mail', 'bill', 1, '{}', 0)`,
    check: 'jobs-have-rows',
    remedy: 'take the contradicting rows aside',
  },
  {
    what: 'counters that are wrong',
    sql: ({ kind }) =>
      kind === 'sqlite'
        ? `UPDATE @ended_counts SET jobs = jobs + 5 WHERE queue = 'bulk-0'`
        : `INSERT INTO @ended_counts VALUES ('bulk-0', 'succeeded', 5)`,
    check: 'counters-are-right',
    remedy: 'rebuild the counters',
  },
  {
    what: 'the key of another job',
    whose: 'keyed',
    sql: (clinic, id, { ready }) =>
      `UPDATE @jobs SET key = 'taken' WHERE id IN ('${id}', '${ready}');
       UPDATE @ledger SET data = replace(data, '"key":null', '"key":"taken"')
         WHERE job = ${clinic.ref(ready)} AND seq = 1;
       UPDATE @ledger SET data = replace(data, '"key":"k-', '"key":"taken","x":"')
         WHERE job = ${clinic.ref(id)} AND seq = 1`,
    check: 'keys-are-unique',
    remedy: 'give the key up',
    after: { key: null },
  },
  {
    what: 'a second row with its id',
    whose: 'ready',
    sql: (_, id) => {
      const columns =
        'id, lane, machine, state, queue, type, priority, run_at, seq, created_at, updated_at'
      return `INSERT INTO @jobs (${columns}) SELECT ${columns} FROM @jobs WHERE id = '${id}'`
    },
    check: 'ids-are-unique',
    remedy: 'take the contradicting rows aside',
  },
]

const SIZE = thorough(1000, 10_000)
const OPERATOR = { operator: 'ann', reason: 'found it in the morning' }

describe.each<Kind>(['sqlite', 'postgres'])('a damaged store on %s', (kind) => {
  let clinic: Clinic
  let drop: () => Promise<void>
  let found: Report
  let repaired: Report
  let clean: Report
  const examinedJobs = new Map<Damage, { id: string | undefined; before: Job | undefined }>()

  beforeAll(async () => {
    const database = kind === 'sqlite' ? undefined : await freshServerDatabase()
    drop = database?.drop ?? (async () => {})
    clinic = await openClinic(kind, database?.url ?? '')
    const { store, doctor } = clinic
    await fill(store, SIZE)
    const admitted: Patients[] = []
    while (admitted.length < DAMAGES.length) admitted.push(await admit(store))
    expect(await doctor.check({ full: true })).toMatchObject({ ok: true, repairCount: 0 })
    await liftGuards(clinic)
    await liftUniqueIds(clinic)
    for (const [i, damage] of DAMAGES.entries()) {
      const all = admitted[i] as Patients
      const id = damage.whose === undefined ? undefined : all[damage.whose]
      examinedJobs.set(damage, { id, before: id === undefined ? undefined : await store.get(id) })
      await clinic.damage(damage.sql(clinic, id ?? '', all))
    }
    found = await doctor.check({ full: true })
    repaired = await doctor.repair(OPERATOR)
    clean = await doctor.check({ full: true })
  }, 120_000)

  afterAll(async () => {
    await clinic.close()
    await drop()
  })

  it.each(DAMAGES)('is reported: $what', (damage) => {
    const { id } = examinedJobs.get(damage) ?? {}
    const own = found.findings.filter(({ check, subject }) => {
      return check === damage.check && (id === undefined || subject === `job ${id}`)
    })
    const { remedy } = damage
    expect(own).toContainEqual(expect.objectContaining({ severity: 'error', remedy }))
  })

  it.each(DAMAGES.filter(({ whose }) => whose))('is mended: $what', async (damage) => {
    const { id = '', before } = examinedJobs.get(damage) ?? {}
    const { seq: _seq, updatedAt: _at, ...kept } = before as Job
    expect(await clinic.store.get(id)).toMatchObject(damage.after ?? kept)
    const last = (await clinic.store.facts(id)).at(-1)
    const signed = { actor: 'doctor', operator: 'ann', note: OPERATOR.reason }
    // A row that was nobody's leaves no trace in the ledger of the job whose id it had.
    if (damage.check !== 'ids-are-unique')
      expect(last).toMatchObject({ trigger: 'repair', ...signed })
  })

  it('is clean after the repair, and a second plan is empty', () => {
    expect(clean.findings.filter(({ severity }) => severity !== 'notice')).toEqual([])
    expect(clean).toMatchObject({ ok: true, complete: true, repairCount: 0 })
  })

  it('gets exactly the repairs that were planned', () => {
    // What the counters must be shows when the jobs are mended.
    const plan = ({ repairs }: Report) =>
      repairs
        .filter(({ remedy }) => remedy !== 'rebuild the counters')
        .map(({ subject, remedy }) => `${remedy}: ${subject}`)
        .toSorted()
    expect(plan(repaired)).toEqual(plan(found))
  })

  it('keeps rows that were set aside unchanged, with operator and reason', async () => {
    const rows = await clinic.rows<Record<string, string>>(
      `SELECT origin, content, operator, note FROM @quarantined
       WHERE origin NOT IN ('seal', 'vanished')`,
    )
    const aside = found.repairs.reduce((sum, repair) => sum + repair.aside, 0)
    expect(rows).toHaveLength(aside)
    for (const row of rows) {
      expect(row).toMatchObject({ operator: 'ann', note: OPERATOR.reason })
      expect(Object.keys(JSON.parse(row.content as string))).toContain(
        'job' in JSON.parse(row.content as string) ? 'job' : 'id',
      )
    }
  })
})
