/** Facts of all jobs: searched, exported, and verified by their seals. */
import { csvHead, csvLine } from '../../audit/csv.ts'
import { type SealFinding, verifySeals } from '../../audit/verify-seals.ts'
import { ACTORS, FACT_CODES } from '../../core/job/facts.ts'
import { auditOf } from '../../engine/audit.ts'
import type { AuditEntry, AuditFilter } from '../../stores/audit.ts'
import type { SealTables } from '../../stores/seals.ts'
import { RequestRefused } from '../errors.ts'
import { Reply } from '../exchange.ts'
import { AFTER, OPERATE, PAGING, pageOf, READ, type Route, type RouteCall } from '../route.ts'
import {
  count,
  flag,
  type JsonSchema,
  list,
  name,
  note,
  oneOf,
  page,
  record,
  ref,
  text,
  time,
  whole,
} from '../schema.ts'

const EXPORTED_MAX = 1_000_000
/** Lines are sent together up to this size. */
const PART_CHARS = 32_768
const FINDINGS_MAX = 1000
const COPIES_MAX = 1000

async function audit(call: RouteCall): Promise<unknown> {
  const { after: _, limit: __, order = 'newest', ...filter } = call.query
  const { store } = call.pawl
  const found = await store.audit(filter as AuditFilter, { ...pageOf(call), order })
  const items = found.items.map(({ pos, fact }) => ({ pos, fact }))
  return { items, nextCursor: found.next ?? null, unreadable: found.unreadable ?? [] }
}

/** The slot is held until the last line is sent. */
async function exportFacts(call: RouteCall): Promise<Reply> {
  const { format = 'ndjson', after, limit = EXPORTED_MAX, ...filter } = call.query
  const { store } = call.pawl
  const options = { limit, ...(after !== undefined && { after }) }
  // Read before the answer begins, so that a wrong position is a problem.
  await store.audit(filter as AuditFilter, { ...options, limit: 1 })
  const release = call.downloads.take()
  call.signal.addEventListener('abort', release, { once: true })
  if (call.isHead || call.signal.aborted) release()
  const entries = auditOf(store, filter as AuditFilter, options)
  const isCsv = format === 'csv'
  return new Reply(ended(partsOf(call, entries, isCsv), release), {
    'content-type': isCsv ? 'text/csv; charset=utf-8' : 'application/x-ndjson',
    'content-disposition': `attachment; filename="facts.${format}"`,
  })
}

async function* partsOf(
  { signal }: RouteCall,
  entries: AsyncIterable<AuditEntry>,
  isCsv: boolean,
): AsyncGenerator<string> {
  let part = isCsv ? csvHead(false) : ''
  for await (const { pos, fact } of entries) {
    if (signal.aborted) return
    part += isCsv ? csvLine({ pos, fact }, clean) : `${JSON.stringify({ pos, fact })}\n`
    if (part.length < PART_CHARS) continue
    yield part
    part = ''
  }
  if (part !== '') yield part
}

/** Control characters could act on the terminal or program that shows the file. */
function clean(value: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to replace
  return value.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ')
}

/** Not a generator: one that was never begun would not release its slot when it is ended. */
function ended(parts: AsyncGenerator<string>, release: () => void): AsyncIterable<string> {
  const next = async () => {
    try {
      const result = await parts.next()
      if (result.done) release()
      return result
    } catch (error) {
      release()
      throw error
    }
  }
  const end = async () => {
    release()
    return parts.return(undefined)
  }
  return { [Symbol.asyncIterator]: () => ({ next, return: end }) }
}

async function listSeals({ pawl, query }: RouteCall): Promise<unknown> {
  const { limit } = pageOf({ query })
  const { after = '0' } = query
  if (!/^\d{1,15}$/.test(after)) throw new RequestRefused(400, '"after" is not a cursor')
  const items = await pawl.store.seals.list(Number(after), limit)
  const last = items[items.length - 1]
  const isFull = last !== undefined && items.length === limit
  return { items, nextCursor: isFull ? String(last.number) : null }
}

/** One at a time: it reads every sealed fact. */
function verify(call: RouteCall): Promise<unknown> {
  return call.examinations.hold(async () => {
    const findings: SealFinding[] = []
    let more = false
    const counted = countedTables(call)
    for await (const finding of verifySeals(counted.tables, call.body.seals ?? [])) {
      more = findings.length >= FINDINGS_MAX
      if (more) break
      findings.push(finding)
    }
    return { seals: counted.seals(), findings, more }
  })
}

