/**
 * Claims jobs that have limits. The fast path of claims passes over them; this verb takes them, and
 * jobs without limits as well, in the same order.
 *
 * It locks the first ready jobs, then their gates, and one pure function decides (`grant`). Jobs
 * that may not start now leave the lane of ready jobs: they are blocked by a gate, cost later
 * claims nothing, and are made ready again by the transaction that frees the gate.
 *
 * A call that also reports jobs which have stopped passes their slots: one transaction then frees
 * and grants, with one pass over the gates. If other jobs wait for such a slot, it only frees and
 * makes them ready, so that the order of claims decides; the claim then follows in a transaction of
 * its own.
 *
 * A queue with a limit of its own is different: its gate is locked first, and no more jobs are
 * looked at than it has room for, so that its jobs stay where they are.
 */
import {
  type Candidate,
  type Gate,
  type Grant,
  grant,
  type LimitSettings,
  maxOf,
  newGate,
  release,
} from '../../core/limits/gates.ts'
import { gateName, isQueueGate, isRotating, isStrict, readKeys } from '../../core/limits/keys.ts'
import type { ClaimRequest, Held, Ref } from '../contract/store.ts'
import type { LockedGates } from '../gate-rows.ts'
import { type Line, lineOf, writeLine } from './claim-groups.ts'
import { afterMoves } from './gates.ts'
import type { Tx, Verb } from './operations.ts'

/** A queue from which may be claimed now. */
export interface OpenQueue {
  readonly queue: string
  /** It has a limit of its own. */
  readonly gated: boolean
  /** Its groups take turns. */
  readonly rotates: boolean
}

/** How many jobs of a queue are looked at. */
export interface Look {
  readonly queue: string
  readonly limit: number
}

/** A ready job that was locked, in the order of claims within its queue. */
export interface ReadyJob {
  readonly ref: Ref
  readonly queue: string
  readonly priority: number
  readonly orderAt: number
  readonly createdAt: number
  readonly limitKey: string | null
}

/** A job that starts, and the gates that it counts in; null if there are none. */
export interface GrantedJob {
  readonly ref: Ref
  readonly slots: string | null
}

/** A job that is blocked, and by which gate. */
export interface BlockedJob {
  readonly ref: Ref
  readonly by: string
}

/** Jobs with these keys are blocked, too. */
export interface BlockedKeys {
  readonly limitKey: string
  readonly by: string
}

/** The operations of this verb. */
export interface ClaimOperations {
  /**
   * Returns the queues that the request names, or all that have ready jobs, without those that
   * are paused. The transaction has kept limits from being changed since it began.
   */
  openQueues(request: ClaimRequest): readonly OpenQueue[]
  /** Locks the first ready jobs of each queue; those that others lock are left out. */
  lockReady(looks: readonly Look[], request: ClaimRequest): readonly ReadyJob[]
  /** Writes leases for jobs that were locked, and these gates, by as few statements as it can. */
  takeJobs(
    jobs: readonly GrantedJob[],
    claim: string,
    request: ClaimRequest,
    gates: readonly Gate[],
  ): readonly Held[]
  /** Moves jobs that were locked out of the lane of ready jobs. */
  blockJobs(jobs: readonly BlockedJob[]): void
  /** The same for further jobs with the same keys, up to `limit` of each queue. */
  skim(keys: readonly BlockedKeys[], looks: readonly Look[]): void
}

/** What one run of the verb has done. */
export interface LimitedClaim {
  readonly held: readonly Held[]
  /** Whether further ready jobs may be claimed: some were blocked, and there may be others. */
  readonly more: boolean
  /** Others waited for the slots that were freed. */
  readonly isContended?: true
}

/** How many jobs have stopped, by gate. */
type Stopped = ReadonlyMap<string, number>
const NONE_STOPPED: Stopped = new Map()

/** How many ready jobs of a queue are looked through for blocked ones at once. */
const SKIM_MAX = 5000

