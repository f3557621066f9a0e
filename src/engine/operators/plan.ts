/** What an operator command does to one job, decided on the job as it was read. */
import { createHash } from 'node:crypto'
import { DependencyOpen, NotDue, type PawlError } from '../../core/errors.ts'
import type { Command } from '../../core/job/commands.ts'
import { isCommitted, type Job } from '../../core/job/job.ts'
import { LINKS } from '../../core/job/links.ts'
import { reasonToFind } from '../../core/job/waits.ts'
import { type Lifecycle, pathOf } from '../../core/lifecycles/lifecycle.ts'
import type { SignalRequest } from '../../stores/contract/waits.ts'
import { approval, decisionKey } from '../approvals.ts'
import { JobNotAsking, JobNotStalled, JobRunning } from '../errors.ts'

/** What to do with one job. */
export type Step =
  | { readonly kind: 'apply'; readonly command: Command }
  | { readonly kind: 'cancel' }
  | { readonly kind: 'copy'; readonly id: string }
  | { readonly kind: 'signal'; readonly signal: SignalRequest; readonly isDecision?: true }
  | { readonly kind: 'refuse'; readonly error: PawlError }

/** The command of a step, as the store decides it. */
export function commandOf(step: Exclude<Step, { kind: 'refuse' | 'copy' }>): Command {
  if (step.kind === 'cancel') return { kind: 'cancel' }
  if (step.kind === 'apply') return step.command
  const { name, key } = step.signal
  return { kind: 'signal', name, key, known: false, awaited: false }
}

/** If the lease has expired, there is no worker to ask. */
export function planCancel(job: Job): Step {
  return job.stalled ? { kind: 'apply', command: { kind: 'cancel' } } : { kind: 'cancel' }
}

/** Redrives parked and failed jobs, makes waiting ones due, and copies ended ones. */
export function planRetry(job: Job, lifecycle: Lifecycle): Step {
  const redrive: Step = { kind: 'apply', command: { kind: 'redrive' } }
  if (isCommitted(job) || pathOf(lifecycle, job.state, 'redrive') !== undefined) return redrive
  if (job.outcome !== null) return { kind: 'copy', id: retryIdOf(job) }
  if (job.blockedReason !== null || lifecycle.roles.get(job.state) === 'parked') return redrive
  if (job.execution !== null) {
    return { kind: 'refuse', error: new JobRunning(job.id, 'retry', job.stalled) }
  }
  if ((job.links & LINKS.waits) !== 0) {
    return { kind: 'refuse', error: new DependencyOpen(job.id, 'retry') }
  }
  if (job.runAt === null) return { kind: 'refuse', error: new NotDue(job.id, null) }
  return { kind: 'apply', command: { kind: 'reschedule', runAt: 0 } }
}

/** Approves what a job asks for, or else the recovery of a job whose lease has expired. */
export function planApproval(job: Job, lifecycle: Lifecycle): Step {
  const { attempt, execution } = job
  if (isAsking(job, lifecycle)) return decision(job, true)
  if (execution === null || isCommitted(job)) {
    return { kind: 'refuse', error: new JobNotStalled(job.id) }
  }
  const fence = { attempt, claim: execution.claim }
  return { kind: 'apply', command: { kind: 'expire', fence, approved: true } }
}

export function planRejection(job: Job, lifecycle: Lifecycle): Step {
  if (isAsking(job, lifecycle)) return decision(job, false)
  return { kind: 'refuse', error: new JobNotAsking(job.id) }
}

/** Whether a job waits for an approval. */
function isAsking({ state, reason }: Job, { targets }: Lifecycle): boolean {
  return state === targets.get('wait') && reason === reasonToFind(approval.name)
}

function decision(job: Job, approved: boolean): Step {
  const signal = { name: approval.name, key: decisionKey(job), payload: `{"approved":${approved}}` }
  return { kind: 'signal', signal, isDecision: true }
}

/**
 * The id of the copy that retries a job. It is derived from the job, so that a second retry finds
 * the first copy. It starts with the time when the job ended, like ids generated at that time.
 */
function retryIdOf(job: Job): string {
  const time = (job.endedAt as number).toString(16).padStart(12, '0')
  const hash = createHash('sha256').update(`pawl retry of ${job.id}`).digest('hex')
  const variant = '89ab'[Number.parseInt(hash[3] as string, 16) % 4]
  const parts = [time.slice(0, 8), time.slice(8), `7${hash.slice(0, 3)}`]
  return [...parts, `${variant}${hash.slice(4, 7)}`, hash.slice(7, 19)].join('-')
}
