/**
 * What becomes of a job whose facts cannot be trusted. Nothing is invented: what the row or the
 * facts that still hold together say is kept, and the job is put where it can do no harm. What may
 * have been committed is taken as committed, because a second effect could not be undone; what had
 * ended stays ended; everything else is parked, and a person decides.
 */
import { evolve } from '../core/job/evolve.ts'
import { FACT_CODES, type Fact } from '../core/job/facts.ts'
import type { CurrentExecution, Job } from '../core/job/job.ts'
import { type Lifecycle, outcomeOf } from '../core/lifecycles/lifecycle.ts'
import type { Patient } from './patient.ts'

/** Stands for a claim that nobody knows any more; no worker ever gets it. */
const NO_CLAIM = '00000000-0000-0000-0000-000000000000'

/** The job as it is from now on; nothing where neither row nor facts say what it was. */
export function quarantineOf(patient: Patient, lifecycle: Lifecycle, now: number): Job | undefined {
  const before = patient.job ?? prefixOf(patient.facts)
  if (before === null) return undefined
  const base = soundOf(patient, lifecycle, before)
  if (wasCommitted(patient, before)) return committedOf(patient, lifecycle, base, now)
  const role = lifecycle.roles.get(before.state)
  const ended = outcomeOf(role)
  if (ended !== undefined && ended !== 'succeeded' && before.outcome === ended) {
    return { ...base, state: before.state, outcome: ended, endedAt: before.endedAt ?? now }
  }
  return parkedOf(base, lifecycle, now)
}

/** The job where it waits for a person. */
export function parkedOf(job: Job, { parked, ready }: Lifecycle, now: number): Job {
  return {
    ...job,
    state: parked ?? ready,
    runAt: job.runAt ?? now,
    blockedReason: parked === undefined ? 'quarantined' : null,
    reason: 'quarantined',
  }
}

/** The job after the facts that still hold together. */
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

/** The job with what cannot be true left out; nobody holds it. */
function soundOf(patient: Patient, lifecycle: Lifecycle, before: Job): Job {
  const { facts, id } = patient
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

/** Anything that says so is believed. */
function wasCommitted({ dossier, facts, effects }: Patient, before: Job): boolean {
  return (
    before.outcome === 'succeeded' ||
    ['C', 'D'].includes(dossier.row?.status ?? '') ||
    dossier.facts.some(({ kind }) => kind === FACT_CODES.commit || kind === FACT_CODES.done) ||
    facts.some(({ execution }) => execution?.statuses.includes('COMMITTED')) ||
    effects.length > 0
  )
}

/** Succeeded, or still waiting for effects that the outbox has. */
function committedOf(patient: Patient, lifecycle: Lifecycle, base: Job, now: number): Job {
  const isWaiting = patient.effects.some(({ state }) => state !== 'delivered')
  const known = patient.job?.execution ?? lastHolder(patient.facts)
  const execution: CurrentExecution = {
    status: isWaiting ? 'COMMITTED' : 'DONE',
    claim: known?.claim ?? NO_CLAIM,
    worker: known?.worker ?? 'doctor',
    leaseUntil: 0,
  }
  const attempt = Math.max(base.attempt, 1)
  if (isWaiting) return { ...base, attempt, state: lifecycle.held, execution }
  const endedAt = patient.job?.endedAt ?? now
  const ended = { outcome: 'succeeded', endedAt, error: null, reason: null } as const
  return { ...base, ...ended, attempt, state: lifecycle.succeeded, execution }
}

function lastHolder(facts: readonly Fact[]): { claim?: string; worker?: string } | undefined {
  return facts.findLast(({ execution }) => execution?.claim !== undefined)?.execution
}
