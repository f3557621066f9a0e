/** The rows of links and flows, the same in both databases; see migration 19. */
import type { Need } from '../core/job/links.ts'
import type { Outcome } from '../core/lifecycles/lifecycle.ts'
import type { FlowInfo, FlowKind, FlowProgress, FlowState } from './contract/flows.ts'

/** The numbers of needs. Children that are cancelled with their parent have one of their own. */
export const NEEDS = { success: 0, end: 1, failure: 2, owned: 3 } as const

/** The numbers of the states of a link. */
export const LINK_STATES = {
  open: 0,
  arrivedNew: 1,
  failedNew: 2,
  arrived: 3,
  failed: 4,
  orphaned: 5,
  reopened: 6,
} as const

/** A link that is about to be written, with the number of its need. */
export interface NewLink {
  readonly awaited: string
  readonly waiter: string
  /** The index of the group among the dependencies of the waiter. */
  readonly part: number
  readonly need: number
}

/** A link that was not examined, and what its waiter is. */
export interface LinkNews extends NewLink {
  readonly state: number
  /** The bits of the waiter; null if there is no such job, or it has none. */
  readonly waiter_links: number | null
  readonly waiter_flow: string | null
}

/** What is left of the links of a waiter. */
export interface LookRow {
  readonly waiter: string
  /** A job that has not ended. */
  readonly open: string | null
  /** A job that had to succeed and did not. */
  readonly failed: string | null
  /** A job that failed, of those of which one must fail. */
  readonly hit: string | null
}

/** A job that others wait for and that has ended. */
interface EndedLink {
  readonly id: string
  readonly outcome: Outcome
  readonly seq: number
}

/** How changes of jobs change their links. */
export interface LinkChanges {
  readonly ended: readonly EndedLink[]
  /** Jobs that were redriven after they had ended. */
  readonly revived: readonly string[]
  /** Parents that have ended without success. */
  readonly orphaning: readonly string[]
}

/** A row of `flows`. */
export interface FlowRow {
  readonly id: string
  readonly kind: FlowKind
  readonly key: string | null
  readonly created_at: number
  readonly size: number
  readonly callbacks: number
  readonly open: number
}

/** The same, with what its jobs say. */
export interface SeenFlowRow extends FlowRow {
  /** 1 if a job is parked. */
  readonly parked: number
  /** 1 if a job has not ended. */
  readonly live: number
}

/** How far a flow is. */
export type FlowCounts = Omit<FlowProgress, 'live'>

/** Returns the number of a need. */
export function needOf(need: Need): number {
  return NEEDS[need]
}

/** Returns the state of an open link after its awaited job has ended. */
export function endedState(need: number, outcome: Outcome): number {
  const succeeded = outcome === 'succeeded'
  if (need === NEEDS.success && !succeeded) return LINK_STATES.failedNew
  if (need === NEEDS.failure && succeeded) return LINK_STATES.failedNew
  return LINK_STATES.arrivedNew
}

/** The same as text of SQL, for a column `need` and an outcome. */
export const endedStateSql = (outcome: string): string =>
  `CASE WHEN need = ${NEEDS.success} AND ${outcome} <> 'succeeded'
    OR need = ${NEEDS.failure} AND ${outcome} = 'succeeded'
    THEN ${LINK_STATES.failedNew} ELSE ${LINK_STATES.arrivedNew} END`

/** The flow that a row holds. */
export function toFlow({ open, created_at, ...row }: SeenFlowRow): FlowInfo {
  const { id, kind, key, size, callbacks, parked, live } = row
  const isLive = live === 1 || open === 1
  const state: FlowState = parked === 1 ? 'attention' : isLive ? 'open' : 'done'
  return { id, kind, key, createdAt: created_at, size, callbacks, open: open === 1, state }
}
