/**
 * Quarantines a job whose facts cannot be trusted. It keeps what the row, or the readable facts,
 * say. A job that may have been committed counts as committed, because a second effect could not be
 * undone. A job that had ended stays ended. Every other job is parked, and a person decides.
 */
import { evolve } from '../core/job/evolve.ts'
import { FACT_CODES, type Fact } from '../core/job/facts.ts'
import type { CurrentExecution, Job } from '../core/job/job.ts'
import { type Lifecycle, outcomeOf } from '../core/lifecycles/lifecycle.ts'
import type { ExaminedJob } from './examined-job.ts'

/** Used if the claim is lost; no worker ever has it. */
const NO_CLAIM = '00000000-0000-0000-0000-000000000000'

/** Returns the quarantined job, or `undefined` if neither row nor facts describe it. */
export function quarantineOf(
  examined: ExaminedJob,
  lifecycle: Lifecycle,
  now: number,
): Job | undefined {
  const before = examined.job ?? prefixOf(examined.facts)
  if (before === null) return undefined
  const base = soundOf(examined, lifecycle, before)
  if (wasCommitted(examined, before)) return committedOf(examined, lifecycle, base, now)
  const role = lifecycle.roles.get(before.state)
  const ended = outcomeOf(role)
  if (ended !== undefined && ended !== 'succeeded' && before.outcome === ended) {
    return { ...base, state: before.state, outcome: ended, endedAt: before.endedAt ?? now }
  }
  return parkedOf(base, lifecycle, now)
}

/** Returns the job in its parked state, or with a blocked reason if it has none. */
export function parkedOf(job: Job, { parked, ready }: Lifecycle, now: number): Job {
  return {
    ...job,
    state: parked ?? ready,
    runAt: job.runAt ?? now,
    blockedReason: parked === undefined ? 'quarantined' : null,
    reason: 'quarantined',
  }
}

/** Folds the facts up to the first one that does not follow from those before it. */
function prefixOf(facts: readonly Fact[]): Job | null {
  let job: Job | null = null
  for (const fact of facts) {
    try {
      job = evolve(job, fact)
    } catch {
      return job
    }
  }
  return job
}

/** Returns the job without impossible values and without an execution. */
function soundOf(examined: ExaminedJob, lifecycle: Lifecycle, before: Job): Job {
  const { facts, id } = examined
  const created = facts.find((fact) => fact.created !== undefined)?.created
  const leases = facts.map(({ execution }) => execution?.attempt ?? 0)
  const count = (value: number) => (Number.isSafeInteger(value) && value > 0 ? value : 0)
  return {
    ...before,
    ...created,
    id,
    lifecycle: lifecycle.name,
    lifecycleVersion: lifecycle.version,
    attempt: Math.max(count(before.attempt), ...leases.map(count)),
    failures: count(before.failures),
    crashes: count(before.crashes),
    releases: count(before.releases),
    outcome: null,
    endedAt: null,
    reason: before.reason,
    blockedReason: null,
    stalled: false,
    execution: null,
  }
}

/** Returns true if anything says that the job was committed. */
function wasCommitted({ stored, facts, effects }: ExaminedJob, before: Job): boolean {
  return (
    before.outcome === 'succeeded' ||
    ['C', 'D'].includes(stored.row?.status ?? '') ||
    stored.facts.some(({ kind }) => kind === FACT_CODES.commit || kind === FACT_CODES.done) ||
    facts.some(({ execution }) => execution?.statuses.includes('COMMITTED')) ||
    effects.length > 0
  )
}

/** Returns the job as succeeded, or as committed if effects are not delivered yet. */
function committedOf(examined: ExaminedJob, lifecycle: Lifecycle, base: Job, now: number): Job {
  const isWaiting = examined.effects.some(({ state }) => state !== 'delivered')
  const known = examined.job?.execution ?? lastHolder(examined.facts)
  const execution: CurrentExecution = {
    status: isWaiting ? 'COMMITTED' : 'DONE',
    claim: known?.claim ?? NO_CLAIM,
    worker: known?.worker ?? 'doctor',
    leaseUntil: 0,
  }
  const attempt = Math.max(base.attempt, 1)
  if (isWaiting) return { ...base, attempt, state: lifecycle.held, execution }
  const endedAt = examined.job?.endedAt ?? now
  const ended = { outcome: 'succeeded', endedAt, error: null, reason: null } as const
  return { ...base, ...ended, attempt, state: lifecycle.succeeded, execution }
}

function lastHolder(facts: readonly Fact[]): { claim?: string; worker?: string } | undefined {
  return facts.findLast(({ execution }) => execution?.claim !== undefined)?.execution
}
