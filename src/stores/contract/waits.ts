/** Waits and signals of jobs; see `src/core/job/waits.ts`. */
import type { PawlError } from '../../core/errors.ts'
import type { Fence } from '../../core/job/commands.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import type { Wait } from '../../core/job/waits.ts'
import type { TraceContext } from '../../core/trace.ts'
import type { Answer, Requester } from './store.ts'

/** How many signals a job may have. A wait reads all of them. */
export const SIGNALS_MAX = 10_000

/** A signal to be sent. A job has at most one signal of a name and key. */
export interface SignalRequest {
  readonly name: string
  readonly key: string
  /** JSON text. */
  readonly payload: string
}

/** Who sent a signal, by its fact. */
export interface SignalSender {
  /** The operator, the caller of the HTTP API, or the kind of the sender. */
  readonly by: string
  /** The reason of an operator. */
  readonly note?: string
}

/** How a wait ended. */
export type WaitEnd =
  | ({ readonly kind: 'received'; readonly payload: string } & SignalSender)
  /** Its time has passed: the wait has timed out, or the sleep is over. */
  | { readonly kind: 'passed' }
  /** All children have ended; the verb `invoke` returns how. */
  | { readonly kind: 'ended' }

/** The result of a wait: it is over, or the attempt has ended because the job waits. */
export type WaitAnswer =
  | { readonly kind: 'over'; readonly end: WaitEnd; readonly job: Job; readonly fact?: Fact }
  | { readonly kind: 'suspended'; readonly job: Job; readonly fact: Fact }
  | { readonly kind: 'rejected'; readonly error: PawlError }

/** What an attempt waits for, under its fence. */
export interface WaitRequest {
  readonly id: string
  readonly fence: Fence
  readonly wait: Wait
  /** The span that the attempt runs in. */
  readonly trace?: TraceContext
}

/** A wait of a job, in the order in which the job began them. */
export interface WaitRecord extends Wait {
  /** Absent if the job still waits. */
  readonly end?: WaitEnd
}

/** A signal of a job, in the order in which they were sent. */
export interface SignalRecord extends SignalSender {
  readonly seq: number
  readonly at: number
  readonly name: string
  readonly key: string
  /** JSON text. */
  readonly payload: string
  /** The number of the fact that says that a wait has received it. */
  readonly receivedBy?: number
}

export interface WaitHistory {
  readonly waits: readonly WaitRecord[]
  readonly signals: readonly SignalRecord[]
}

export interface WaitTables {
  /**
   * Sends a signal to each of these jobs; durable when it resolves. A job that waits for it becomes
   * ready in the same transaction. A signal with a key that the job has already is answered with
   * "same". With `tx`, a transaction as for `enqueue`, it is durable when that commits.
   */
  signal(
    ids: readonly string[],
    signal: SignalRequest,
    requester: Requester,
    tx?: unknown,
  ): Promise<Answer[]>
  /**
   * Waits under the fence of an attempt. Whether the wait is over is decided in one transaction.
   * The same wait under the same fence again has the same result, so it may be repeated if its
   * reply was lost.
   */
  wait(request: WaitRequest): Promise<WaitAnswer>
  /** The waits and signals of a job; empty for a job that does not exist. */
  history(id: string): Promise<WaitHistory>
}
