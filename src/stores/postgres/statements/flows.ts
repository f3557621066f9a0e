/** Links and flows on PostgreSQL. */
import { FACT_CODES } from '../../../core/job/facts.ts'
import { LANES } from '../../../core/job/lanes.ts'
import { LINKS } from '../../../core/job/links.ts'
import {
  type FlowCounts,
  type FlowRow,
  LINK_STATES,
  type LinkNews,
  type LookRow,
  NEEDS,
  type NewLink,
  type SeenFlowRow,
} from '../../link-rows.ts'
import { type FactRow, toFact, type Value } from '../../rows.ts'
import type { FlowQuery, LinkEnd, ResultRow } from '../../verbs/flow-tables.ts'
import type { ChildEnd } from '../../verbs/invoke.ts'
import type { AwaitedEnd, LinkRow, WaiterRow } from '../../verbs/link-doctor.ts'
import { TX } from '../apply.ts'
import { statement } from '../connect.ts'
import { isUuid } from '../context.ts'
import { IN_JOINED } from '../join.ts'
import { arrayOf, arraysOf, type Column, unnest } from '../rows-at-once.ts'
import type { At } from './at.ts'

const { open, arrivedNew, failedNew, arrived, failed, orphaned, reopened } = LINK_STATES

/** As in the index, so that it is used. */
const NEWS = `state IN (${arrivedNew}, ${failedNew}, ${orphaned}, ${reopened})`
const OPEN = `state IN (${open}, ${reopened})`

/** Writes nothing if the user has ended the transaction that was joined. */
const insertFlow = (condition: string) =>
  statement(
    (s) => `
  INSERT INTO ${s}.flows (id, kind, key, created_at, size, callbacks, open)
  SELECT $1::uuid, $2::text, $3::text, $4::bigint, $5::int, $6::int, $7::smallint ${condition}
  ON CONFLICT DO NOTHING RETURNING id`,
  )
const INSERT_FLOW = insertFlow('')
const INSERT_FLOW_JOINED = insertFlow(`WHERE ${IN_JOINED}`)
const SELECT_BY_KEY = statement((s) => `SELECT * FROM ${s}.flows WHERE key = $1`)
const lockFlows = (lock: string) =>
  statement((s) => `SELECT * FROM ${s}.flows WHERE id = ANY ($1::uuid[]) ORDER BY id ${lock}`)
const SELECT_FLOWS = lockFlows('')
const LOCK = { share: lockFlows('FOR SHARE'), update: lockFlows('FOR UPDATE') } as const
const UPDATE_FLOW = statement(
  (s) => `
  UPDATE ${s}.flows SET size = $1, open = $2 WHERE id = $3::uuid RETURNING ${TX} AS tx`,
)

const LINK: readonly Column<NewLink>[] = [
  ['awaited', 'uuid', ({ awaited }) => awaited],
  ['waiter', 'uuid', ({ waiter }) => waiter],
  ['part', 'smallint', ({ part }) => part],
  ['need', 'smallint', ({ need }) => need],
]
const insertLinks = (condition: string) =>
  statement(
    (s) => `
  INSERT INTO ${s}.links (awaited, waiter, part, need, state)
  SELECT awaited, waiter, part, need, ${open} FROM ${unnest(LINK, 1, 'link')} ${condition}`,
  )
const INSERT_LINKS = insertLinks('')
const INSERT_LINKS_JOINED = insertLinks(`WHERE ${IN_JOINED}`)

const HAS_NEWS = statement((s) => `SELECT 1 FROM ${s}.links WHERE ${NEWS} LIMIT 1`)
const SELECT_NEWS = statement(
  (s) => `
  SELECT link.awaited, link.waiter, link.part, link.need, link.state,
    own.links AS waiter_links, own.flow AS waiter_flow
  FROM (
    SELECT * FROM ${s}.links WHERE ${NEWS} ORDER BY waiter LIMIT $1 FOR UPDATE SKIP LOCKED
  ) AS link LEFT JOIN ${s}.jobs AS own ON own.id = link.waiter`,
)

