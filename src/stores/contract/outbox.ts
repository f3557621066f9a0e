/** Effects as they are claimed, reported and listed. */
import type { TraceContext } from '../../core/trace.ts'

/** How many effects a dispatcher takes. */
export interface EffectClaim {
  /** The types of job whose effects it can deliver; all if absent. Others stay where they are. */
  readonly types?: readonly string[]
  readonly limit: number
  readonly leaseMs: number
}

/** An effect that the caller delivers. */
export interface HeldEffect {
  readonly ref: number
  readonly claim: string
  readonly jobId: string
  readonly jobType: string
  readonly name: string
  /** The same for every delivery of this effect: job id / name / n. */
  readonly key: string
  readonly payload: string
  /** How often it was taken, this time included: from 2 on it may have been delivered before. */
  readonly tries: number
  /** The span that committed the job; only a process with tracing looks for it. */
  readonly trace?: TraceContext
}

/** The result of a delivery. */
export type EffectReport =
  | { readonly kind: 'delivered'; readonly effect: HeldEffect }
  | {
      readonly kind: 'retry'
      readonly effect: HeldEffect
      readonly runAt: number
      readonly error: string
    }
  /** Released without a try; it costs none. */
  | {
      readonly kind: 'released'
      readonly effect: HeldEffect
      readonly runAt: number
      readonly error: string
    }
  | { readonly kind: 'parked'; readonly effect: HeldEffect; readonly error: string }

export const EFFECT_STATES = ['pending', 'delivered', 'parked'] as const

/** The state of an effect. */
export type EffectState = (typeof EFFECT_STATES)[number]

/** Which effects a list shows; conditions are combined. */
export interface EffectFilter {
  readonly jobId?: string
  readonly state?: EffectState
  /** The type of the job. */
  readonly type?: string
}

/** An effect, as operators see it. */
export interface EffectInfo {
  readonly key: string
  readonly jobId: string
  readonly jobType: string
  readonly name: string
  readonly n: number
  readonly state: EffectState
  /** How often it was taken for delivery since it was declared or retried by an operator. */
  readonly tries: number
  /** When it is next due, or its lease ends; once delivered or parked, when that was. */
  readonly runAt: number
  /** A dispatcher took it for delivery; until `runAt` it holds the lease. */
  readonly claimed?: true
  /** What the last delivery failed with. */
  readonly error?: string
  /** JSON text. */
  readonly payload: string
}
