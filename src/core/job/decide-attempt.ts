/**
 * What an attempt may do to its job: claim, start, step, commit, done, and the ways in which it can
 * end before its commit. `decide.ts` has already checked the fence. Claim, done and expire are the
 * exceptions: their sender does not hold the job.
 */
import { CommandInvalid, InvalidTransition, LeaseLive, NotDue, StaleFence } from '../errors.ts'
import type { AbortReason, ExecutionStatus } from '../execution.ts'
import { executionMachine } from '../execution.ts'
import type { Failure } from '../failure.ts'
import { pathOf } from '../lifecycles/lifecycle.ts'
import { allowedFrom } from '../machine/move.ts'
import { retryDelayMs } from '../retry.ts'
import type { Command } from './commands.ts'
import {
  accept,
  type Decision,
  type FactFields,
  follow,
  note,
  offPath,
  policyOf,
  reject,
  SAME,
  type Situation,
} from './decision.ts'
import type { Fact } from './facts.ts'
import { findStale, isExpired } from './fence.ts'
import {
  type CurrentExecution,
  isCommitted,
  isPastDeadline,
  type Job,
  type JobError,
} from './job.ts'
import { isDue } from './lanes.ts'

type Of<K extends Command['kind']> = Extract<Command, { kind: K }>

/**
 * Takes the lease. A repeated claim is a no-op; another claim is rejected as stale. Past the
 * deadline of the job the attempt does not start: its holder can only end it.
 */
export function decideClaim(situation: Situation, command: Of<'claim'>): Decision {
  const { lifecycle, job, context } = situation
  if (job.execution !== null) {
    const stale = findStale(job, { attempt: job.attempt, claim: command.claim }, context.now)
    return stale === undefined ? SAME : reject(stale)
  }
  if (pathOf(lifecycle, job.state, 'claim') === undefined) return offPath(situation, 'claim')
  if (job.blockedReason === null && !isDue(job, context.now))
    return reject(new NotDue(job.id, job.runAt))
  if (command.leaseUntil <= context.now) {
    return reject(new CommandInvalid('leaseUntil', 'must be in the future'))
  }
  const starts = command.start && !isPastDeadline(job, context.now)
  return follow(situation, 'claim', {
    execution: {
      attempt: job.attempt + 1,
      statuses: starts ? ['LEASED', 'IN_PROGRESS'] : ['LEASED'],
      claim: command.claim,
      worker: command.worker,
      leaseUntil: command.leaseUntil,
    },
  })
}

/** Records that the handler is about to run. From here on an expired lease is a crash. */
export function decideStart(situation: Situation): Decision {
  const { job } = situation
  if (job.execution?.status === 'IN_PROGRESS') return SAME
  return note(situation, 'start', {
    execution: { attempt: job.attempt, statuses: ['IN_PROGRESS'] },
  })
}

/** Records the result of a step. The result itself is stored beside the fact. */
export function decideStep(situation: Situation, command: Of<'step'>): Decision {
  const notStarted = findNotStarted(situation.job, 'IN_PROGRESS')
  if (notStarted !== undefined) return reject(notStarted)
  if (command.known) return SAME
  return note(situation, 'step', { step: { name: command.name, n: command.n } })
}

/** The commit boundary. Without effects to deliver, the job succeeds in the same step. */
export function decideCommit(situation: Situation, command: Of<'commit'>): Decision {
  const { job } = situation
  const notStarted = findNotStarted(job, 'COMMITTED')
  if (notStarted !== undefined) return reject(notStarted)
  const { claim, leaseUntil } = job.execution as CurrentExecution
  const effects = command.effects ?? 0
  const statuses: ExecutionStatus[] = effects > 0 ? ['COMMITTED'] : ['COMMITTED', 'DONE']
  const execution = { attempt: job.attempt, statuses, claim, leaseUntil }
  // No spread without need: every job that succeeds is decided here.
  const fields: FactFields =
    command.usage === undefined
      ? { error: null, effects, execution }
      : { error: null, effects, usage: { ...command.usage }, execution }
  return effects > 0 ? note(situation, 'commit', fields) : follow(situation, 'succeed', fields)
}

/** Records that all effects are delivered. Needs no fence: after the commit there is no lease. */
export function decideDone(situation: Situation, command: Of<'done'>): Decision {
  const { lifecycle, job } = situation
  if (command.attempt !== job.attempt) return reject(new StaleFence(job.id, 'attempt'))
  if (job.execution?.status === 'DONE') return SAME
  if (!isCommitted(job)) return reject(new StaleFence(job.id, 'not-held'))
  return accept(situation, 'done', [lifecycle.succeeded], {
    execution: { attempt: job.attempt, statuses: ['DONE'] },
  })
}

/** Retries, ends or parks the job, depending on the failure class and the budget. */
export function decideFail(situation: Situation, command: Of<'fail'>): Decision {
  const { lifecycle, job } = situation
  const { failure } = command
  const own: OwnFields = {
    ...(command.usage !== undefined && { usage: { ...command.usage } }),
    ...(failure.thrown !== undefined && { thrown: failure.thrown }),
  }
  const abort = failure.kind === 'timeout' ? 'timeout' : 'error'
  const canRetry = pathOf(lifecycle, job.state, 'retry') !== undefined
  if (failure.class === 'invalid_input') {
    const reason = failure.code === REPLAY_MISMATCH ? 'replay_mismatch' : 'invalid_input'
    const fields = { ...own, error: errorOf(failure), reason }
    return follow(situation, 'reject', fields, 'invalid_input')
  }
  if (failure.class === 'terminal' || !canRetry) {
    const fields = { ...own, error: errorOf(failure), reason: failure.kind }
    return follow(situation, 'fail', fields, abort)
  }
  return retryOrGiveUp(situation, failure, abort, own)
}