const one = (s: string, where: string) => `(
    SELECT awaited FROM ${s}.links AS link WHERE link.waiter = own.id AND ${where} LIMIT 1)`
const LOOK = statement(
  (s) => `
  SELECT own.id AS waiter, ${one(s, `link.${OPEN}`)} AS open,
    ${one(s, `link.state IN (${failedNew}, ${failed}) AND link.need = ${NEEDS.success}`)} AS failed,
    ${one(s, `link.state IN (${arrivedNew}, ${arrived}) AND link.need = ${NEEDS.failure}`)} AS hit
  FROM unnest($1::uuid[]) AS own (id)`,
)

const NEWS_ROW: readonly Column<LinkNews>[] = [
  ...(LINK.slice(0, 3) as Column<LinkNews>[]),
  ['state', 'smallint', ({ state }) => state],
]
const EXAMINE = statement(
  (s) => `
  UPDATE ${s}.links SET state = CASE links.state WHEN ${arrivedNew} THEN ${arrived}
    WHEN ${failedNew} THEN ${failed} ELSE ${open} END
  FROM ${unnest(NEWS_ROW, 1, 'seen')}
  WHERE links.awaited = seen.awaited AND links.awaited = ANY ($1::uuid[])
    AND links.waiter = seen.waiter AND links.part = seen.part AND links.state = seen.state`,
)

const SELECT_CREATED = statement(
  (s) => `
  SELECT *, job AS job_id FROM ${s}.ledger WHERE job = ANY ($1::uuid[]) AND seq = 1`,
)
const SELECT_ENDS = statement(
  (s) => `
  SELECT awaited AS id, seq FROM ${s}.links
  WHERE awaited = ANY ($1::uuid[]) AND waiter = $2 AND part = 0`,
)

const SELECT_AWAITED = statement(
  (s) => `SELECT id, outcome, seq FROM ${s}.jobs WHERE id = ANY ($1::uuid[])`,
)

const hasJob = (s: string, where: string) => `
  EXISTS (SELECT 1 FROM ${s}.jobs WHERE jobs.flow = flow.id AND jobs.${where})::int`
const seen = (s: string) => `
  SELECT flow.*, ${hasJob(s, `lane = ${LANES.parked}`)} AS parked,
    ${hasJob(s, `lane <> ${LANES.ended}`)} AS live
  FROM ${s}.flows AS flow`
const SELECT_SEEN = statement((s) => `${seen(s)} WHERE flow.id = $1::uuid`)
const STATES = {
  open: 'parked = 0 AND (live = 1 OR open = 1)',
  attention: 'parked = 1',
  done: 'parked = 0 AND live = 0 AND open = 0',
} as const
const seenBy = (condition: string) =>
  statement(
    (s) => `
  SELECT * FROM (${seen(s)}) AS flow
  WHERE ($1::uuid IS NULL OR id < $1::uuid) AND ($2::text IS NULL OR kind = $2::text)
    AND ($3::text IS NULL OR key = $3::text) AND ${condition}
  ORDER BY id DESC LIMIT $4`,
  )
const SELECT_ALL_SEEN = seenBy('true')
const SELECT_SEEN_IN = {
  open: seenBy(STATES.open),
  attention: seenBy(STATES.attention),
  done: seenBy(STATES.done),
} as const

