/** Lists effects for operators, newest first. */

import type { PageOptions } from '../contract/filters.ts'
import type { EffectFilter, EffectInfo, Page } from '../contract/store.ts'
import { EffectPage, SCAN_CHUNK, toEffectInfo } from '../effects.ts'
import type { Tx, Verb } from './operations.ts'

/** Returns a page of effects; a page that takes too long ends early, with the cursor to go on. */
export function* listEffects(
  tx: Tx,
  filter: EffectFilter,
  options: PageOptions,
  expired: () => boolean,
): Verb<Page<EffectInfo>> {
  const page = new EffectPage(filter, options)
  const rest = yield* fill(tx, page, filter, expired)
  const rows = yield* tx.effectsByNumber(page.found)
  return { items: rows.map(toEffectInfo), ...rest }
}

function* fill(
  tx: Tx,
  page: EffectPage,
  { jobId, state }: EffectFilter,
  expired: () => boolean,
): Verb<Omit<Page<EffectInfo>, 'items'>> {
  if (jobId !== undefined) return page.lookAtAll(yield* tx.effectsOfJob(jobId))
  for (;;) {
    const rows = yield* tx.effectsBelow(page.cursor, state === 'parked')
    const rest = page.look(rows, rows.length < SCAN_CHUNK, expired())
    if (rest !== undefined) return rest
  }
}
