/** How blocked jobs are made ready again. */
import { close, type Gate, LOOK_AGAIN_MS, open, release } from '../../core/limits/gates.ts'
import type { GroupPlace } from '../contract/limits.ts'
import type { Ref } from '../contract/store.ts'
import type { LockedGates } from '../gate-rows.ts'
import type { Tx, Verb } from './operations.ts'

/** How many blocked jobs of a gate are made ready. */
export interface Move {
  readonly gate: string
  readonly jobs: number
}

/** How many were, and whether the gate still blocks one. */
export interface Moved {
  readonly gate: string
  readonly jobs: number
  readonly left: boolean
  /** The first job of a strict group was locked by another transaction. */
  readonly missed?: true
}

/** The first job of a strict group. */
export interface Head {
  readonly group: string
  readonly ref: Ref
  /** Its group blocks it, and nothing else does. */
  readonly isBlocked: boolean
}

/** The operations of gates. */
export interface GateOperations {
  /** Locks gates in one order everywhere; a gate without a row is a new one. */
  lockGates(keys: readonly string[]): LockedGates
  /** Locks gates at which a worker has to look by now; those that others lock are left out. */
  lockOpenGates(limit: number): LockedGates
  /** Writes gates that were locked; the rows of idle ones are removed. */
  writeGates(gates: readonly Gate[]): void
  /**
   * Makes the first blocked jobs of each gate ready, in the order of claims; of a strict group only
   * its first job. Must be a later statement than the one that locked the gate: it has to see what
   * the last holder wrote.
   */
  moveBlocked(moves: readonly Move[]): readonly Moved[]
  /** The place of a job in its strict group, counted up to a bound. */
  groupPlace(jobId: string, bound: number): GroupPlace | undefined
  /** The first job of each strict group; must be a later statement, too. */
  heads(groups: readonly string[]): readonly Head[]
  /**
   * Lowers the gates that these texts of `slots` name, and makes the next jobs ready; also those of
   * strict groups that a job has left.
   */
  freeSlots(slots: readonly (string | null)[], left?: readonly string[]): void
}

/** Makes jobs ready whose gate has room; returns how many. */
export function* openGates(tx: Tx, limit: number): Verb<number> {
  const { gates, settings } = yield* tx.lockOpenGates(limit)
  if (gates.size === 0) return 0
  const opened = [...gates.values()].map((gate) => open(gate, settings, tx.now))
  const moves = opened.flatMap(({ gate, moves }): Move | [] =>
    moves === 0 ? [] : { gate: gate.key, jobs: moves },
  )
  const moved = yield* tx.moveBlocked(moves)
  yield* tx.writeGates(
    afterMoves(
      opened.map(({ gate }) => gate),
      moved,
      tx.now,
    ),
  )
  return moved.reduce((sum, { jobs }) => sum + jobs, 0)
}

/**
 * Lowers locked gates by the jobs that have stopped, and closes throttles until a time. Returns the
 * gates as they are then, and how many blocked jobs each of them has room for.
 */
export function releaseGates(
  { gates, settings }: LockedGates,
  stopped: ReadonlyMap<string, number>,
  closed: ReadonlyMap<string, number>,
  now: number,
): { gates: Gate[]; moves: Move[] } {
  const released = [...gates.values()].map((gate) => {
    const until = closed.get(gate.key)
    const own = until === undefined ? gate : close(gate, until)
    return release(own, stopped.get(gate.key) ?? 0, settings, now)
  })
  return {
    gates: released.map(({ gate }) => gate),
    moves: released.flatMap(({ gate, moves }) =>
      moves === 0 ? [] : { gate: gate.key, jobs: moves },
    ),
  }
}

/** Gates that block no job any more need no look; one that was missed needs one soon. */
export function afterMoves(gates: readonly Gate[], moved: readonly Moved[], now: number): Gate[] {
  const byGate = new Map(moved.map((one) => [one.gate, one]))
  return gates.map((gate) => {
    const { left = true, missed = false } = byGate.get(gate.key) ?? {}
    if (!left) return { ...gate, waiting: false, openAt: null }
    return missed ? { ...gate, openAt: now + LOOK_AGAIN_MS } : gate
  })
}