const of = (condition: string) => `(count(*) FILTER (WHERE ${condition}))::int`
const COUNT = statement(
  (s) => `
  SELECT count(*)::int AS members, ${of("outcome = 'succeeded'")} AS succeeded,
    ${of("outcome = 'failed'")} AS failed, ${of("outcome = 'cancelled'")} AS cancelled,
    ${of(`lane = ${LANES.parked}`)} AS parked
  FROM ${s}.jobs WHERE flow = $1::uuid AND node >= $2`,
)
const SELECT_NODES = statement(
  (s) => `
  SELECT id, node FROM ${s}.jobs WHERE flow = $1::uuid AND node > $2 ORDER BY node LIMIT $3`,
)
const SELECT_FACTS = statement(
  (s) => `
  SELECT *, job AS job_id FROM ${s}.ledger
  WHERE job = ANY ($1::uuid[]) AND at <= $2 ORDER BY job, seq`,
)
const SELECT_OF_WAITER = statement(
  (s) => `SELECT awaited, part, seq FROM ${s}.links WHERE waiter = $1::uuid`,
)
const SELECT_OPEN = {
  waiter: statement(
    (s) => `SELECT awaited AS id FROM ${s}.links WHERE waiter = $1::uuid AND ${OPEN} LIMIT $2`,
  ),
  awaited: statement(
    (s) => `SELECT waiter AS id FROM ${s}.links WHERE awaited = $1::uuid AND ${OPEN} LIMIT $2`,
  ),
} as const
const SELECT_RESULTS = statement(
  (s) => `
  SELECT job AS id, payload FROM ${s}.ledger
  WHERE job = ANY ($1::uuid[]) AND kind = ${FACT_CODES.commit}`,
)

const idsOf = (ids: readonly string[]) => arrayOf(ids.filter(isUuid))

const SELECT_WAITERS = statement(
  (s) => `
  SELECT id, flow, links, attempt, blocked_reason FROM ${s}.jobs
  WHERE ($1::uuid IS NULL OR id > $1::uuid) AND (links & ${LINKS.waits}) <> 0 AND outcome IS NULL
    AND ($2::uuid[] IS NULL OR id = ANY ($2::uuid[]))
  ORDER BY id LIMIT $3`,
)
const SELECT_LINKS = statement(
  (s) => `
  SELECT awaited, waiter, part, need, state, seq FROM ${s}.links WHERE waiter = ANY ($1::uuid[])`,
)
const SELECT_REDRIVEN = statement(
  (s) => `
  SELECT DISTINCT job AS id FROM ${s}.ledger
  WHERE job = ANY ($1::uuid[]) AND kind = ${FACT_CODES.redrive}`,
)
const REMOVE_LINKS = statement((s) => `DELETE FROM ${s}.links WHERE waiter = $1::uuid`)
const RIGHT: readonly Column<LinkRow>[] = [
  ...LINK,
  ['state', 'smallint', ({ state }) => state],
  ['seq', 'int', ({ seq }) => seq],
]
const RESTORE_LINKS = statement(
  (s) => `
  INSERT INTO ${s}.links (awaited, waiter, part, need, state, seq)
  SELECT awaited, waiter, part, need, state, seq FROM ${unnest(RIGHT, 1, 'link')}`,
)