/** The code of the error that says that a handler waits for other things than before. */
const REPLAY_MISMATCH = 'E_REPLAY_MISMATCH'

/** The fields of a failed attempt that do not depend on the decision. */
type OwnFields = Pick<Fact, 'usage' | 'thrown'>

function retryOrGiveUp(
  situation: Situation,
  failure: Failure,
  abort: AbortReason,
  own: OwnFields,
): Decision {
  const { lifecycle, job, context } = situation
  const { retry } = policyOf(situation)
  const error = errorOf(failure)
  if (job.failures >= retry.max) {
    return follow(situation, 'give-up', { ...own, error, reason: 'retries_exhausted' }, abort)
  }
  const asked = lifecycle.retryFixed ? undefined : failure.retryAfterMs
  const delay = asked ?? retryDelayMs(retry, job.failures + 1, context.random, context.retriesAhead)
  const fields: FactFields = {
    ...own,
    error,
    reason: failure.kind,
    spends: 'failure',
    runAt: context.now + delay,
    ...(asked !== undefined && { delayAsked: true }),
  }
  return follow(situation, 'retry', fields, abort)
}

/** Returns the job to the queue at once. When the release budget is spent, it counts as a crash. */
export function decideRelease(situation: Situation): Decision {
  return releaseAttempt(situation, 'released')
}

/**
 * Suspends the job until the given time. It occupies no slot and spends no budget, but a job with
 * `SNOOZED_ATTEMPTS_MAX` attempts is given up. If the lifecycle has no edge for it, a snooze is a
 * release with a due time, and spends the release budget.
 */
export function decideSuspend(situation: Situation, command: Of<'suspend'>): Decision {
  const { lifecycle, job } = situation
  const { runAt, reason = 'suspended', gate } = command
  const fields = { runAt, reason, ...(gate !== undefined && { gate }) }
  const isAsked = reason !== 'suspended'
  if (isAsked && pathOf(lifecycle, job.state, 'suspend') === undefined) {
    return releaseAttempt(situation, 'suspended', fields)
  }
  if (isAsked && job.attempt >= SNOOZED_ATTEMPTS_MAX) {
    const error: JobError = { message: 'Snoozed too often', kind: reason, type: 'TERMINAL' }
    return follow(situation, 'give-up', { error, reason: 'snoozes_exhausted' }, 'suspended')
  }
  return follow(situation, 'suspend', fields, 'suspended')
}

/** A job with so many attempts is not snoozed again. Attempts only increase, so this is a bound. */
export const SNOOZED_ATTEMPTS_MAX = 10_000

/** Recovers an expired lease: a release if the handler had not started, else a crash. */
export function decideExpire(situation: Situation, command: Of<'expire'>): Decision {
  const { job, context } = situation
  if (!isExpired(job, context.now)) {
    return reject(new LeaseLive(job.id, (job.execution as CurrentExecution).leaseUntil))
  }
  if (job.execution?.status === 'LEASED') return releaseAttempt(situation, 'lease_expired')
  if (policyOf(situation).recovery === 'operator' && command.approved !== true) {
    return job.stalled ? SAME : note(situation, 'stall', { stalled: true, reason: 'stalled' })
  }
  return crash(situation, 'lease_expired')
}

function releaseAttempt(
  situation: Situation,
  abort: AbortReason,
  fields: FactFields = { runAt: situation.context.now, reason: abort },
): Decision {
  const { job } = situation
  if (job.releases >= policyOf(situation).releasesMax) return crash(situation, abort)
  return follow(situation, 'release', { ...fields, spends: 'release' }, abort)
}

/** Attempts that count as crashes because the release budget is spent. */
const CRASHES: ReadonlyMap<AbortReason, string> = new Map([
  ['released', 'Released too often'],
  ['suspended', 'Snoozed too often'],
])

function crash(situation: Situation, abort: AbortReason): Decision {
  const { lifecycle, job, context } = situation
  const policy = policyOf(situation)
  const { spends, delayMs, everCounted } = lifecycle.crash
  const tries = job.attempt - job.releases
  const crashes = everCounted ? tries - 1 : job.crashes
  const spent = spends === 'failure' ? job.failures : crashes
  const max = spends === 'failure' ? policy.retry.max : policy.crashesMax
  const message = CRASHES.get(abort) ?? 'The lease expired'
  const error: JobError = { message, kind: abort, type: 'RETRYABLE' }
  if (spent >= max) {
    const reason = spends === 'failure' ? 'retries_exhausted' : 'crashes_exhausted'
    return follow(situation, 'give-up', { error, reason }, abort)
  }
  const delay =
    delayMs === 'as-retry'
      ? retryDelayMs(policy.retry, spent + 1, context.random, context.retriesAhead)
      : delayMs
  const fields = { error, reason: abort, spends, runAt: context.now + delay }
  return follow(situation, 'expire', fields, abort)
}

function errorOf(failure: Failure): JobError {
  const type = failure.class === 'retryable' ? 'RETRYABLE' : 'TERMINAL'
  const { message, kind, name, code, fingerprint } = failure
  return {
    message,
    kind,
    type,
    ...(name !== undefined && { name }),
    ...(code !== undefined && { code }),
    ...(fingerprint !== undefined && { fingerprint }),
  }
}

function findNotStarted(job: Job, to: string): InvalidTransition | undefined {
  if (job.execution?.status !== 'LEASED') return undefined
  const allowed = allowedFrom(executionMachine, 'LEASED')
  return new InvalidTransition(executionMachine.name, 'LEASED', to, allowed)
}
