/** Facts of all jobs, by filter, in the order of the ledger: `pos`, the order of commits. */
import {
  type AuditEntry,
  type AuditFilter,
  type AuditOptions,
  AuditPage,
  type AuditRow,
  type AuditWords,
  columnsOf,
  conditionsOf,
} from '../audit.ts'
import type { Page } from '../contract/store.ts'
import type { Connection } from './connect.ts'

const WORDS: AuditWords = {
  contains: (text, part) => `instr(${text}, ${part}) > 0`,
  ledger: 'pawl_ledger',
}

const DIRECTIONS = {
  oldest: { start: 0, beyond: '>', within: '<=', sort: 'ASC', last: 'max' },
  newest: { start: Number.MAX_SAFE_INTEGER, beyond: '<', within: '>=', sort: 'DESC', last: 'min' },
} as const

/** Returns a page of facts; one that takes too long ends early, with a cursor to go on from. */
export function audit(
  connection: Connection,
  filter: AuditFilter,
  options: AuditOptions,
  expired: () => boolean,
): Page<AuditEntry> {
  const page = new AuditPage(filter, options)
  if (page.isFull) return page.end()
  const { start, beyond, within, sort, last } = DIRECTIONS[options.order ?? 'oldest']
  const conditions = conditionsOf(filter, WORDS)
  const values = conditions.map(([, value]) => value)
  const where = conditions.map(([condition]) => `AND ${condition}`).join(' ')
  const select = `
    SELECT ${columnsOf(options)}, CAST(l.pos AS TEXT) AS position, pawl_jobs.id AS job_id
    FROM pawl_ledger AS l LEFT JOIN pawl_jobs ON pawl_jobs.rid = l.job`
  let cursor = options.after === undefined ? start : Number(options.after)

  if (filter.jobId !== undefined) {
    // By the index of jobs: the facts of one job are few, and in the order of the ledger.
    const ofJob = `${select} WHERE l.job = (SELECT rid FROM pawl_jobs WHERE id = ?)
      AND +l.pos ${beyond} ? ${where} ORDER BY l.seq ${sort} LIMIT ${page.chunk}`
    for (;;) {
      const rows = connection.all<AuditRow>(ofJob, filter.jobId, cursor, ...values)
      const full = page.take(rows)
      if (full !== undefined || rows.length < page.chunk) return full ?? page.end()
      cursor = Number(rows[rows.length - 1]?.position)
    }
  }

  const window = `
    SELECT ${last}(pos) AS end, count(*) AS seen
    FROM (SELECT pos FROM pawl_ledger WHERE pos ${beyond} ? ORDER BY pos ${sort}
      LIMIT ${page.chunk})`
  const inWindow = `${select} WHERE l.pos ${beyond} ? AND l.pos ${within} ? ${where}
    ORDER BY l.pos ${sort}`
  for (;;) {
    const { end, seen } = connection.get(window, cursor) as { end: number | null; seen: number }
    if (end === null) return page.end()
    const full = page.take(connection.all<AuditRow>(inWindow, cursor, end, ...values))
    if (full !== undefined || seen < page.chunk) return full ?? page.end()
    cursor = end
    if (expired()) return page.end(String(cursor))
  }
}
