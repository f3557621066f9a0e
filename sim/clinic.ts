/**
 * The doctor in the simulation. Every seed ends with a full check: a finding that is an error means
 * that a promise is broken. In some seeds a job is then damaged on purpose, past the store and its
 * guards; the doctor must see that, and mend it with a fact that says who asked for it.
 */
import { Doctor, type DoctorReport, type Finding } from 'pawl/doctor'
import type { Database, Store } from 'pawl/sqlite'
import type { Random } from 'pawl/testing'
import { type Judged, judgeJobs, readStore, type Told } from './checker.ts'
import { EVERY_LIFECYCLE } from './parcels.ts'

/** What is damaged: how, and the promise that the doctor must find broken. */
interface Damage {
  readonly name: string
  readonly promise: string
  readonly guard: string
  /** Nothing where it cannot be done to this job. */
  readonly sql: (told: Told) => string | undefined
}

const ROW = "(SELECT rid FROM pawl_jobs WHERE id = 'ID')"

const DAMAGES: readonly Damage[] = [
  {
    name: 'its row was changed',
    promise: 'P9',
    guard: 'pawl_succeeded_is_final',
    sql: () => "UPDATE pawl_jobs SET priority = priority + 1 WHERE id = 'ID'",
  },
  {
    name: 'a fact was deleted from the middle',
    promise: 'P8',
    guard: 'pawl_ledger_is_never_deleted',
    sql: ({ facts }) => {
      if (facts.length < 3) return undefined
      return `DELETE FROM pawl_ledger WHERE job = ${ROW} AND seq = ${facts.length - 1}`
    },
  },
  {
    name: 'its last fact was deleted',
    promise: 'P8',
    guard: 'pawl_ledger_is_never_deleted',
    sql: ({ facts }) => `DELETE FROM pawl_ledger WHERE job = ${ROW} AND seq = ${facts.length}`,
  },
  {
    name: 'its row was deleted',
    promise: 'P1',
    guard: 'pawl_live_jobs_are_not_deleted',
    sql: () => "DELETE FROM pawl_jobs WHERE id = 'ID'",
  },
]

const SURGEON = { operator: 'ada', reason: 'it was damaged on purpose' }

/** The broken promises of a report. A check that failed says nothing about them. */
export function judgeReport({ findings }: DoctorReport): Judged[] {
  return findings
    .filter(({ severity, what }) => severity === 'error' && !/^the check \S+ failed: /.test(what))
    .map(({ check, promise, subject, what }) => {
      return { promise, job: idIn(subject), what: `${check}: ${what}`, facts: [] }
    })
}

function idIn(subject: string): string {
  return subject.replace(/^job /, '')
}

/** Checks everything; where a job is to be damaged, it is, and then mended. */
export async function examine(
  store: Store,
  environment: ConstructorParameters<typeof Doctor>[0]['environment'],
  auditor: Database,
  told: readonly Told[],
  { random, isDamaged }: { readonly random: Random; readonly isDamaged: boolean },
): Promise<Judged[]> {
  const doctor = new Doctor({ store, environment, lifecycles: EVERY_LIFECYCLE })
  const judged = judgeReport(await doctor.check({ full: true }))
  if (judged.length > 0 || !isDamaged) return judged
  return operate(store, doctor, auditor, told, random)
}

async function operate(
  store: Store,
  doctor: Doctor,
  auditor: Database,
  told: readonly Told[],
  random: Random,
): Promise<Judged[]> {
  const one = told[Math.floor(random.next() * told.length)]
  const damage = DAMAGES[Math.floor(random.next() * DAMAGES.length)]
  const statement = one && damage?.sql(one)
  if (one === undefined || damage === undefined || statement === undefined) return []
  const { id } = one.job
  auditor.exec(`PRAGMA foreign_keys = OFF; DROP TRIGGER ${damage.guard}`)
  auditor.exec(statement.replace('ID', id))
  const judged = (promise: string, what: string): Judged => {
    return { promise, job: id, what: `${damage.name}: ${what}`, facts: [] }
  }
  const { findings } = await doctor.check({ full: true })
  const isSeen = (found: Finding) => found.promise === damage.promise && idIn(found.subject) === id
  if (!findings.some(isSeen)) return [judged(damage.promise, 'the doctor does not see it')]
  await doctor.repair(SURGEON)
  const left = judgeReport(await doctor.check({ full: true }))
  const after = await readStore(store)
  const mended = after.find(({ job }) => job.id === id)
  const last = mended?.facts.at(-1)
  const isSigned = last?.trigger === 'repair' && last.operator === SURGEON.operator
  return [
    ...left.map(({ promise, what }) => judged(promise, `is not mended: ${what}`)),
    ...(isSigned ? [] : [judged('P2', 'was mended without a fact')]),
    ...judgeJobs(after, store.now(), EVERY_LIFECYCLE).filter(({ promise }) => promise !== 'P15'),
  ]
}
