/** Limits and throttles: what is in force, what runs and waits, changes, and the audit. */
import { auditLimit } from '../../audit/limit-use.ts'
import { CONCURRENCY_MAX, GATE_MAX, isRate, limitOf, parseGate } from '../../core/limits/keys.ts'
import { shortName } from '../../core/limits/short-names.ts'
import { NameUnknown } from '../../engine/errors.ts'
import { foreseeLimit } from '../../engine/limits/foresee.ts'
import { limitName } from '../../engine/limits/limits.ts'
import type { GateInfo, LimitInfo, LimitRecord } from '../../stores/contract/limits.ts'
import { DRY_RUN, operatorOf, WHO, WHY } from '../operating.ts'
import { OPERATE, PAGING, pageOf, READ, type Route, type RouteCall } from '../route.ts'
import {
  count,
  flag,
  list,
  name,
  nullable,
  page,
  record,
  ref,
  text,
  time,
  whole,
} from '../schema.ts'

const HOLDERS_SHOWN = 100
const RECORDS_SHOWN = 10
const NAMES_SHOWN = 10

function gateOf({ gate, limit, key, ...state }: GateInfo) {
  return {
    name: gate,
    limit: shortName(limit),
    kind: isRate(gate) ? 'throttle' : 'concurrency',
    ...(key !== undefined && { key }),
    ...state,
  }
}

function recordOf({ name: gate, ...change }: LimitRecord) {
  const key = parseGate(gate)?.key
  return {
    name: gate,
    limit: shortName(limitOf(gate)),
    ...(key !== undefined && { key }),
    ...change,
  }
}

async function listLimits(call: RouteCall): Promise<unknown> {
  const { limits } = call.pawl.store
  const { items, next } = await limits.list(pageOf(call))
  const lines = []
  for (const setting of items) {
    lines.push({ ...gateOf(await limits.gate(setting.name)), setting })
  }
  return { items: lines, nextCursor: next ?? null }
}

async function listGates(call: RouteCall): Promise<unknown> {
  const { name: wanted, waiting } = call.query
  const filter = {
    ...(wanted !== undefined && { limit: limitName(wanted) }),
    ...(waiting === true && { waiting: true as const }),
  }
  const { items, next } = await call.pawl.store.limits.gates(filter, pageOf(call))
  return { items: items.map(gateOf), nextCursor: next ?? null }
}

/** Throws `NameUnknown` with limits that exist. Any queue can have a limit. */
async function assertDeclared({ pawl, params }: RouteCall): Promise<string> {
  const { limit = '' } = params
  const full = limitName(limit)
  if (parseGate(full)?.kind === 'queue') return limit
  if ((await pawl.store.limits.get(full)) !== undefined) return limit
  const known: readonly LimitInfo[] = (await pawl.store.limits.list({ limit: 100 })).items
  const names = new Set(known.map((one) => shortName(limitOf(one.name))))
  throw new NameUnknown('limit', limit, [...names].slice(0, NAMES_SHOWN))
}

async function showLimit(call: RouteCall): Promise<unknown> {
  const { pawl, query } = call
  const { limits } = pawl.store
  const limit = await assertDeclared(call)
  const { setting, ...state } = await pawl.limits.get(limit, keyOf(query))
  const holders = await limits.holders(state.gate, HOLDERS_SHOWN)
  const records = await limits.records({ name: state.gate }, { limit: RECORDS_SHOWN })
  return {
    ...gateOf(state),
    setting: setting ?? null,
    holders,
    records: records.items.map(recordOf),
  }
}

function keyOf({ key }: { readonly key?: string }): { readonly key?: string } {
  return key === undefined ? {} : { key }
}

const changing = (verb: 'set' | 'reset') => async (call: RouteCall) => {
  const { concurrency, dryRun = false } = call.body
  const own = keyOf(call.body)
  const limit = await assertDeclared(call)
  const wanted = verb === 'set' ? concurrency : undefined
  const foreseen = await foreseeLimit(call.pawl, limit, wanted, own.key)
  const operator = operatorOf(call)
  const answer = { dryRun, changed: foreseen.before !== foreseen.after, ...foreseen, record: null }
  if (dryRun) return answer
  const done =
    verb === 'set'
      ? await operator.setLimit(limit, { concurrency, ...own })
      : await operator.resetLimit(limit, own)
  return {
    ...answer,
    changed: done !== undefined,
    record: done === undefined ? null : recordOf(done),
  }
}

