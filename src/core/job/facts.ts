/**
 * A fact is an immutable record of one atomic step of one job. It says everything that the step
 * changed, so that folding needs no rules: `evolve` applies what is present. It never holds a
 * payload; input, step results and outputs are stored beside the fact and are opaque to the core.
 *
 *   from → via… → to   the edges taken, in order; from = to without via: no edge was taken
 *   execution          the statuses that the attempt entered in this step, in order
 *   timing             how long the attempt that the step closed had waited, and how long it took
 *   spends             the budget that the step was charged to
 *   resets             the failure and crash budgets start anew
 *   rebased            what the job is from here on, where facts before were lost or contradict
 *                      each other (a repair); nothing is concluded from those any more
 *   migrated           the job follows another version of its lifecycle from here on; from → to is
 *                      then the renaming of its state and no edge
 *   reason             a stable word; `note` is what the operator wrote
 *
 * The codes are what stores keep instead of the word. They are never changed or used again.
 */
import type { AbortReason, ExecutionStatus } from '../execution.ts'
import type { Outcome } from '../lifecycles/lifecycle.ts'
import type { Job, JobAttributes, JobError } from './job.ts'

/** The version of the format of facts. */
export const FACT_VERSION = 1

/** Every kind of fact, with the code under which stores keep it. */
export const FACT_CODES = {
  create: 10,
  submit: 11,
  schedule: 12,
  due: 13,
  reschedule: 14,
  'run-now': 15,
  prioritise: 16,
  replace: 17,
  migrate: 18,
  claim: 20,
  start: 21,
  step: 22,
  commit: 30,
  done: 31,
  retry: 40,
  fail: 41,
  'give-up': 42,
  reject: 43,
  expire: 44,
  release: 45,
  suspend: 46,
  exhaust: 47,
  stall: 48,
  cancel: 50,
  park: 60,
  redrive: 61,
  discard: 62,
  force: 63,
  repair: 64,
} as const

/** What happened. */
export type FactTrigger = keyof typeof FACT_CODES

/** Who made it happen. Operators, and the doctor on their behalf, are also named. */
export const ACTORS = ['worker', 'client', 'engine', 'doctor', 'operator'] as const

/** One of them. */
export type ActorKind = (typeof ACTORS)[number]

/** Which budget a step was charged to. */
export type Budget = 'failure' | 'crash' | 'release'

/** What a step did to an attempt. */
export interface ExecutionChange {
  readonly attempt: number
  /** The statuses entered, in order; LEASED comes first where the step opened the attempt. */
  readonly statuses: readonly ExecutionStatus[]
  /** Absent only for an attempt that the engine opened and aborted itself. */
  readonly claim?: string
  readonly worker?: string
  /** At the claim the first expiry, at the close the last. */
  readonly leaseUntil?: number
  readonly abort?: AbortReason
  /** The job ended with this aborted attempt. */
  readonly final?: true
}

/** The times of an attempt, by the clock of the store; never negative. */
export interface Timing {
  /** From the moment at which the job was due until its attempt began. */
  readonly queueMs: number
  /** From the beginning of the attempt until it was closed. */
  readonly durationMs: number
}

/** One fact. */
export interface Fact {
  readonly version: typeof FACT_VERSION
  readonly jobId: string
  /** From 1, per job, without gaps. */
  readonly seq: number
  readonly at: number
  readonly trigger: FactTrigger
  /** Null for the creation alone. */
  readonly from: string | null
  readonly via?: readonly string[]
  readonly to: string
  readonly actor: ActorKind
  readonly operator?: string
  readonly reason?: string
  readonly note?: string
  readonly created?: JobAttributes
  /** The whole job after a repair that its facts could not give: the fold begins here anew. */
  readonly rebased?: Job
  /** The versions of the lifecycle before and after a migration. */
  readonly migrated?: { readonly from: number; readonly to: number }
  readonly execution?: ExecutionChange
  readonly spends?: Budget
  readonly resets?: true
  /** Present where the step ended the job. */
  readonly outcome?: Outcome
  readonly runAt?: number | null
  /** The delay before this retry is one that the handler asked for. */
  readonly delayAsked?: true
  readonly priority?: number
  readonly error?: JobError | null
  readonly blockedReason?: string | null
  readonly stalled?: boolean
  readonly step?: { readonly name: string; readonly n: number }
  /** How many effects the commit put into the outbox. */
  readonly effects?: number
  /**
   * Present if the step closed an attempt: committed it, or aborted it for any reason. Facts that
   * were written before this field existed lack it; `timingOf` computes it for them.
   */
  readonly timing?: Timing
  /** Counters that the handler set. */
  readonly usage?: Readonly<Record<string, number>>
  /** What the asker wanted the ledger to say besides. */
  readonly metadata?: Readonly<Record<string, string>>
  readonly traceId?: string
  readonly spanId?: string
}

/** The edges that a fact took, in order; none where it changed no state. */
export function hopsOf(fact: Fact): { from: string; to: string }[] {
  if (fact.migrated !== undefined) return []
  const states = [...(fact.from === null ? [] : [fact.from]), ...(fact.via ?? []), fact.to]
  const hops = states.slice(1).map((to, i) => ({ from: states[i] as string, to }))
  return hops.filter(({ from, to }) => from !== to)
}

/** The last repair that does not build on the facts before it, and what follows; else all. */
export function sinceRebase(facts: readonly Fact[]): readonly Fact[] {
  const start = facts.findLastIndex(({ rebased }) => rebased !== undefined)
  return start <= 0 ? facts : facts.slice(start)
}
