/**
 * Repairs: what each would change, and the function that does it. `pawl doctor --plan` shows them;
 * `--apply` also carries them out.
 */
import { isCommitted } from '../core/job/job.ts'
import { LANES } from '../core/job/lanes.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { columnsOf } from '../stores/columns.ts'
import type { Drift, RepairAuthor, StoredJob } from '../stores/contract/examination.ts'
import type { TicksOf } from '../stores/contract/schedules.ts'
import type { Requester, Store } from '../stores/contract/store.ts'
import { isDamage } from '../stores/damage.ts'
import type { RunRecords } from './checks/runs-are-whole.ts'
import type { ExaminedJob } from './examined-job.ts'
import type { Finding, Remedy } from './finding.ts'
import { planRepair, type RepairPlan, type Surroundings } from './mend.ts'
import { STRAYS_MAX } from './stray-effects.ts'

/** One column of a row, before and after. */
export interface Change {
  readonly column: string
  readonly from: unknown
  readonly to: unknown
}

export interface Repair {
  readonly subject: string
  readonly remedy: Remedy
  readonly why: string
  /** The columns of the job's row. */
  readonly changes: readonly Change[]
  /** The number of the fact that the repair adds. */
  readonly factSeq?: number
  /** How many rows are set aside: moved from their tables to a table of their own. */
  readonly aside: number
}

/** A repair that can be carried out. */
export interface Doable extends Repair {
  carryOut(by: RepairAuthor): Promise<void>
}

/** Makes the repair of a job from its plan. The job is read and planned again when it runs. */
export function repairOfJob(
  store: Store,
  examine: (stored: StoredJob) => ExaminedJob,
  examined: ExaminedJob,
  { remedy, why, after, aside }: RepairPlan,
  around: Surroundings,
): Doable {
  const { ref } = examined.stored
  return {
    subject: `job ${examined.id}`,
    ...{ remedy, why, changes: changesOf(examined, after), aside: aside.length },
    ...(after !== undefined && { factSeq: after.fact.seq }),
    carryOut: async (by) => {
      const mend = (more: Partial<Surroundings>) =>
        store.examination.mend(
          ref,
          (stored, now) => planRepair(examine(stored), { ...around, ...more, now }, by),
          by,
        )
      // Another job may have the key or id of a restored job. Only the write shows it.
      const own = new Set([examined.id])
      const isRestored = examined.stored.row === null && after !== undefined
      const ways = isRestored ? [{}, { keyless: own }, { duplicateIds: own }] : [{}]
      await firstWithin(ways.map((way) => () => mend(way)))
    },
  }
}

/** Tries until no constraint rejects the write. Any other failure must not cost a job its key. */
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

/** Returns the columns that the repair changes. */
function changesOf({ stored }: ExaminedJob, after: RepairPlan['after']): Change[] {
  if (after === undefined) return []
  const { job, lane, leaseUntil, lifecycle } = after
  const { machine: _number, ...columns } = columnsOf({
    job,
    machine: 0,
    lane: LANES[lane],
    leaseUntil,
  })
  const { machine } = stored
  const found: Readonly<Record<string, unknown>> = {
    ...stored.row,
    lifecycle: machine && `${machine.name} v${machine.version}`,
  }
  const wanted = { ...columns, lifecycle: `${lifecycle.name} v${lifecycle.version}` }
  return Object.entries(wanted)
    .map(([column, to]) => ({ column, from: found[column] ?? null, to }))
    .filter(({ from, to }) => from !== to)
}

/** Makes the repair of a job that is intact but does not progress, such as an expired lease. */
export function repairOfCourse(store: Store, examined: ExaminedJob, finding: Finding): Doable[] {
  const { job } = examined
  if (job === null) return []
  const { attempt, execution } = job
  const base = { ...simple(finding), subject: `job ${job.id}` }
  const apply = (command: Parameters<Store['applyCommand']>[1]): Doable => ({
    ...base,
    carryOut: async (by) => {
      const [answer] = await store.applyCommand([job.id], command, requesterOf(by))
      if (answer?.kind === 'rejected') throw answer.error
    },
  })
  switch (finding.remedy) {
    case 'expire the lease':
      if (execution === null || isCommitted(job)) return []
      return [apply({ kind: 'expire', fence: { attempt, claim: execution.claim } })]
    case 'finish the commit':
      return [apply({ kind: 'done', attempt })]
    case 'make the job ready':
      return [{ ...base, carryOut: async () => void (await store.promote(PROMOTE_MAX)) }]
    default:
      return []
  }
}

const PROMOTE_MAX = 1000

function requesterOf({ operator, note }: RepairAuthor): Requester {
  return { actor: 'doctor', operator, note }
}

/** Makes the repair of a finding about the whole store. */
export function repairOfStore(
  store: Store,
  finding: Omit<Finding, 'check'>,
  drift: readonly Drift[],
  ticksOf?: TicksOf,
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
  if (finding.remedy === 'restore the schedule' && ticksOf !== undefined) {
    const schedule = String(finding.evidence.schedule)
    return [{ ...base, carryOut: (by) => store.schedules.restore(schedule, ticksOf, by) }]
  }
  if (finding.remedy === 'restore the limit') {
    const limit = String(finding.evidence.limit)
    return [{ ...base, carryOut: (by) => store.limits.restore(limit, by) }]
  }
  if (finding.remedy === 'recount the limit') {
    const gates = [String(finding.evidence.gate)]
    return [{ ...base, carryOut: async () => void (await store.limits.recount(gates)) }]
  }
  if (finding.remedy === 'restore the links') {
    const waiters = [String(finding.evidence.waiter)]
    return [{ ...base, carryOut: () => store.flows.relink(waiters) }]
  }
  if (finding.remedy === 'forget the worker') {
    return [{ ...base, carryOut: () => store.removeWorker(String(finding.evidence.worker)) }]
  }
  if (finding.remedy === 'note what is wrong and go on') {
    const { origin, state } = finding.evidence
    const carryOut = (by: RepairAuthor) =>
      examination.note(String(origin), String(state), finding.what, by)
    return [{ ...base, carryOut }]
  }
  if (finding.remedy === 'return the effect to its job') {
    // All in one call: two effects may have exchanged their keys. Later calls find nothing.
    const carryOut = async (by: RepairAuthor) =>
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

export function repairOfRun(records: RunRecords, runId: string, finding: Finding): Doable[] {
  if (finding.remedy === undefined) return []
  return [{ ...simple(finding), carryOut: () => records.mend(runId) }]
}

function simple({ subject, remedy, what }: Omit<Finding, 'check'>): Repair {
  return { subject, remedy: remedy as Remedy, why: what, changes: [], aside: 0 }
}
