/**
 * `evolve` folds facts into the job. It needs no lifecycle: a fact contains everything that it
 * changed. It checks that the fact follows from the job before it. A gap, a fact of another job or
 * a damaged row throws `LedgerBroken`.
 */
import { LedgerBroken } from '../errors.ts'
import { executionMachine } from '../execution.ts'
import { move } from '../machine/move.ts'
import { type ExecutionChange, FACT_VERSION, type Fact, sinceRebase } from './facts.ts'
import type { CurrentExecution, Job, JobAttributes } from './job.ts'

/** Returns the job after a fact. `job` is null before the first fact. */
export function evolve(job: Job | null, fact: Fact): Job {
  assertFollows(job, fact)
  if (fact.rebased !== undefined) {
    // Facts of earlier releases lack these four.
    return {
      ...fact.rebased,
      aheadMs: fact.rebased.aheadMs ?? 0,
      flow: fact.rebased.flow ?? null,
      node: fact.rebased.node ?? null,
      links: fact.rebased.links ?? 0,
      seq: fact.seq,
      updatedAt: fact.at,
    }
  }
  const before = job ?? newJob(fact)
  // A migration renames the state. Fields that a change of state resets are kept.
  const moved = fact.migrated === undefined && (fact.from !== fact.to || fact.via !== undefined)
  const execution = evolveExecution(before, fact)
  const leased = opensAttempt(fact.execution)
  const live = execution?.status === 'LEASED' || execution?.status === 'IN_PROGRESS'
  // Fields are listed by name: a spread of so many is slow to build and to read.
  return {
    id: before.id,
    type: before.type,
    queue: before.queue,
    lifecycle: before.lifecycle,
    lifecycleVersion: fact.migrated?.to ?? before.lifecycleVersion,
    tags: before.tags,
    key: before.key,
    limitKey: fact.limitKey === undefined ? before.limitKey : fact.limitKey,
    retryOf: before.retryOf,
    timeoutMs: before.timeoutMs,
    deadlineAt: before.deadlineAt,
    policy: before.policy,
    state: fact.to,
    seq: fact.seq,
    attempt: leased ? before.attempt + 1 : before.attempt,
    failures: countOf(before.failures, fact, 'failure'),
    crashes: countOf(before.crashes, fact, 'crash'),
    // Releases are not charged, so a redrive does not reset their count.
    releases: before.releases + (fact.spends === 'release' ? 1 : 0),
    priority: fact.priority ?? before.priority,
    aheadMs: fact.aheadMs ?? before.aheadMs,
    runAt: fact.runAt === undefined ? before.runAt : fact.runAt,
    createdAt: before.createdAt,
    startedAt: fact.execution !== undefined && live ? fact.at : before.startedAt,
    endedAt: moved ? (fact.outcome === undefined ? null : fact.at) : before.endedAt,
    updatedAt: fact.at,
    outcome: moved ? (fact.outcome ?? null) : before.outcome,
    // The reason is dropped with the state or the blocked reason that it explained.
    reason: fact.reason ?? (moved || fact.blockedReason === null ? null : before.reason),
    error: fact.error === undefined ? before.error : fact.error,
    blockedReason: fact.blockedReason === undefined ? before.blockedReason : fact.blockedReason,
    stalled: fact.stalled ?? (moved ? false : before.stalled),
    execution,
    flow: before.flow,
    node: before.node,
    links: fact.links ?? before.links,
  }
}

/** Returns the job that a complete ledger folds to. */
export function fold(facts: readonly Fact[]): Job | null {
  return sinceRebase(facts).reduce<Job | null>(evolve, null)
}

function countOf(before: number, fact: Fact, budget: 'failure' | 'crash'): number {
  if (fact.resets) return 0
  return before + (fact.spends === budget ? 1 : 0)
}

function opensAttempt(change: ExecutionChange | undefined): boolean {
  return change?.statuses[0] === 'LEASED'
}

function evolveExecution(before: Job, fact: Fact): CurrentExecution | null {
  const change = fact.execution
  if (change === undefined) return before.execution
  const status = change.statuses[change.statuses.length - 1] as string
  if (status === 'ABORTED') return null
  const source = (opensAttempt(change) ? change : before.execution) as CurrentExecution
  return {
    status: status as CurrentExecution['status'],
    claim: source.claim,
    worker: source.worker,
    leaseUntil: source.leaseUntil,
  }
}