async function listRecords(call: RouteCall): Promise<unknown> {
  const { name: wanted, key } = call.query
  const filter = wanted === undefined ? {} : { name: limitName(wanted, key) }
  const { items, next } = await call.pawl.store.limits.records(filter, pageOf(call))
  return { items: items.map(recordOf), nextCursor: next ?? null }
}

/** Reads the whole ledger, so there is one at a time. */
function audit(call: RouteCall): Promise<unknown> {
  return call.examinations.hold(async () => {
    const { since } = call.query
    const limit = await assertDeclared(call)
    const { signal } = call
    const options = { signal, ...keyOf(call.query), ...(since !== undefined && { since }) }
    return auditLimit(call.pawl.store, limit, options)
  })
}

const ROOT = '/api/v1/limits'
const LIMIT = text('the name of a limit: openai, sync/tenant, type/sync, queue/mail', {
  minLength: 1,
  maxLength: GATE_MAX,
})
const KEY = { key: name('one key of the limit') }

const CHANGED = record({
  dryRun: flag(),
  changed: flag('false if it is the number already'),
  limit: text('the full name of the limit or of its key'),
  before: nullable(whole("the operator's number before; null if there is none")),
  after: nullable(whole()),
  max: nullable(whole('how many may run before the change; null: any number')),
  used: whole(),
  blocked: whole(),
  starts: nullable(whole('how many blocked jobs could start')),
  record: nullable(ref('LimitRecord')),
})

const AUDIT = record(
  {
    limit: text(),
    from: time(),
    until: time(),
    complete: flag('false if it was interrupted, or facts could not be read'),
    claims: whole(),
    curve: list(record({ from: time(), peak: whole() })),
    violations: list(
      record({ at: time(), gate: text(), jobId: text(), used: whole(), max: whole() }),
      { description: 'the first claims that made more jobs run than were allowed' },
    ),
    violationCount: whole(),
  },
  { key: text(), peak: record({ used: whole(), at: time(), gate: text() }) },
)

export const routes: readonly Route[] = [
  {
    method: 'GET',
    path: ROOT,
    operation: 'listLimits',
    summary: 'Lists limits and throttles, and keys that an operator has set, by name.',
    roles: READ,
    query: PAGING,
    answer: page(ref('Limit')),
    run: listLimits,
  },
  {
    method: 'GET',
    path: '/api/v1/gates',
    operation: 'listGates',
    summary: 'Lists limits and keys of limits that jobs use now, by name.',
    roles: READ,
    query: {
      name: LIMIT,
      waiting: flag('only those that may block jobs'),
      ...PAGING,
    },
    answer: page(ref('Gate')),
    run: listGates,
  },
  {
    method: 'GET',
    path: '/api/v1/limit-records',
    operation: 'listLimitRecords',
    summary: 'Lists changes of limits, newest first: who, when and why.',
    roles: READ,
    query: { name: LIMIT, ...KEY, ...PAGING },
    answer: page(ref('LimitRecord')),
    run: listRecords,
  },
  {
    method: 'GET',
    path: `${ROOT}/{limit}`,
    operation: 'showLimit',
    summary: 'Shows a limit or one key of it: use, jobs that hold it, and the last changes.',
    details: 'A `/` in the name of a limit is sent as `%2F`.',
    roles: READ,
    query: KEY,
    errors: [404],
    answer: ref('LimitDetails'),
    run: showLimit,
  },
  {
    method: 'GET',
    path: `${ROOT}/{limit}/audit`,
    operation: 'auditLimit',
    summary: 'Compares with the ledger: were ever more jobs run than the limit allowed?',
    details: 'Reads every fact of the store once.',
    roles: READ,
    query: { ...KEY, since: time('reports what happened at this time or later') },
    errors: [404],
    lasts: true,
    answer: AUDIT,
    run: audit,
  },
  ...(['set', 'reset'] as const).map(
    (verb): Route => ({
      method: 'POST',
      path: `${ROOT}/{limit}/${verb}`,
      operation: `${verb}Limit`,
      summary: {
        set: 'Sets how many jobs may run under a limit or one key of it; 0 pauses it.',
        reset: 'Removes the number that an operator has set: the number in the code counts again.',
      }[verb],
      roles: OPERATE,
      body: record(
        verb === 'set'
          ? { ...WHY, concurrency: count('how many jobs may run', 0, CONCURRENCY_MAX) }
          : WHY,
        { ...WHO, ...DRY_RUN, ...KEY },
      ),
      errors: [404],
      answer: CHANGED,
      run: changing(verb),
    }),
  ),
]
