/**
 * Finds rows that cannot be read or trusted at the heads of the lanes that workers use, and sets
 * them aside; `../damage.ts` has the rules. The search is bounded and uses indexes only.
 */
import { LANES } from '../../core/job/lanes.ts'
import { strictGroupOf } from '../../core/limits/keys.ts'
import type { Isolated, Ref } from '../contract/store.ts'
import { distrust, isolated, isolationOf } from '../damage.ts'
import type { JobDamaged } from '../errors.ts'
import { cutLease, effectBounds } from '../far-times.ts'
import type { PlacedJob, Tx, Verb } from './operations.ts'

/** Returns the damaged rows among the next ones of each lane. */
export function* findDamage(tx: Tx): Verb<JobDamaged[]> {
  const placed = yield* tx.nextOfLanes()
  return placed.flatMap((one) => distrustRow(tx, one) ?? [])
}

function distrustRow({ machines, now }: Tx, { row, ref }: PlacedJob): JobDamaged | undefined {
  const lifecycle = machines.at(row.machine)
  return lifecycle && distrust(row, lifecycle, ref, now)
}

/** Sets one job aside if it is still damaged. A lease that would never end is cut first. */
export function* setAside(tx: Tx, ref: Ref): Verb<Isolated[]> {
  const found = yield* tx.lockPlaced(ref)
  if (found === undefined) return []
  const until = cutLease(found.row, yield* tx.lastClaim(ref), tx.now)
  if (until !== undefined) yield* tx.setLease(ref, until)
  const placed = until === undefined ? found : yield* tx.lockPlaced(ref)
  const damage = placed && distrustRow(tx, placed)
  return placed && damage ? yield* setOneAside(tx, placed, damage.why) : []
}

/** Sets aside a job that is held, although its row can be trusted. */
export function* setHeldAside(tx: Tx, ref: Ref, why: string): Verb<Isolated[]> {
  const placed = yield* tx.lockPlaced(ref)
  return placed?.row.lane === LANES.held ? yield* setOneAside(tx, placed, why) : []
}

function* setOneAside(tx: Tx, { row, ref }: PlacedJob, why: string): Verb<Isolated[]> {
  const { machines, now } = tx
  const find = (name: string, version: number) =>
    machines.at(machines.numberOf({ name, version }) ?? -1)
  const seen = yield* tx.storedJob(ref)
  if (seen === undefined) return []
  const isolation = isolationOf(seen, find, now, why)
  const { before, fact } = isolation
  const lifecycle = before && find(before.lifecycle, before.lifecycleVersion)
  if (lifecycle && fact) yield* tx.overwrite({ ref, seq: row.seq, lifecycle, before, fact })
  else yield* tx.parkRow(ref)
  const group = strictGroupOf(row.limit_key)
  yield* tx.freeSlots([row.slots], group === undefined ? [] : [group.gate])
  return [isolated(before?.id ?? row.id, row, isolation)]
}

/** Makes pending effects due whose time lies further ahead than any that Pawl writes. */
export function* makeDue(tx: Tx, effects: readonly number[]): Verb<void> {
  if (effects.length > 0) yield* tx.makeFarEffectsDue(effects, effectBounds(tx.now))
}

/** Returns the numbers of such effects, the furthest of each type. */
export function* findFarEffects(tx: Tx): Verb<readonly number[]> {
  return yield* tx.farEffects(effectBounds(tx.now))
}
