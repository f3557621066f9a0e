/**
 * What a gate allows, which of the next jobs may start, and how gates change when jobs start and
 * stop. The stores lock gates, ask these functions, and write what they return.
 *
 * The truth about a concurrency limit is `used`: how many jobs hold a lease and count in the gate.
 * Only a claim raises it, and only the transaction that ends the lease lowers it.
 *
 * `waiting` says that jobs may be blocked by this gate. It is set by the transaction that blocks
 * one, and cleared under the lock of the gate, after a look that found none. While it is set and
 * the gate has room, `openAt` says when a worker has to look. So a job that was made ready for a
 * free slot, and that no worker serves, keeps others waiting for `LOOK_AGAIN_MS` at most.
 */
import { isRate, isRotating, isStrict, type LimitKey, limitOf } from './keys.ts'
import { allowed, type Rate, startAt, tatAfter } from './throttle.ts'

/** A gate, as stores keep it. */
export interface Gate {
  readonly key: string
  readonly used: number
  /** The number that the newest job seen had for this gate, and when that job was created. */
  readonly asked: number | null
  readonly askedAt: number | null
  /** When all that has started is paid for, in microseconds; see `throttle.ts`. */
  readonly tat: number | null
  /** No job passes a throttle before this time. */
  readonly closedUntil: number | null
  /** When a worker has to move jobs that are blocked by this gate. */
  readonly openAt: number | null
  readonly waiting: boolean
}

/** What is in force for a limit, or for one key of a limit. */
export interface LimitSetting {
  readonly name: string
  /** The number in the code; null if a function of the input says it. */
  readonly max: number | null
  /** Throttles have all three. */
  readonly periodMs: number | null
  readonly burst: number | null
  /** The operator's number, which counts until it is reset. */
  readonly override: number | null
}

export type LimitSettings = ReadonlyMap<string, LimitSetting>

/** After how long a worker looks again at a gate that has room for a blocked job. */
export const LOOK_AGAIN_MS = 1000

/**
 * After how long a worker looks again at a strict group whose first job is not blocked. Whatever
 * takes that job out of the group makes the next one ready, so this finds nothing unless a row was
 * changed by other means.
 */
export const STRICT_LOOK_MS = 300_000

/** A gate that nothing has passed. */
export function newGate(key: string): Gate {
  const nothing = { asked: null, askedAt: null, tat: null, closedUntil: null, openAt: null }
  return { key, used: 0, ...nothing, waiting: false }
}

/**
 * Returns how many jobs may run. The first of these counts: the operator's number for this key, for
 * the whole limit, the number of the newest job, the number in the code. Without any, all may run;
 * of a strict group, one.
 */
export function maxOf(gate: Pick<Gate, 'key' | 'asked'>, settings: LimitSettings): number {
  const setting = settings.get(limitOf(gate.key))
  if (isStrict(gate.key)) {
    return Math.min(1, settings.get(gate.key)?.override ?? setting?.override ?? 1)
  }
  return (
    settings.get(gate.key)?.override ??
    setting?.override ??
    gate.asked ??
    setting?.max ??
    Number.POSITIVE_INFINITY
  )
}

/** Returns what a throttle allows; `undefined` if the gate is none, or was never declared. */
export function rateOf({ key }: Pick<Gate, 'key'>, settings: LimitSettings): Rate | undefined {
  if (!isRate(key)) return undefined
  const setting = settings.get(limitOf(key))
  if (setting === undefined) return undefined
  const { max: limit, periodMs, burst } = setting
  return limit === null || periodMs === null || burst === null
    ? undefined
    : { limit, periodMs, burst }
}

/** A ready job, in the order of claims. */
export interface Candidate {
  readonly createdAt: number
  readonly keys: readonly LimitKey[]
  /** The gate of its queue, if the queue has one. */
  readonly queueGate?: string
  /** Other jobs of its strict group come first. */
  readonly behind?: true
}

/** The decision on a candidate: it starts and counts in gates, or is blocked by one. */
export type Grant =
  | { readonly kind: 'granted'; readonly slots: readonly string[] }
  | { readonly kind: 'blocked'; readonly by: string }

/** Which candidates start, and the gates after that. */
export interface Grants {
  readonly grants: readonly Grant[]
  readonly gates: ReadonlyMap<string, Gate>
}

/** Decides which candidates start now. Every gate of theirs must be given, locked. */
export function grant(
  candidates: readonly Candidate[],
  locked: ReadonlyMap<string, Gate>,
  settings: LimitSettings,
  now: number,
): Grants {
  const gates = new Map(locked)
  for (const { keys, createdAt } of candidates) {
    for (const { gate, max } of keys) {
      const known = gateIn(gates, gate)
      const isNewer = max !== undefined && createdAt >= (known.askedAt ?? 0)
      if (isNewer) gates.set(gate, { ...known, asked: max, askedAt: createdAt })
    }
  }
  const grants = candidates.map((one) => grantOne(one, gates, settings, now))
  for (const [key, gate] of gates) gates.set(key, withLook(gate, settings, now))
  return { grants, gates }
}

