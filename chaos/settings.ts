/** What the processes of a run are told, and the times that they all go by. */

/** Short, so that a stopped process outlives many leases in a short run. */
export const LEASE_MS = 1500
/** How long a worker that is asked to stop waits for its handlers before it aborts them. */
export const DRAIN_MS = 300

/** The table of the user's own; each commit that writes at all writes one row. */
export const TABLE = 'chaos_rows'
/** The name of every effect. */
export const EFFECT = 'mail'

/** What every child is started with, as JSON in its first argument. */
export interface ChildSettings {
  /** The name of the store, as a user would give it to `createPawl`. */
  readonly store: string
  /** The name of the process; no two have the same in one run. */
  readonly name: string
  readonly seed: number
  /** Where the receiver of effects listens. */
  readonly receiver: string
  /** The file in which the client notes what it asks for and what it is told. */
  readonly notes: string
  /** How many jobs the client enqueues before it ends; without end if absent. */
  readonly count?: number
}

/** What a child tells its parent. */
export type Said =
  | { readonly kind: 'ready' }
  | { readonly kind: 'fatal'; readonly error: string }
  /** A worker takes a lease for lost; on a slow machine it may do so before the store does. */
  | { readonly kind: 'lost'; readonly jobId: string }

/** One line of the client's notes. */
export type Note =
  | { readonly kind: 'asked'; readonly id: string }
  | { readonly kind: 'acknowledged'; readonly id: string; readonly key?: string }
  | { readonly kind: 'refused'; readonly id: string; readonly code: string }

/** A pause in real time. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
