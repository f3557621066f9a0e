/**
 * The shape of an answer, and the one place where facts are built. A command gives at most one
 * fact: one atomic step, one row of the ledger, however many edges it takes.
 */
import { InvalidTransition, JobParked, type PawlError, Unsupported } from '../errors.ts'
import type { AbortReason } from '../execution.ts'
import { type JobTrigger, type Lifecycle, outcomeOf, pathOf } from '../lifecycles/lifecycle.ts'
import { allowedFrom } from '../machine/move.ts'
import type { JobPolicy } from '../retry.ts'
import type { Context } from './commands.ts'
import { type ExecutionChange, FACT_VERSION, type Fact, type FactTrigger } from './facts.ts'
import type { Job } from './job.ts'
import { closesAttempt, timingOf } from './timing.ts'

/** What a command comes to: a fact, a no-op that says so, or a refusal. */
export type Decision =
  | { readonly kind: 'fact'; readonly fact: Fact }
  | { readonly kind: 'same' }
  | { readonly kind: 'rejected'; readonly error: PawlError }

/** A decision that is a fact. */
export type Accepted = Extract<Decision, { kind: 'fact' }>

/** Everything that a decision is made from. */
export interface Situation {
  readonly lifecycle: Lifecycle
  readonly job: Job
  readonly context: Context
}

/** The answer of a command that changes nothing. */
export const SAME: Decision = { kind: 'same' }

/** Refuses. */
export function reject(error: PawlError): Decision {
  return { kind: 'rejected', error }
}

/** The policy in force for a job. */
export function policyOf({ lifecycle, job }: Situation): JobPolicy {
  return job.policy ?? lifecycle.policy
}

/** The fields of a fact that differ from one kind to the next. */
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

/** A fact that changes no state. */
export function note(situation: Situation, trigger: FactTrigger, fields: FactFields): Accepted {
  return accept(situation, trigger, [], fields)
}

/** A fact that takes the edges through these states; none of them means that the state stays. */
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
  if (outcome !== undefined) {
    fact.outcome = outcome
    // A job that has ended keeps no reason to be parked for.
    if (job.blockedReason !== null) fact.blockedReason = null
    if (execution?.abort !== undefined) fact.execution = { ...execution, final: true }
  }
  if (execution !== undefined && closesAttempt(execution)) {
    fact.timing = timingOf(job, execution, context.now)
  }
  return { kind: 'fact', fact }
}

/** A fact while it is being built. */
type Draft = { -readonly [Field in keyof Fact]: Fact[Field] }

/**
 * What every fact has, and what the context gives it. Optional fields are added one by one: a
 * literal with a spread for each is several times slower, and every change of a job builds a fact.
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
  // A copy: what its owner does to the object later must not reach the fact.
  if (metadata !== undefined) fact.metadata = { ...metadata }
  if (traceId !== undefined) fact.traceId = traceId
  if (spanId !== undefined) fact.spanId = spanId
  return fact
}

/**
 * Takes the path of a trigger from the job's present state. A lifecycle that never has the trigger
 * answers `Unsupported`; a job that is where the trigger would lead is the same; from any other
 * state the transition is invalid.
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
  // Rule G7: a job that is parked without a state of its own for it stays until an operator acts.
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

/** The answer to a trigger that has no path from the job's present state. */
export function offPath({ lifecycle, job }: Situation, trigger: JobTrigger): Decision {
  const target = lifecycle.targets.get(trigger)
  if (target === undefined) return reject(new Unsupported(lifecycle.name, trigger))
  return target === job.state ? SAME : misplaced(lifecycle, job, trigger, target)
}

/** Refuses a command that the lifecycle has, but not in the job's present state. */
export function misplaced(
  lifecycle: Lifecycle,
  job: Job,
  command: string,
  target: string,
): Decision {
  const { name, machine } = lifecycle
  const { state } = job
  const edge = machine.byTarget.get(state)?.get(target)
  // The machine may have this edge, under other triggers. Then the edge is not what is wrong.
  const why = edge && `this edge is taken by ${edge.on.join(', ')}, not by ${command}`
  const instead = insteadOf(lifecycle, state, command)
  const more = { ...(why !== undefined && { why }), instead }
  const allowed = allowedFrom(machine, state)
  return reject(new InvalidTransition(name, state, target, allowed, command, more))
}

/** The commands that people have for a job, by the trigger that each needs. */
const VERBS = {
  'run-now': 'retry',
  redrive: 'redrive',
  submit: 'submit',
  cancel: 'cancel',
  park: 'quarantine',
  discard: 'discard',
} as const satisfies Partial<Record<JobTrigger, string>>

/** Where a refused command applies, and which commands a job in this state has. */
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

/** An execution that succeeds is recorded as its commit; every other trigger is its own fact. */
function factOf(trigger: JobTrigger): FactTrigger {
  return trigger === 'succeed' ? 'commit' : trigger
}

/**
 * How a step closes the attempt: the one that is open, or, where the path runs through the held
 * state of a job that nobody holds, one that the engine opens and aborts in the same step (G1).
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
