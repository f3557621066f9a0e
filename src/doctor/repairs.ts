/**
 * Repairs: what exactly would change, for people to read, and the way to do it. A plan is a list of
 * repairs that nobody carries out.
 */
import { isCommitted } from '../core/job/job.ts'
import { LANES } from '../core/job/lanes.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { columnsOf } from '../stores/columns.ts'
import { isDamage } from '../stores/damage.ts'
import type { Dossier, Drift, Surgeon } from '../stores/examination.ts'
import type { Asker, Store } from '../stores/store.ts'
import type { RunRecords } from './checks/runs-are-whole.ts'
import type { Finding, Remedy } from './finding.ts'
import { type Prescription, prescribe, type Surroundings } from './mend.ts'
import type { Patient } from './patient.ts'
import { STRAYS_MAX } from './stray-effects.ts'

/** One column of a row, before and after. */
export interface Change {
  readonly column: string
  readonly from: unknown
  readonly to: unknown
}

/** What a repair changes, as far as people must know. */
export interface Repair {
  readonly subject: string
  readonly remedy: Remedy
  readonly why: string
  /** The columns of the job's row. */
  readonly changes: readonly Change[]
  /** The fact that is added to the ledger, by its number. */
  readonly factSeq?: number
  /** How many rows are taken out of their tables and kept aside. */
  readonly aside: number
}

/** A repair that can be carried out. */
export interface Doable extends Repair {
  carryOut(by: Surgeon): Promise<void>
}

/** What is prescribed for a job. */
export function repairOfJob(
  store: Store,
  examine: (dossier: Dossier) => Patient,
  patient: Patient,
  { remedy, why, after, aside }: Prescription,
  around: Surroundings,
): Doable {
  const { ref } = patient.dossier
  return {
    subject: `job ${patient.id}`,
    ...{ remedy, why, changes: changesOf(patient, after), aside: aside.length },
    ...(after !== undefined && { factSeq: after.fact.seq }),
    carryOut: async (by) => {
      const mend = (more: Partial<Surroundings>) =>
        store.examination.mend(
          ref,
          (dossier, now) => prescribe(examine(dossier), { ...around, ...more, now }, by),
          by,
        )
      // Of a job that is restored nobody knows beforehand that another has its key or its id.
      const own = new Set([patient.id])
      const isRestored = patient.dossier.row === null && after !== undefined
      const ways = isRestored ? [{}, { keyless: own }, { duplicateIds: own }] : [{}]
      await firstWithin(ways.map((way) => () => mend(way)))
    },
  }
}

/** The first one that no constraint excludes. Any other failure must not cost a job its key. */
async function firstWithin(ways: readonly (() => Promise<unknown>)[]): Promise<void> {
  for (const [i, way] of ways.entries()) {
    try {
      await way()
      return
    } catch (error) {
      if (i === ways.length - 1 || !isDamage(error)) throw error
    }
  }
}

/** The columns that a repair writes otherwise than they are. */
function changesOf({ dossier }: Patient, after: Prescription['after']): Change[] {
  if (after === undefined) return []
  const { job, lane, leaseUntil, lifecycle } = after
  const { machine: _number, ...columns } = columnsOf({
    job,
    machine: 0,
    lane: LANES[lane],
    leaseUntil,
  })
  const { machine } = dossier
  const found: Readonly<Record<string, unknown>> = {
    ...dossier.row,
    lifecycle: machine && `${machine.name} v${machine.version}`,
  }
  const wanted = { ...columns, lifecycle: `${lifecycle.name} v${lifecycle.version}` }
  return Object.entries(wanted)
    .map(([column, to]) => ({ column, from: found[column] ?? null, to }))
    .filter(({ from, to }) => from !== to)
}

/** What can be done about a job that is well, but does not get on; else nothing. */
export function repairOfCourse(store: Store, patient: Patient, finding: Finding): Doable[] {
  const { job } = patient
  if (job === null) return []
  const { attempt, execution } = job
  const base = { ...simple(finding), subject: `job ${job.id}` }
  const tell = (command: Parameters<Store['tell']>[1]): Doable => ({
    ...base,
    carryOut: async (by) => {
      const [answer] = await store.tell([job.id], command, askerOf(by))
      if (answer?.kind === 'rejected') throw answer.error
    },
  })
  switch (finding.remedy) {
    case 'expire the lease':
      if (execution === null || isCommitted(job)) return []
      return [tell({ kind: 'expire', fence: { attempt, claim: execution.claim } })]
    case 'finish the commit':
      return [tell({ kind: 'done', attempt })]
    case 'make the job ready':
      return [{ ...base, carryOut: async () => void (await store.promote(PROMOTE_MAX)) }]
    default:
      return []
  }
}

/** So many jobs are made ready at once. */
const PROMOTE_MAX = 1000

function askerOf({ operator, note }: Surgeon): Asker {
  return { actor: 'doctor', operator, note }
}

/** What can be done about the store as a whole. */
export function repairOfStore(
  store: Store,
  finding: Omit<Finding, 'check'>,
  drift: readonly Drift[],
): Doable[] {
  const base = simple(finding)
  const { examination } = store
  if (finding.remedy === 'rebuild the counters') {
    return [{ ...base, carryOut: () => examination.recount() }]
  }
  if (finding.remedy === 'restore the queue') {
    const queue = String(finding.evidence.queue)
    return [{ ...base, carryOut: (by) => examination.restoreQueue(queue, by) }]
  }
  if (finding.remedy === 'forget the worker') {
    return [{ ...base, carryOut: () => store.removeWorker(String(finding.evidence.worker)) }]
  }
  if (finding.remedy === 'note what is wrong and go on') {
    const { origin, state } = finding.evidence
    const carryOut = (by: Surgeon) =>
      examination.note(String(origin), String(state), finding.what, by)
    return [{ ...base, carryOut }]
  }
  if (finding.remedy === 'return the effect to its job') {
    // All at once: two may have changed places. Those after the first then find nothing to do.
    const carryOut = async (by: Surgeon) =>
      examination.returnEffects(await examination.strayEffects(STRAYS_MAX), by)
    return [{ ...base, carryOut }]
  }
  if (finding.remedy === 'restore the lifecycle') {
    const carryOut = async () => {
      const faults = await examination.machineFaults()
      const isSame = ({ name, version }: Pick<Lifecycle, 'name' | 'version'>) =>
        finding.subject === `lifecycle ${name} v${version}`
      const fault = faults.find(({ lifecycle }) => isSame(lifecycle))
      if (fault !== undefined) await examination.restoreMachine(fault)
    }
    return [{ ...base, carryOut }]
  }
  if (finding.remedy !== 'restore the schema') return []
  const object = drift.find(({ kind, name }) => finding.subject === `${kind} ${name}`)
  return object === undefined ? [] : [{ ...base, carryOut: () => examination.restore(object) }]
}

/** What can be done about a run. */
export function repairOfRun(records: RunRecords, runId: string, finding: Finding): Doable[] {
  if (finding.remedy === undefined) return []
  return [{ ...simple(finding), carryOut: () => records.mend(runId) }]
}

function simple({ subject, remedy, what }: Omit<Finding, 'check'>): Repair {
  return { subject, remedy: remedy as Remedy, why: what, changes: [], aside: 0 }
}
