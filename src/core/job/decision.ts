/**
 * The result of a command, and the only place that builds facts. A command writes at most one fact:
 * one atomic step and one row of the ledger, regardless of the number of edges.
 */
import { InvalidTransition, JobParked, type PawlError, Unsupported } from '../errors.ts'
import type { AbortReason } from '../execution.ts'
import { type JobTrigger, type Lifecycle, outcomeOf, pathOf } from '../lifecycles/lifecycle.ts'
import { allowedFrom } from '../machine/move.ts'
import type { JobPolicy } from '../retry.ts'
import type { Context } from './commands.ts'
import { type ExecutionChange, FACT_VERSION, type Fact, type FactTrigger } from './facts.ts'
import type { Job } from './job.ts'
import { arrivedLinks, isWaiter } from './links.ts'
import { closesAttempt, timingOf } from './timing.ts'

/** The result of a command: a fact, a no-op, or a rejection. */
export type Decision =
  | { readonly kind: 'fact'; readonly fact: Fact }
  | { readonly kind: 'same' }
  | { readonly kind: 'rejected'; readonly error: PawlError }

export type Accepted = Extract<Decision, { kind: 'fact' }>

/** The input of a decision. */
export interface Situation {
  readonly lifecycle: Lifecycle
  readonly job: Job
  readonly context: Context
}

/** The result of a command that changes nothing. */
export const SAME: Decision = { kind: 'same' }

export function reject(error: PawlError): Decision {
  return { kind: 'rejected', error }
}

/** Returns the policy of the job, or of its lifecycle if it has none. */
export function policyOf({ lifecycle, job }: Situation): JobPolicy {
  return job.policy ?? lifecycle.policy
}

/** The fields of a fact that depend on the command. */
export type FactFields = Omit<
  Fact,
  | 'version'
  | 'jobId'
  | 'seq'
  | 'at'
  | 'trigger'
  | 'from'
  | 'via'
  | 'to'
  | 'actor'
  | 'outcome'
  | 'timing'
>

/** Returns a fact that changes no state. */
export function note(situation: Situation, trigger: FactTrigger, fields: FactFields): Accepted {
  return accept(situation, trigger, [], fields)
}

/** Returns a fact that takes the edges through these states. An empty path keeps the state. */
export function accept(
  { lifecycle, job, context }: Situation,
  trigger: FactTrigger,
  path: readonly string[],
  fields: FactFields,
): Accepted {
  const { execution } = fields
  const to = path[path.length - 1] ?? job.state
  const outcome = path.length > 0 ? outcomeOf(lifecycle.roles.get(to)) : undefined
  const fact = newFact(context, job.id, job.seq + 1, trigger, job.state, to)
  if (path.length > 1) fact.via = path.slice(0, -1)
  Object.assign(fact, fields)
  if (isWaiter(job) && path.length > 0 && leavesWait(lifecycle, job, to)) {
    fact.links = arrivedLinks(job.links)
  }
  if (outcome !== undefined) {
    fact.outcome = outcome
    // An ended job is not parked.
    if (job.blockedReason !== null) fact.blockedReason = null
    if (execution?.abort !== undefined) fact.execution = { ...execution, final: true }
  }
  if (execution !== undefined && closesAttempt(execution)) {
    fact.timing = timingOf(job, execution, context.now)
  }
  return { kind: 'fact', fact }
}

/**
 * Returns true if a job that moves waits no longer. A parent looks at its children again when its
 * handler runs. A dependent that is parked or has ended still must not start.
 */
function leavesWait({ targets, roles }: Lifecycle, { state }: Job, to: string): boolean {
  const role = roles.get(to)
  return state === targets.get('wait') || role === 'ready' || role === 'waiting'
}

type Draft = { -readonly [Field in keyof Fact]: Fact[Field] }

/**
 * Builds a fact with its required fields and those of the context. Optional fields are added one by
 * one: a literal with a spread for each is several times slower, and every change of a job builds a
 * fact.
 */
export function newFact(
  context: Context,
  jobId: string,
  seq: number,
  trigger: FactTrigger,
  from: string | null,
  to: string,
): Draft {
  const { now: at, actor, operator, note, metadata, traceId, spanId } = context
  const fact: Draft = { version: FACT_VERSION, jobId, seq, at, trigger, from, to, actor }
  if (operator !== undefined) fact.operator = operator
  if (note !== undefined) fact.note = note
  // A copy: later changes of the caller's object must not reach the fact.
  if (metadata !== undefined) fact.metadata = { ...metadata }
  if (traceId !== undefined) fact.traceId = traceId
  if (spanId !== undefined) fact.spanId = spanId
  if (context.traceFlags !== undefined) fact.traceFlags = context.traceFlags
  if (context.traceState !== undefined) fact.traceState = context.traceState
  return fact
}