/** Claims up to `request.limit` jobs, after the slots of jobs that have stopped were freed. */
export function* claimLimited(
  tx: Tx,
  claim: string,
  request: ClaimRequest,
  stopped: Stopped = NONE_STOPPED,
): Verb<LimitedClaim> {
  const queues = yield* tx.openQueues(request)
  if (stopped.size > 0 && queues.some((one) => one.rotates)) {
    yield* free(tx, yield* tx.lockGates([...stopped.keys()]), stopped)
    return { held: [], more: true, isContended: true }
  }
  const rotating = new Set(queues.filter((one) => one.rotates).map(({ queue }) => queue))
  if (rotating.size > 0) yield* tx.lockLines([...rotating])
  const freed = [...stopped.keys()]
  const ofQueues = [...gatesOfQueues(queues), ...freed.filter(isQueueGate)]
  const queueGates = yield* tx.lockGates(ofQueues)
  const locked = released(queueGates, stopped, tx.now)
  const all = looksOf(queues, locked, request)
  const looks = all.filter(({ queue }) => !rotating.has(queue))
  const found = looks.length === 0 ? [] : yield* tx.lockReady(looks, request)
  const lines: Line[] = []
  for (const look of all) {
    if (rotating.has(look.queue)) lines.push(yield* lineOf(tx, look, request))
  }
  const jobs = firstOf([found, ...lines.map((line) => line.jobs)], request)
  if (jobs.length + lines.length + freed.length === 0) return { held: [], more: false }
  const gated = new Set(queues.filter((one) => one.gated).map(({ queue }) => queue))
  const candidates = jobs.map((job) => candidateOf(job, gated))
  const others = freed.filter((gate) => !isQueueGate(gate))
  const ownGates = yield* tx.lockGates([...gatesOf(candidates), ...others])
  const before = new Map([...queueGates.gates, ...ownGates.gates])
  if (freed.some((gate) => before.get(gate)?.waiting)) {
    const settings = new Map([...queueGates.settings, ...ownGates.settings])
    yield* free(tx, { gates: before, settings }, stopped)
    return { held: [], more: true, isContended: true }
  }
  const own = released(ownGates, stopped, tx.now)
  const gates = new Map([...locked.gates, ...own.gates])
  const settings = new Map([...locked.settings, ...own.settings])
  const heads = yield* headsOf(tx, gates)
  const placed = candidates.map((one, i) => placeOf(one, jobs[i] as ReadyJob, heads))
  const decided = grant(placed, gates, settings, tx.now)
  const granted = jobs.flatMap(({ ref }, i): GrantedJob | [] => {
    const one = decided.grants[i] as Grant
    if (one.kind === 'blocked') return []
    return { ref, slots: one.slots.length === 0 ? null : one.slots.join(' ') }
  })
  const blocked = jobs.flatMap((job, i): (BlockedJob & ReadyJob) | [] => {
    const one = decided.grants[i] as Grant
    return one.kind === 'blocked' ? { ...job, by: one.by } : []
  })
  const changed = (list: Iterable<Gate>) => [...list].filter((one) => one !== before.get(one.key))
  // Most claims block no job, and the gates are as they were decided on.
  const isPlain = blocked.length + lines.length === 0 && granted.length > 0
  const ready = isPlain ? changed(decided.gates.values()) : []
  const held = granted.length === 0 ? [] : yield* tx.takeJobs(granted, claim, request, ready)
  if (isPlain) return { held, more: false }
  if (blocked.length > 0) {
    yield* tx.blockJobs(blocked)
    const inOrder = blocked.filter(({ queue }) => !rotating.has(queue))
    if (inOrder.length * 2 > jobs.length) yield* tx.skim(keysOf(inOrder), looks.map(deeper))
  }
  const outcome = new Map<Ref, string | undefined>(granted.map(({ ref }) => [ref, undefined]))
  for (const { ref, by } of blocked) outcome.set(ref, by)
  for (const line of lines) yield* writeLine(tx, line, outcome)
  const after = yield* readyHeads(tx, [...decided.gates.values()], settings, blocked)
  yield* tx.writeGates(changed(after))
  const more = blocked.length > 0 || lines.some((line) => line.more)
  return { held, more: more && held.length < request.limit }
}

/** Gates after jobs have stopped. */
function released({ gates, settings }: LockedGates, stopped: Stopped, now: number): LockedGates {
  if (stopped.size === 0) return { gates, settings }
  const after = new Map(gates)
  for (const [key, gate] of gates) {
    const count = stopped.get(key)
    if (count !== undefined) after.set(key, release(gate, count, settings, now).gate)
  }
  return { gates: after, settings }
}

/** Lowers gates, and makes jobs ready that wait for them. */
function* free(tx: Tx, { gates, settings }: LockedGates, stopped: Stopped): Verb<void> {
  const freed = [...gates.values()].flatMap((gate) => {
    const count = stopped.get(gate.key)
    return count === undefined ? [] : release(gate, count, settings, tx.now)
  })
  const moves = freed.flatMap(({ gate, moves }) =>
    moves === 0 ? [] : { gate: gate.key, jobs: moves },
  )
  const after = freed.map(({ gate }) => gate)
  yield* tx.writeGates(afterMoves(after, yield* tx.moveBlocked(moves), tx.now))
}