export const FLOWS = {
  waiterRows({ session }: At, after: string, limit: number, only?: readonly string[]) {
    const values = [after === '' ? null : after, only === undefined ? null : idsOf(only), limit]
    return session.query<WaiterRow>(SELECT_WAITERS, values)
  },
  linkRows: ({ session }: At, waiters: readonly string[]) =>
    session.query<LinkRow>(SELECT_LINKS, [idsOf(waiters)]),
  awaitedEnds: ({ session }: At, ids: readonly string[]) =>
    session.query<AwaitedEnd>(SELECT_AWAITED, [idsOf(ids)]),
  async redriven({ session }: At, ids: readonly string[]) {
    const rows = await session.query<{ id: string }>(SELECT_REDRIVEN, [idsOf(ids)])
    return rows.map(({ id }) => id)
  },
  async replaceLinks({ session }: At, waiter: string, links: readonly LinkRow[]) {
    await session.query(REMOVE_LINKS, [waiter])
    if (links.length > 0) await session.query(RESTORE_LINKS, arraysOf(RIGHT, links))
  },
  async insertFlow({ session }: At, row: FlowRow) {
    const { id, kind, key, created_at, size, callbacks } = row
    const values = [id, kind, key, created_at, size, callbacks, row.open]
    const text = session.isJoined ? INSERT_FLOW_JOINED : INSERT_FLOW
    return (await session.query(text, values)).length > 0
  },
  flowRows: ({ session }: At, ids: readonly string[]) =>
    session.query<FlowRow>(SELECT_FLOWS, [idsOf(ids)]),
  async flowByKey({ session }: At, key: string) {
    return (await session.query<FlowRow>(SELECT_BY_KEY, [key]))[0]
  },
  lockFlows: ({ session }: At, ids: readonly string[], lock: 'share' | 'update') =>
    session.query<FlowRow>(LOCK[lock], [idsOf(ids)]),
  async writeFlow({ session }: At, row: FlowRow) {
    const [written] = await session.query<{ tx: number }>(UPDATE_FLOW, [row.size, row.open, row.id])
    if (written !== undefined && session.wrote === undefined) session.wrote = { tx: written.tx }
  },
  async insertLinks({ session }: At, links: readonly NewLink[]) {
    if (links.length === 0) return
    const text = session.isJoined ? INSERT_LINKS_JOINED : INSERT_LINKS
    await session.query(text, arraysOf(LINK, links))
  },
  async hasLinkNews({ session }: At) {
    return (await session.query(HAS_NEWS)).length > 0
  },
  linkNews: ({ session }: At, limit: number) => session.query<LinkNews>(SELECT_NEWS, [limit]),
  lookAtLinks: ({ session }: At, waiters: readonly string[]) =>
    session.query<LookRow>(LOOK, [idsOf(waiters)]),
  async examineLinks({ session }: At, news: readonly LinkNews[]) {
    await session.query(EXAMINE, arraysOf(NEWS_ROW, news))
  },
  async createFacts({ session }: At, ids: readonly string[]) {
    type Row = FactRow & { job_id: string }
    const rows = await session.query<Row>(SELECT_CREATED, [idsOf(ids)])
    return rows.map((row) => toFact(row.job_id, row))
  },
  childEnds: ({ session }: At, parent: string, ids: readonly string[]) =>
    session.query<ChildEnd>(SELECT_ENDS, [idsOf(ids), parent]),
  async seenFlow({ session }: At, id: string) {
    return (await session.query<SeenFlowRow>(SELECT_SEEN, [id]))[0]
  },
  seenFlows({ session }: At, { state, kind, key, below, limit }: FlowQuery) {
    const text = state === undefined ? SELECT_ALL_SEEN : SELECT_SEEN_IN[state]
    const values: Value[] = [below ?? null, kind ?? null, key ?? null, limit]
    return session.query<SeenFlowRow>(text, values)
  },
  async flowCounts({ session }: At, id: string, callbacks: number) {
    return (await session.query<FlowCounts>(COUNT, [id, callbacks]))[0] as FlowCounts
  },
  nodeIds: ({ session }: At, flow: string, after: number, limit: number) =>
    session.query<{ id: string; node: number }>(SELECT_NODES, [flow, after, limit]),
  factsUntil: ({ session }: At, ids: readonly string[], at: number) =>
    session.query<FactRow & { job_id: string }>(SELECT_FACTS, [idsOf(ids), at]),
  linksOfWaiter: ({ session }: At, waiter: string) =>
    session.query<LinkEnd>(SELECT_OF_WAITER, [waiter]),
  async openLinks({ session }: At, id: string, side: 'waiter' | 'awaited', limit: number) {
    const rows = await session.query<{ id: string }>(SELECT_OPEN[side], [id, limit])
    return rows.map((row) => row.id)
  },
  results: ({ session }: At, ids: readonly string[]) =>
    session.query<ResultRow>(SELECT_RESULTS, [idsOf(ids)]),
}