/**
 * Takes the path of a trigger from the current state of the job.
 *
 * - Rejects with `Unsupported` if the lifecycle never uses the trigger.
 * - Returns "same" if the job is already in the target state of the trigger.
 * - Rejects with `InvalidTransition` in any other state without a path.
 */
export function follow(
  situation: Situation,
  trigger: JobTrigger,
  fields: FactFields,
  abort?: AbortReason,
): Decision {
  const { lifecycle, job } = situation
  const path = pathOf(lifecycle, job.state, trigger)
  if (path === undefined) return offPath(situation, trigger)
  // Rule G7: a job with a blocked reason stays until an operator acts.
  if (job.blockedReason !== null && FLOW_TRIGGERS.includes(trigger)) {
    return reject(new JobParked(job.id, job.blockedReason))
  }
  const execution = abort === undefined ? undefined : abortChange(situation, path, abort)
  const all = execution === undefined ? fields : { ...fields, execution }
  return accept(situation, factOf(trigger), path, all)
}

const FLOW_TRIGGERS: readonly JobTrigger[] = [
  'submit',
  'schedule',
  'due',
  'run-now',
  'reschedule',
  'exhaust',
  'claim',
]

/** Returns the result of a trigger that has no path from the current state. */
export function offPath({ lifecycle, job }: Situation, trigger: JobTrigger): Decision {
  const target = lifecycle.targets.get(trigger)
  if (target === undefined) return reject(new Unsupported(lifecycle.name, trigger))
  return target === job.state ? SAME : misplaced(lifecycle, job, trigger, target)
}

/** Rejects a command that the lifecycle has, but not in the current state. */
export function misplaced(
  lifecycle: Lifecycle,
  job: Job,
  command: string,
  target: string,
): Decision {
  const { name, machine } = lifecycle
  const { state } = job
  const edge = machine.byTarget.get(state)?.get(target)
  // If the edge exists under other triggers, the message must say so.
  const why = edge && `only ${edge.on.join(', ')} takes this edge, not ${command}`
  const instead = insteadOf(lifecycle, state, command)
  const more = { ...(why !== undefined && { why }), instead }
  const allowed = allowedFrom(machine, state)
  return reject(new InvalidTransition(name, state, target, allowed, command, more))
}

/** The operator's commands, by the trigger that each needs. */
const VERBS = {
  'run-now': 'retry',
  redrive: 'redrive',
  submit: 'submit',
  cancel: 'cancel',
  park: 'quarantine',
  discard: 'discard',
} as const satisfies Partial<Record<JobTrigger, string>>

/** Returns a hint: where the rejected command applies, and which commands apply in this state. */
function insteadOf(lifecycle: Lifecycle, state: string, command: string): string {
  const has = (from: string, trigger: string) =>
    lifecycle.paths.get(from)?.has(trigger as JobTrigger) === true
  const states = [...lifecycle.roles.keys()].filter((from) => has(from, command))
  const verbs = Object.entries(VERBS).flatMap(([trigger, verb]) =>
    has(state, trigger) ? [verb] : [],
  )
  const where = states.length > 0 ? `It applies in ${states.join(', ')}. ` : ''
  const rest = verbs.length > 0 ? verbs.join(', ') : 'none'
  return `${where}Commands for a job in ${state}: ${rest}.`
}

/**
 * Returns the name of the fact of a trigger: its own, except for `succeed`, which becomes `commit`.
 * The command and its fact are named `commit`, because that is what happened: a result was stored.
 * A commit with effects to deliver takes no edge yet, and `done` ends the job later. The trigger is
 * `succeed`, because it names the edge to the succeeded state, which lifecycles of users declare.
 */
function factOf(trigger: JobTrigger): FactTrigger {
  return trigger === 'succeed' ? 'commit' : trigger
}

/**
 * Returns how a step closes the attempt. If no attempt is open and the path goes through the held
 * state, the engine opens an attempt and aborts it in the same step (G1).
 */
export function abortChange(
  { lifecycle, job, context }: Situation,
  path: readonly string[],
  abort: AbortReason,
): ExecutionChange | undefined {
  if (job.execution !== null) {
    const { claim, leaseUntil } = job.execution
    return { attempt: job.attempt, statuses: ['ABORTED'], claim, leaseUntil, abort }
  }
  if (!path.includes(lifecycle.held)) return undefined
  return {
    attempt: job.attempt + 1,
    statuses: ['LEASED', 'ABORTED'],
    worker: 'engine',
    leaseUntil: context.now,
    abort,
  }
}
