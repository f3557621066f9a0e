/** Links and flows on SQLite. */
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
import type { At } from './at.ts'

const RIGHT = ['awaited', 'waiter', 'part', 'need', 'state', 'seq'] as const
const { open, arrivedNew, failedNew, arrived, failed, orphaned, reopened } = LINK_STATES

/** As in the index, so that it is used. */
const NEWS = `state IN (${arrivedNew}, ${failedNew}, ${orphaned}, ${reopened})`
const OPEN = `state IN (${open}, ${reopened})`
const LISTED = '(SELECT value FROM json_each(?))'

const INSERT_FLOW = `
  INSERT INTO pawl_flows (id, kind, key, created_at, size, callbacks, open)
  VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
const SELECT_BY_KEY = 'SELECT * FROM pawl_flows WHERE key = ?'
const SELECT_FLOWS = `SELECT * FROM pawl_flows WHERE id IN ${LISTED}`
const UPDATE_FLOW = 'UPDATE pawl_flows SET size = ?, open = ? WHERE id = ?'

/** One JSON text for many rows: a statement for each would take several times as long. */
const INSERT_LINKS = `
  INSERT INTO pawl_links (awaited, waiter, part, need, state)
  SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, ${open} FROM json_each(?)`

const HAS_NEWS = `SELECT 1 FROM pawl_links WHERE ${NEWS} LIMIT 1`
const SELECT_NEWS = `
  SELECT link.awaited, link.waiter, link.part, link.need, link.state,
    own.links AS waiter_links, own.flow AS waiter_flow
  FROM (SELECT * FROM pawl_links WHERE ${NEWS} ORDER BY waiter LIMIT ?) AS link
  LEFT JOIN pawl_jobs AS own ON own.id = link.waiter`

const one = (where: string) =>
  `(SELECT awaited FROM pawl_links AS link WHERE link.waiter = asked.value AND ${where} LIMIT 1)`
const LOOK = `
  SELECT asked.value AS waiter, ${one(`link.${OPEN}`)} AS open,
    ${one(`link.state IN (${failedNew}, ${failed}) AND link.need = ${NEEDS.success}`)} AS failed,
    ${one(`link.state IN (${arrivedNew}, ${arrived}) AND link.need = ${NEEDS.failure}`)} AS hit
  FROM json_each(?) AS asked`

const EXAMINE = `
  UPDATE pawl_links SET state = CASE state WHEN ${arrivedNew} THEN ${arrived}
    WHEN ${failedNew} THEN ${failed} ELSE ${open} END
  WHERE awaited = ? AND waiter = ? AND part = ? AND state = ?`

const SELECT_CREATED = `
  SELECT pawl_ledger.*, pawl_jobs.id AS job_id FROM json_each(?) AS asked
  CROSS JOIN pawl_jobs ON pawl_jobs.id = asked.value
  CROSS JOIN pawl_ledger ON pawl_ledger.job = pawl_jobs.rid AND pawl_ledger.seq = 1`
const SELECT_ENDS = `
  SELECT awaited AS id, seq FROM pawl_links WHERE awaited IN ${LISTED} AND waiter = ? AND part = 0`

const SELECT_AWAITED = `SELECT id, outcome, seq FROM pawl_jobs WHERE id IN ${LISTED}`

const hasJob = (where: string) => `
  EXISTS (SELECT 1 FROM pawl_jobs WHERE pawl_jobs.flow = flow.id AND pawl_jobs.${where})`
const SEEN = `
  SELECT flow.*, ${hasJob(`lane = ${LANES.parked}`)} AS parked,
    ${hasJob(`lane <> ${LANES.ended}`)} AS live
  FROM pawl_flows AS flow`
const STATES = {
  open: 'parked = 0 AND (live = 1 OR open = 1)',
  attention: 'parked = 1',
  done: 'parked = 0 AND live = 0 AND open = 0',
} as const

const of = (condition: string) => `count(*) FILTER (WHERE ${condition})`
const COUNT = `
  SELECT count(*) AS members, ${of("outcome = 'succeeded'")} AS succeeded,
    ${of("outcome = 'failed'")} AS failed, ${of("outcome = 'cancelled'")} AS cancelled,
    ${of(`lane = ${LANES.parked}`)} AS parked
  FROM pawl_jobs WHERE flow = ? AND node >= ?`
const SELECT_NODES = `
  SELECT id, node FROM pawl_jobs WHERE flow = ? AND node > ? ORDER BY node LIMIT ?`
// Sorted by the process: SQLite would copy the rows with their payloads to sort them.
const SELECT_FACTS = `
  SELECT pawl_ledger.*, pawl_jobs.id AS job_id FROM json_each(?1) AS asked
  CROSS JOIN pawl_jobs ON pawl_jobs.id = asked.value
  CROSS JOIN pawl_ledger ON pawl_ledger.job = pawl_jobs.rid
  WHERE pawl_ledger.at <= ?2`
const SELECT_OF_WAITER = 'SELECT awaited, part, seq FROM pawl_links WHERE waiter = ?'
const SELECT_OPEN = {
  waiter: `SELECT awaited AS id FROM pawl_links WHERE waiter = ? AND ${OPEN} LIMIT ?`,
  awaited: `SELECT waiter AS id FROM pawl_links WHERE awaited = ? AND ${OPEN} LIMIT ?`,
} as const
const SELECT_RESULTS = `
  SELECT asked.value AS id, pawl_ledger.payload FROM json_each(?) AS asked
  CROSS JOIN pawl_jobs ON pawl_jobs.id = asked.value
  CROSS JOIN pawl_ledger ON pawl_ledger.job = pawl_jobs.rid
    AND pawl_ledger.kind = ${FACT_CODES.commit}`

const SELECT_WAITERS = `
  SELECT id, flow, links, attempt, blocked_reason FROM pawl_jobs
  WHERE id > ? AND (links & ${LINKS.waits}) <> 0 AND outcome IS NULL
    AND (?2 IS NULL OR id IN (SELECT value FROM json_each(?2)))
  ORDER BY id LIMIT ?3`
const SELECT_LINKS = `
  SELECT awaited, waiter, part, need, state, seq FROM pawl_links WHERE waiter IN ${LISTED}`
const SELECT_REDRIVEN = `
  SELECT asked.value AS id FROM json_each(?) AS asked
  CROSS JOIN pawl_jobs ON pawl_jobs.id = asked.value
  WHERE EXISTS (SELECT 1 FROM pawl_ledger
    WHERE pawl_ledger.job = pawl_jobs.rid AND kind = ${FACT_CODES.redrive})`
const REMOVE_LINKS = 'DELETE FROM pawl_links WHERE waiter = ?'
const RESTORE_LINKS = `
  INSERT INTO pawl_links (awaited, waiter, part, need, state, seq)
  SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5
  FROM json_each(?)`

export const FLOWS = {
  waiterRows: ({ connection }: At, after: string, limit: number, only?: readonly string[]) =>
    connection.all<WaiterRow>(SELECT_WAITERS, after, only ? JSON.stringify(only) : null, limit),
  linkRows: ({ connection }: At, waiters: readonly string[]) =>
    connection.all<LinkRow>(SELECT_LINKS, JSON.stringify(waiters)),
  awaitedEnds: ({ connection }: At, ids: readonly string[]) =>
    connection.all<AwaitedEnd>(SELECT_AWAITED, JSON.stringify(ids)),
  redriven: ({ connection }: At, ids: readonly string[]) =>
    connection.all<{ id: string }>(SELECT_REDRIVEN, JSON.stringify(ids)).map(({ id }) => id),
  replaceLinks({ connection }: At, waiter: string, links: readonly LinkRow[]) {
    connection.run(REMOVE_LINKS, waiter)
    const rows = links.map((link) => RIGHT.map((name) => link[name]))
    connection.run(RESTORE_LINKS, JSON.stringify(rows))
  },
  insertFlow({ connection }: At, row: FlowRow) {
    const { id, kind, key, created_at, size, callbacks } = row
    return connection.run(INSERT_FLOW, id, kind, key, created_at, size, callbacks, row.open) > 0
  },
  flowRows: ({ connection }: At, ids: readonly string[]) =>
    connection.all<FlowRow>(SELECT_FLOWS, JSON.stringify(ids)),
  flowByKey: ({ connection }: At, key: string) => connection.get<FlowRow>(SELECT_BY_KEY, key),
  lockFlows: ({ connection }: At, ids: readonly string[]) =>
    connection.all<FlowRow>(SELECT_FLOWS, JSON.stringify(ids)),
  writeFlow({ connection }: At, row: FlowRow) {
    connection.run(UPDATE_FLOW, row.size, row.open, row.id)
  },
  insertLinks({ connection }: At, links: readonly NewLink[]) {
    if (links.length === 0) return
    const rows = links.map(({ awaited, waiter, part, need }) => [awaited, waiter, part, need])
    connection.run(INSERT_LINKS, JSON.stringify(rows))
  },
  hasLinkNews: ({ connection }: At) => connection.get(HAS_NEWS) !== undefined,
  linkNews: ({ connection }: At, limit: number) => connection.all<LinkNews>(SELECT_NEWS, limit),
  lookAtLinks: ({ connection }: At, waiters: readonly string[]) =>
    connection.all<LookRow>(LOOK, JSON.stringify(waiters)),
  examineLinks({ connection }: At, news: readonly LinkNews[]) {
    for (const { awaited, waiter, part, state } of news) {
      connection.run(EXAMINE, awaited, waiter, part, state)
    }
  },
  createFacts: ({ connection }: At, ids: readonly string[]) =>
    connection
      .all<FactRow & { job_id: string }>(SELECT_CREATED, JSON.stringify(ids))
      .map((row) => toFact(row.job_id, row)),
  childEnds: ({ connection }: At, parent: string, ids: readonly string[]) =>
    connection.all<ChildEnd>(SELECT_ENDS, JSON.stringify(ids), parent),
  seenFlow: ({ connection }: At, id: string) =>
    connection.get<SeenFlowRow>(`${SEEN} WHERE flow.id = ?`, id),
  seenFlows({ connection }: At, { state, kind, key, below, limit }: FlowQuery) {
    const conditions: [string, Value | undefined][] = [
      ['id < ?', below],
      ['kind = ?', kind],
      ['key = ?', key],
    ]
    const given = conditions.filter(([, value]) => value !== undefined)
    const all = [...given.map(([text]) => text), ...(state === undefined ? [] : [STATES[state]])]
    const where = all.length === 0 ? '' : `WHERE ${all.join(' AND ')}`
    const values = given.map(([, value]) => value as Value)
    const sql = `SELECT * FROM (${SEEN}) ${where} ORDER BY id DESC LIMIT ?`
    return connection.all<SeenFlowRow>(sql, ...values, limit)
  },
  flowCounts: ({ connection }: At, id: string, callbacks: number) =>
    ({ ...connection.get<FlowCounts>(COUNT, id, callbacks) }) as FlowCounts,
  nodeIds: ({ connection }: At, flow: string, after: number, limit: number) =>
    connection.all<{ id: string; node: number }>(SELECT_NODES, flow, after, limit),
  factsUntil: ({ connection }: At, ids: readonly string[], at: number) =>
    [...connection.all<FactRow & { job_id: string }>(SELECT_FACTS, JSON.stringify(ids), at)].sort(
      (a, b) => a.seq - b.seq,
    ),
  linksOfWaiter: ({ connection }: At, waiter: string) =>
    connection.all<LinkEnd>(SELECT_OF_WAITER, waiter),
  openLinks: ({ connection }: At, id: string, side: 'waiter' | 'awaited', limit: number) =>
    connection.all<{ id: string }>(SELECT_OPEN[side], id, limit).map((row) => row.id),
  results: ({ connection }: At, ids: readonly string[]) =>
    connection.all<ResultRow>(SELECT_RESULTS, JSON.stringify(ids)),
}
