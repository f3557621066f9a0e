/**
 * Migrates a job to a later version of its lifecycle (`../lifecycles/migration.ts`). It is not a
 * command, because it is the only step that needs two lifecycles.
 *
 * A running attempt is not migrated: its worker uses the version with which it claimed the job.
 * While the lease is valid, only the holder may migrate the job, and proves itself by its fence.
 */
import { JobEnded, LeaseLive, LifecycleUnknown, MigrationInvalid } from '../errors.ts'
import type { Lifecycle } from '../lifecycles/lifecycle.ts'
import {
  type EarlierVersion,
  findMappingProblems,
  isSameToScheduler,
  migratedState,
} from '../lifecycles/migration.ts'
import type { Context, Fence } from './commands.ts'
import { type Decision, newFact, reject } from './decision.ts'
import { findStale } from './fence.ts'
import { isCommitted, type Job } from './job.ts'

/** Decides the migration to one later version. `before` is the job's current version. */
export function decideMigrate(
  before: EarlierVersion,
  next: Lifecycle,
  job: Job,
  context: Context,
  fence?: Fence,
): Decision {
  const { lifecycle: name, lifecycleVersion: version } = job
  if (name !== before.name || version !== before.version || name !== next.name) {
    return reject(new LifecycleUnknown(name, version))
  }
  if (job.outcome === 'succeeded') return reject(new JobEnded(job.id, job.state, 'migrate'))
  const held = holderProblem(job, context, fence)
  if (held !== undefined) return held
  const to = migratedState(next, version, job.state)
  if (to === undefined || !isSameToScheduler(before, next, job.state, to)) {
    const problems = findMappingProblems(before, next)
    const why = problems.length > 0 ? problems : [`${job.state} has no target`]
    return reject(new MigrationInvalid(name, version, next.version, why))
  }
  const fact = newFact(context, job.id, job.seq + 1, 'migrate', job.state, to)
  fact.migrated = { from: version, to: next.version }
  const staysParked = before.roles.get(job.state) === 'parked' && next.parked === undefined
  if (staysParked && job.blockedReason === null) fact.blockedReason = job.reason ?? 'parked'
  return { kind: 'fact', fact }
}

function holderProblem(job: Job, { now }: Context, fence?: Fence): Decision | undefined {
  const { execution } = job
  if (fence !== undefined) {
    const stale = findStale(job, fence, now)
    return stale && reject(stale)
  }
  if (execution === null || isCommitted(job) || execution.leaseUntil <= now) return undefined
  return reject(new LeaseLive(job.id, execution.leaseUntil))
}
