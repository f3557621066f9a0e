/**
 * A fact is an immutable record of one atomic step of one job. It contains everything that the step
 * changed, so that folding needs no rules: `evolve` applies the fields that are present. It never
 * contains a payload. Input, step results and outputs are stored beside the fact, and the core does
 * not read them.
 *
 *   from → via… → to   the edges taken, in order; from = to without via: no edge was taken
 *   execution          the statuses that the attempt entered in this step, in order
 *   timing             how long the attempt that the step closed had waited, and how long it took
 *   spends             the budget that the step spent
 *   resets             the failure and crash budgets are set to 0
 *   rebased            the complete job from here on: a repair writes it if earlier facts were lost
 *                      or contradict each other; earlier facts no longer count
 *   migrated           the job follows another version of its lifecycle from here on; from → to is
 *                      then the renaming of its state, not an edge
 *   reason             a stable word; `note` is the operator's text
 *
 * Stores keep the code instead of the word. Codes are never changed or reused.
 */
import type { AbortReason, ExecutionStatus } from '../execution.ts'
import type { Outcome } from '../lifecycles/lifecycle.ts'
import type { ThrownError } from '../thrown.ts'
import type { Job, JobAttributes, JobError } from './job.ts'
import type { After } from './links.ts'
import type { Receipt, SentSignal, Wait } from './waits.ts'

/** The version of the format of facts. */
export const FACT_VERSION = 1

/** All fact triggers, with the code that stores keep. */
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
  arrive: 19,
  claim: 20,
  start: 21,
  step: 22,
  signal: 23,
  receive: 24,
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
  wait: 49,
  cancel: 50,
  park: 60,
  redrive: 61,
  discard: 62,
  force: 63,
  repair: 64,
} as const

export type FactTrigger = keyof typeof FACT_CODES

/** Who caused a fact. Facts of operators, and of the doctor for them, also have a name. */
export const ACTORS = ['worker', 'client', 'engine', 'doctor', 'operator'] as const

export type ActorKind = (typeof ACTORS)[number]

/** The budget that a step spent. */
export type Budget = 'failure' | 'crash' | 'release'

/** What a step did to an attempt. */
export interface ExecutionChange {
  readonly attempt: number
  /** The statuses entered, in order. Starts with LEASED if the step opened the attempt. */
  readonly statuses: readonly ExecutionStatus[]
  /** Absent only for an attempt that the engine opened and aborted in one step. */
  readonly claim?: string
  readonly worker?: string
  /** The first expiry in a claim, the last expiry in the fact that closes the attempt. */
  readonly leaseUntil?: number
  readonly abort?: AbortReason
  /** The job ended with this aborted attempt. */
  readonly final?: true
}

/** The times of an attempt, by the clock of the store; never negative. */
export interface Timing {
  /** From the due time of the job until its attempt began. */
  readonly queueMs: number
  /** From the beginning of the attempt until it was closed. */
  readonly durationMs: number
}

export interface Fact {
  readonly version: typeof FACT_VERSION
  readonly jobId: string
  /** From 1, for each job, without gaps. */
  readonly seq: number
  readonly at: number
  readonly trigger: FactTrigger
  /** Null only in the fact that creates the job. */
  readonly from: string | null
  readonly via?: readonly string[]
  readonly to: string
  readonly actor: ActorKind
  readonly operator?: string
  readonly reason?: string
  readonly note?: string
  readonly created?: JobAttributes
  /** The complete job after a repair that does not build on earlier facts. The fold starts here. */
  readonly rebased?: Job
  /** The versions of the lifecycle before and after a migration. */
  readonly migrated?: { readonly from: number; readonly to: number }
  readonly execution?: ExecutionChange
  readonly spends?: Budget
  readonly resets?: true
  /** Present if the step ended the job. */
  readonly outcome?: Outcome
  readonly runAt?: number | null
  /** The handler asked for the delay before this retry. */
  readonly delayAsked?: true
  readonly priority?: number
  /** Absent if it is 0 in a new job, or as before. */
  readonly aheadMs?: number
  /** The limit keys after a replacement of the input, if they changed. */
  readonly limitKey?: string | null
  /** The throttle that the attempt closed until `runAt`, because its receiver asked for it. */
  readonly gate?: string
  readonly error?: JobError | null
  /** What the handler threw, with its stack and its causes, in the fact that closes the attempt. */
  readonly thrown?: ThrownError
  readonly blockedReason?: string | null
  readonly stalled?: boolean
  readonly step?: { readonly name: string; readonly n: number }
  /** The signal that was sent; its payload is stored beside the fact. */
  readonly signal?: SentSignal
  /** What the job waits for from here on. */
  readonly wait?: Wait
  /** The wait that is over, and how. */
  readonly received?: Receipt
  /** In the fact that creates a job: what it waits for before its first attempt. */
  readonly after?: After
  /** In the fact that creates an invoked child: name and number of the invoke. */
  readonly as?: string
  /** What connects the job with others from here on, if the step changed it; see `links.ts`. */
  readonly links?: number
  /** The job whose end decided about this one, because it came out otherwise than needed. */
  readonly dependency?: string
  /** How many effects the commit put into the outbox. */
  readonly effects?: number
  /**
   * Present if the step closed an attempt: committed it, or aborted it for any reason. Facts that
   * were written before this field existed lack it; `timingOf` computes it for them.
   */
  readonly timing?: Timing
  /** Counters that the handler set. */
  readonly usage?: Readonly<Record<string, number>>
  /** Further texts of the sender of the command. */
  readonly metadata?: Readonly<Record<string, string>>
  /** The span in which the fact was written; `traceOf` says what holds if there was none. */
  readonly traceId?: string
  readonly spanId?: string
  /** 0 if the span is not sampled. */
  readonly traceFlags?: number
  readonly traceState?: string
}

/** Returns the edges that a fact took, in order; empty if it changed no state. */
export function hopsOf(fact: Fact): { from: string; to: string }[] {
  if (fact.migrated !== undefined) return []
  const states = [...(fact.from === null ? [] : [fact.from]), ...(fact.via ?? []), fact.to]
  const hops = states.slice(1).map((to, i) => ({ from: states[i] as string, to }))
  return hops.filter(({ from, to }) => from !== to)
}

/** Returns the last rebasing repair and the facts after it, or all facts if there is none. */
export function sinceRebase(facts: readonly Fact[]): readonly Fact[] {
  const start = facts.findLastIndex(({ rebased }) => rebased !== undefined)
  return start <= 0 ? facts : facts.slice(start)
}