function gatesOfQueues(queues: readonly OpenQueue[]): string[] {
  return queues.filter(({ gated }) => gated).map(({ queue }) => gateName('queue', queue))
}

/** How many jobs of each queue are looked at; none of a queue whose limit is reached. */
function looksOf(
  queues: readonly OpenQueue[],
  { gates, settings }: LockedGates,
  { limit }: ClaimRequest,
): Look[] {
  return queues.flatMap(({ queue, gated }) => {
    if (!gated) return { queue, limit }
    const key = gateName('queue', queue)
    const gate = gates.get(key) ?? newGate(key)
    const room = maxOf(gate, settings) - gate.used
    return room <= 0 ? [] : { queue, limit: Math.min(limit, room) }
  })
}

/** The first job of each strict group whose gate is locked. */
function* headsOf(tx: Tx, gates: ReadonlyMap<string, Gate>): Verb<ReadonlyMap<string, Ref>> {
  const groups = [...gates.keys()].filter(isStrict)
  if (groups.length === 0) return new Map()
  return new Map((yield* tx.heads(groups)).map(({ group, ref }) => [group, ref]))
}

/** A candidate that is not the first job of its strict group may not start. */
function placeOf(one: Candidate, { ref }: ReadyJob, heads: ReadonlyMap<string, Ref>): Candidate {
  const group = one.keys.find(({ gate }) => isStrict(gate))
  return group === undefined || heads.get(group.gate) === ref ? one : { ...one, behind: true }
}

/** The first job of a strict group may have been blocked with the others: makes it ready. */
function* readyHeads(
  tx: Tx,
  gates: Gate[],
  settings: LimitSettings,
  blocked: readonly BlockedJob[],
): Verb<Gate[]> {
  const groups = new Set(blocked.map(({ by }) => by).filter(isStrict))
  const moves = gates
    .filter((gate) => groups.has(gate.key) && gate.used < maxOf(gate, settings))
    .map(({ key: gate }) => ({ gate, jobs: 1 }))
  if (moves.length === 0) return gates
  return afterMoves(gates, yield* tx.moveBlocked(moves), tx.now)
}

function deeper({ queue }: Look): Look {
  return { queue, limit: SKIM_MAX }
}

function candidateOf({ createdAt, limitKey, queue }: ReadyJob, gated: ReadonlySet<string>) {
  const keys = readKeys(limitKey)
  const queueGate = gated.has(queue) ? gateName('queue', queue) : undefined
  return { createdAt, keys, ...(queueGate !== undefined && { queueGate }) }
}

/** The gates that the jobs name; those of queues are locked already. */
function gatesOf(candidates: readonly Candidate[]): string[] {
  const gates = candidates.flatMap(({ keys }) => keys.map(({ gate }) => gate))
  // Groups that take turns have no gates: the line of their queue is locked.
  return [...new Set(gates.filter((gate) => !isRotating(gate)))]
}

function keysOf(blocked: readonly (BlockedJob & ReadyJob)[]): BlockedKeys[] {
  const keys = new Map(blocked.map(({ limitKey, by }) => [limitKey, by]))
  return [...keys].flatMap(([limitKey, by]) => (limitKey === null ? [] : { limitKey, by }))
}

/**
 * The first jobs of several lists: each keeps its order, and among their first jobs the order of
 * claims decides. The first list is not sorted yet.
 */
function firstOf(
  [found = [], ...lines]: readonly (readonly ReadyJob[])[],
  { queues = [], limit }: ClaimRequest,
): ReadyJob[] {
  const compare = byTurn(queues)
  const sorted = [...found].sort(compare)
  if (lines.length === 0) return sorted.slice(0, limit)
  const lists = [sorted, ...lines].map((jobs) => ({ jobs, next: 0 }))
  const first: ReadyJob[] = []
  while (first.length < limit) {
    const open = lists.filter(({ jobs, next }) => next < jobs.length)
    const [best] = open.sort((a, b) =>
      compare(a.jobs[a.next] as ReadyJob, b.jobs[b.next] as ReadyJob),
    )
    if (best === undefined) break
    first.push(best.jobs[best.next++] as ReadyJob)
  }
  return first
}

/** The order of claims: by queue if the request names them, then priority, time and age. */
function byTurn(queues: readonly string[]): (a: ReadyJob, b: ReadyJob) => number {
  const order = new Map(queues.map((queue, i) => [queue, i]))
  return (a, b) =>
    (order.get(a.queue) ?? 0) - (order.get(b.queue) ?? 0) ||
    a.priority - b.priority ||
    a.orderAt - b.orderAt ||
    (a.ref < b.ref ? -1 : 1)
}