function gateIn(gates: ReadonlyMap<string, Gate>, key: string): Gate {
  return gates.get(key) ?? newGate(key)
}

function grantOne(
  { keys, queueGate, behind }: Candidate,
  gates: Map<string, Gate>,
  settings: LimitSettings,
  now: number,
): Grant {
  // A group that takes turns counts nothing: its turn was decided before.
  const counted = keys.map(({ gate }) => gate).filter((gate) => !isRate(gate) && !isRotating(gate))
  const slots = queueGate === undefined ? counted : [queueGate, ...counted]
  for (const key of slots) {
    const gate = gateIn(gates, key)
    const hasTurn = !(behind && isStrict(key))
    if (hasTurn && gate.used < maxOf(gate, settings)) continue
    gates.set(key, { ...gate, waiting: true })
    return { kind: 'blocked', by: key }
  }
  const starts = keys.filter(({ gate }) => isRate(gate))
  for (const { gate: key, units = 1 } of starts) {
    const gate = gateIn(gates, key)
    const rate = rateOf(gate, settings)
    const opens = Math.max(gate.closedUntil ?? 0, rate ? startAt(rate, gate.tat, units) : 0)
    // Jobs that wait for a gate that is due come first: a worker makes them ready.
    const isDue = gate.waiting && gate.openAt !== null && gate.openAt <= now
    if (opens <= now && !isDue) continue
    // No other job passes before this one could start, or one with many units would never start.
    gates.set(key, { ...gate, waiting: true, closedUntil: opens })
    return { kind: 'blocked', by: key }
  }
  for (const key of slots) {
    const gate = gateIn(gates, key)
    gates.set(key, { ...gate, used: gate.used + 1 })
  }
  for (const { gate: key, units = 1 } of starts) {
    const gate = gateIn(gates, key)
    const rate = rateOf(gate, settings)
    if (rate) gates.set(key, { ...gate, tat: tatAfter(rate, gate.tat, units, now) })
  }
  return { kind: 'granted', slots }
}

/** The gate with the time at which a worker has to look at it. */
function withLook(gate: Gate, settings: LimitSettings, now: number): Gate {
  if (!gate.waiting) return gate.openAt === null ? gate : { ...gate, openAt: null }
  if (isRate(gate.key)) {
    const rate = rateOf(gate, settings)
    const next = Math.max(gate.closedUntil ?? 0, rate ? startAt(rate, gate.tat, 1) : 0)
    return { ...gate, openAt: next > now ? next : (gate.openAt ?? now + LOOK_AGAIN_MS) }
  }
  if (gate.used >= maxOf(gate, settings)) return { ...gate, openAt: null }
  const afterMs = isStrict(gate.key) ? STRICT_LOOK_MS : LOOK_AGAIN_MS
  return { ...gate, openAt: gate.openAt ?? now + afterMs }
}

/** Returns the gate after jobs have stopped, and how many blocked jobs have to be made ready. */
export function release(
  gate: Gate,
  stopped: number,
  settings: LimitSettings,
  now: number,
): { readonly gate: Gate; readonly moves: number } {
  const after = { ...gate, used: Math.max(0, gate.used - stopped), openAt: null }
  return {
    gate: withLook(after, settings, now),
    moves: gate.waiting ? roomOf(after, settings, now) : 0,
  }
}

/** How many blocked jobs may be made ready at once. */
export const MOVES_MAX = 500

/** Returns how many more jobs may start now. */
export function roomOf(gate: Gate, settings: LimitSettings, now: number): number {
  if (!isRate(gate.key)) {
    return Math.max(0, Math.min(MOVES_MAX, maxOf(gate, settings) - gate.used))
  }
  if ((gate.closedUntil ?? 0) > now) return 0
  const rate = rateOf(gate, settings)
  return rate === undefined
    ? MOVES_MAX
    : Math.min(MOVES_MAX, Math.max(1, allowed(rate, gate.tat, now)))
}

/**
 * Returns the gate when its time has come, and how many blocked jobs have to be made ready. Jobs
 * that were made ready before may be of types or queues that no worker serves, so it is at least a
 * page of them.
 */
export function open(
  gate: Gate,
  settings: LimitSettings,
  now: number,
): { readonly gate: Gate; readonly moves: number } {
  const room = roomOf(gate, settings, now)
  const look = withLook({ ...gate, openAt: null }, settings, now)
  const moves = room === 0 || isRate(gate.key) ? room : Math.max(room, MOVES_MAX)
  return { gate: look, moves }
}

/** Returns true if a gate says nothing that a new one would not say. */
export function isIdle(gate: Gate, now: number): boolean {
  const isPast = (gate.tat ?? 0) <= now * 1000 && (gate.closedUntil ?? 0) <= now
  return gate.used === 0 && !gate.waiting && isPast
}

/** Returns the gate closed for everybody until a time. */
export function close(gate: Gate, until: number): Gate {
  return { ...gate, closedUntil: Math.max(gate.closedUntil ?? 0, until) }
}