function assertFollows(job: Job | null, fact: Fact): void {
  const problem = findProblem(job, fact)
  if (problem !== undefined) throw new LedgerBroken(`job ${fact.jobId}`, fact.seq, problem)
}

function findProblem(job: Job | null, fact: Fact): string | undefined {
  if (fact.version !== FACT_VERSION) return `unknown version ${String(fact.version)}`
  if (fact.rebased !== undefined) return findRebaseProblem(job, fact)
  if (job === null) {
    if (fact.seq !== 1) return 'the first fact is missing'
    const creates = fact.created !== undefined && fact.from === null
    if (!creates) return 'the first fact does not create the job'
    return fact.execution === undefined ? undefined : 'a creation must not open an attempt'
  }
  if (fact.created !== undefined) return 'the job is created a second time'
  if (fact.jobId !== job.id) return `it does not belong to job ${job.id}`
  if (fact.seq !== job.seq + 1) return `it does not follow ${job.seq}`
  if (fact.from !== job.state) return `it starts in ${String(fact.from)}, not in ${job.state}`
  if (fact.migrated !== undefined || fact.trigger === 'migrate') {
    return findMigrationProblem(job, fact)
  }
  return fact.execution === undefined ? undefined : findExecutionProblem(job, fact.execution)
}

/** A migration changes only the version and the state. */
function findMigrationProblem(job: Job, { trigger, migrated, execution }: Fact) {
  if (trigger !== 'migrate' || migrated === undefined) return 'it is not a migration'
  if (execution !== undefined) return 'a migration must not change an attempt'
  const { lifecycleVersion: version } = job
  if (migrated.from !== version) return `it migrates from ${migrated.from}, not from ${version}`
  return migrated.to > version ? undefined : `it migrates from ${version} to ${migrated.to}`
}

/** A rebasing repair may follow a gap and start in any state. It must be of this job and later. */
function findRebaseProblem(job: Job | null, { trigger, jobId, seq, to, rebased }: Fact) {
  if (trigger !== 'repair' || rebased?.id !== jobId) return 'it is not a repair of this job'
  if (rebased.state !== to) return `it leads to ${to}, but its job is in ${rebased.state}`
  return job !== null && job.seq >= seq ? `it does not follow ${job.seq}` : undefined
}

function findExecutionProblem(job: Job, change: ExecutionChange): string | undefined {
  const opens = opensAttempt(change)
  const attempt = opens ? job.attempt + 1 : job.attempt
  if (change.statuses.length === 0) return 'an attempt enters no status'
  if (change.attempt !== attempt) return `it is of attempt ${change.attempt}, not ${attempt}`
  if (opens && job.execution !== null) return 'an attempt is already open'
  if (!opens && job.execution === null) return 'no attempt is open'
  if (opens && !change.statuses.includes('ABORTED') && !isOwned(change)) {
    return 'an attempt is open without claim, worker or lease'
  }
  const statuses =
    job.execution === null ? change.statuses : [job.execution.status, ...change.statuses]
  const gap = statuses.findIndex(
    (to, i) =>
      i > 0 && move(executionMachine, statuses[i - 1] as typeof to, { to }).kind !== 'edge',
  )
  return gap < 0 ? undefined : `an attempt cannot go from ${statuses[gap - 1]} to ${statuses[gap]}`
}

function isOwned({ claim, worker, leaseUntil }: ExecutionChange): boolean {
  return claim !== undefined && worker !== undefined && leaseUntil !== undefined
}

/**
 * Returns the job just before its first fact. `assertFollows` has checked that the fact creates it.
 */
function newJob(fact: Fact): Job {
  const created = fact.created as JobAttributes
  return {
    id: fact.jobId,
    type: created.type,
    queue: created.queue,
    lifecycle: created.lifecycle,
    lifecycleVersion: created.lifecycleVersion,
    tags: created.tags,
    key: created.key,
    limitKey: created.limitKey,
    retryOf: created.retryOf,
    timeoutMs: created.timeoutMs,
    deadlineAt: created.deadlineAt,
    policy: created.policy,
    state: fact.to,
    seq: 0,
    attempt: 0,
    failures: 0,
    crashes: 0,
    releases: 0,
    priority: 0,
    aheadMs: 0,
    runAt: null,
    createdAt: fact.at,
    startedAt: null,
    endedAt: null,
    updatedAt: fact.at,
    outcome: null,
    reason: null,
    error: null,
    blockedReason: null,
    stalled: false,
    execution: null,
    flow: created.flow ?? null,
    node: created.node ?? null,
    links: 0,
  }
}
