/**
 * The outbox: effects that a commit declared, delivered after it. Each has its own lease, tries and
 * parked state, and a stable key (job id / name / n) by which its receiver recognises a repetition.
 * When the last effect of a job is delivered, the job is done in the same transaction.
 *
 * A claim moves the due time of an effect to the end of the lease, so that a search for due effects
 * does not meet those that others deliver. An effect is held while it has a claim and is not due.
 */

import type { EffectClaim, HeldEffect } from '../contract/store.ts'
import { strayWhy, toHeldEffect } from '../effects.ts'
import type { Tx, Verb } from './operations.ts'

/** Claims due effects. One whose row differs from its mark is parked, because its key is wrong. */
export function* claimEffects(
  tx: Tx,
  claim: string,
  request: EffectClaim,
  redo: boolean,
): Verb<HeldEffect[]> {
  const rows = yield* tx.takeEffects(claim, request, redo)
  const strays = rows.flatMap(({ eid, ...row }) => {
    const why = strayWhy({ eid, ...row })
    return why === undefined ? [] : [{ eid, why }]
  })
  if (strays.length > 0) yield* tx.parkStrays(claim, strays)
  const parked = new Set(strays.map(({ eid }) => eid))
  return rows.filter(({ eid }) => !parked.has(eid)).map((row) => toHeldEffect(claim, row))
}