/** Counts the seals that are read, and stops when the client is gone. */
function countedTables({ pawl, signal }: RouteCall): {
  tables: SealTables
  seals: () => number
} {
  const { seals } = pawl.store
  let read = 0
  const check = () => {
    if (signal.aborted) throw new RequestRefused(503, 'The verification was ended')
  }
  const tables: SealTables = {
    make: () => seals.make(),
    list: async (after, limit) => {
      check()
      const found = await seals.list(after, limit)
      read += found.length
      return found
    },
    removalsOf: (seal) => seals.removalsOf(seal),
    prunings: (after, limit) => seals.prunings(after, limit),
    measure: (first, last) => {
      check()
      return seals.measure(first, last)
    },
    aside: (first, last) => seals.aside(first, last),
  }
  return { tables, seals: () => read }
}

const UNREADABLE = record({ pos: text(), jobId: text(), seq: whole(), unreadable: text() })

const FILTER: Readonly<Record<string, JsonSchema>> = {
  jobId: name('facts of this job'),
  actor: oneOf(ACTORS, 'caused by this kind of actor'),
  operator: name('caused by this operator'),
  worker: name('about attempts of this worker'),
  trigger: oneOf(Object.keys(FACT_CODES), 'what happened'),
  fromState: name('that left this state'),
  toState: name('that entered this state'),
  reason: note('with this reason'),
  from: time('at or after this time'),
  before: time('before this time'),
}

const SUM = text('the sum of the facts, in base64', { maxLength: 10_000 })
const SEAL_FIELDS = {
  number: whole('seals are numbered from 1', { minimum: 0 }),
  at: time('when it was made'),
  first: whole('the first position', { minimum: 0 }),
  last: whole('the last position', { minimum: 0 }),
  facts: whole('how many facts it covers', { minimum: 0 }),
  firstAt: time(),
  lastAt: time(),
  sum: SUM,
  chain: text('the hash that chains it to the seal before', { maxLength: 100 }),
}
const PAIR = list(whole(), { minItems: 2, maxItems: 2 })
const FINDING = record(
  { kind: text(), message: text() },
  { seal: whole(), range: PAIR, times: PAIR, pruned: whole(), facts: whole() },
)

export const routes: readonly Route[] = [
  {
    method: 'GET',
    path: '/api/v1/audit',
    operation: 'listFacts',
    summary: 'Lists facts of all jobs: each step, who caused it, and why.',
    roles: READ,
    query: { ...FILTER, order: oneOf(['oldest', 'newest'], 'newest if absent'), ...PAGING },
    answer: page(record({ pos: text(), fact: ref('Fact') }), { unreadable: list(UNREADABLE) }),
    run: audit,
  },
  {
    method: 'GET',
    path: '/api/v1/audit/export',
    operation: 'exportFacts',
    summary: 'Sends facts of all jobs as NDJSON or CSV, oldest first, without payloads.',
    details:
      'Facts are sent as they are read. If an export ends at its limit, go on with `after`, the ' +
      '`pos` of its last line. A fact that cannot be read ends the answer before its last chunk.',
    roles: READ,
    query: {
      ...FILTER,
      format: oneOf(['ndjson', 'csv'], 'ndjson if absent'),
      after: AFTER,
      limit: count(`how many facts; ${EXPORTED_MAX} if absent`, 1, EXPORTED_MAX),
    },
    lasts: true,
    answer: { media: 'application/x-ndjson', says: 'one fact on each line; or text/csv' },
    run: exportFacts,
  },
  {
    method: 'GET',
    path: '/api/v1/seals',
    operation: 'listSeals',
    summary: 'Lists the seals of the ledger, the oldest first. Keep a copy elsewhere.',
    roles: READ,
    query: PAGING,
    answer: page(record(SEAL_FIELDS)),
    run: listSeals,
  },
  {
    method: 'POST',
    path: '/api/v1/seals/verify',
    operation: 'verifySeals',
    summary: 'Verifies that no sealed fact is missing, added or changed.',
    details: 'With a copy of the seals, also that no seal was changed, replaced or deleted.',
    roles: OPERATE,
    body: record(
      {},
      {
        seals: list(
          record(SEAL_FIELDS, {
            removed: record({ facts: whole('', { minimum: 0 }), sum: SUM }),
          }),
          { maxItems: COPIES_MAX, description: 'a copy of the seals' },
        ),
      },
    ),
    lasts: true,
    answer: record({
      seals: whole('how many seals the store has'),
      findings: list(FINDING, { description: `the first ${FINDINGS_MAX}` }),
      more: flag('whether there are further findings'),
    }),
    run: verify,
  },
]
