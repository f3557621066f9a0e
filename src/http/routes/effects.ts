/** Effects: lists, and deliveries that are tried again. */

import type { EffectSelection } from '../../engine/effects/retry-effects.ts'
import { EFFECT_STATES } from '../../stores/contract/outbox.ts'
import type { EffectFilter } from '../../stores/contract/store.ts'
import { RequestRefused } from '../errors.ts'
import { DRY_RUN, operatorOf, WHO, WHY } from '../operating.ts'
import { OPERATE, PAGING, pageOf, READ, type Route, type RouteCall } from '../route.ts'
import {
  count,
  flag,
  type JsonSchema,
  list,
  name,
  oneOf,
  page,
  record,
  ref,
  text,
  whole,
} from '../schema.ts'

const FILTER: Readonly<Record<string, JsonSchema>> = {
  state: oneOf(EFFECT_STATES, 'effects in this state'),
  jobId: name('effects of this job'),
  type: name('effects of jobs of this type'),
}

const KEYS_MAX = 10_000

async function listEffects(call: RouteCall): Promise<unknown> {
  const { after: _, limit: __, ...filter } = call.query
  const found = await call.pawl.store.listEffects(filter as EffectFilter, pageOf(call))
  const items = found.items.map((effect) => ({
    ...effect,
    payload: call.payloads.view(effect.payload),
  }))
  return { items, nextCursor: found.next ?? null }
}

async function retryEffects(call: RouteCall): Promise<unknown> {
  const { dryRun = false, keys, filter, limit = KEYS_MAX } = call.body
  if ((keys === undefined) === (filter === undefined)) {
    throw new RequestRefused(400, 'Give one of "keys" and "filter"')
  }
  const selection: EffectSelection = keys === undefined ? { filter, limit } : { keys }
  return operatorOf(call).retryEffects(selection, { dryRun, signal: call.signal })
}

export const routes: readonly Route[] = [
  {
    method: 'GET',
    path: '/api/v1/effects',
    operation: 'listEffects',
    summary: 'Lists effects of jobs, newest first.',
    roles: READ,
    query: { ...FILTER, ...PAGING },
    answer: page(ref('Effect')),
    run: listEffects,
  },
  {
    method: 'POST',
    path: '/api/v1/effects/retry',
    operation: 'retryEffects',
    summary: 'Delivers parked effects again, or those that wait for their next try.',
    roles: OPERATE,
    body: record(WHY, {
      keys: list(text(undefined, { maxLength: 1000 }), { minItems: 1, maxItems: KEYS_MAX }),
      filter: record({}, FILTER),
      limit: count('change at most this many', 1, KEYS_MAX),
      ...WHO,
      ...DRY_RUN,
    }),
    answer: record(
      {
        dryRun: flag(),
        matched: whole(),
        done: whole(),
        same: whole(),
        refused: whole(),
        refusals: list(record({ key: text(), code: text(), message: text(), hint: text() })),
        sample: list(text()),
        more: flag(),
      },
      { keys: list(text()) },
    ),
    run: retryEffects,
  },
]
