/**
 * Facts of all jobs, by filter, in the order of the ledger: transaction, job, number. As for
 * `tail`, only facts of transactions that began before every open one: no fact can appear later at
 * a position that was already read.
 *
 * The index by transactions is a coarse one and cannot return rows in order, so a window is a range
 * of transactions. Its width follows from the number of facts in the last one: it grows if there
 * are few, and shrinks if there are many, down to one transaction.
 */
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
import type { Value } from '../rows.ts'
import { type Session, type Statement, statement } from './connect.ts'
import { isUuid } from './context.ts'
import { firstOpen, NO_JOB } from './query.ts'

const wordsOf = (s: string): AuditWords => ({
  contains: (text, part) => `strpos(${text}, ${part}) > 0`,
  ledger: `${s}.ledger`,
})

/** How many transactions the first window has. */
const WIDTH = 32
const GROWTH = 4

/** A window may be that much denser than the last one; more facts than this are not counted. */
const DENSER = 16

/**
 * Bounded: after transactions without facts, a wide window can reach into ones with millions, and
 * an unbounded count would read all of them.
 */
const COUNT = statement(
  (s) => `
  SELECT count(*) AS seen FROM (
    SELECT 1 FROM ${s}.ledger WHERE tx >= $1 AND tx < $2 LIMIT $3) AS bounded`,
)

type Position = readonly [tx: number, job: string, seq: number]

function parsePosition(text: string): Position {
  const [tx, job = NO_JOB, seq] = text.split('.')
  return [Number(tx), job, Number(seq)]
}

/** Returns a page of facts; one that takes too long ends early, with a cursor to go on from. */
export async function audit(
  session: Session,
  filter: AuditFilter,
  options: AuditOptions,
  expired: () => boolean,
): Promise<Page<AuditEntry>> {
  const page = new AuditPage(filter, options)
  if (page.isFull) return page.end()
  if (filter.jobId !== undefined) return auditJob(session, page, filter, options)
  const isNewest = options.order === 'newest'
  const open = await firstOpen(session)
  let cursor: Position = isNewest ? [open, NO_JOB, 0] : [0, NO_JOB, 0]
  if (options.after !== undefined) cursor = parsePosition(options.after)
  const [select, values] = selectIn(filter, options, page.chunk)
  for (let width = WIDTH; ; ) {
    const [tx, job] = cursor
    const low = isNewest ? Math.max(0, highOf(tx, job, open) - width) : tx
    const high = isNewest ? highOf(tx, job, open) : Math.min(open, tx + width)
    if (low >= high) return page.end()
    const most = DENSER * GROWTH * page.chunk
    const [counted] = await session.query<{ seen: number }>(COUNT, [low, high, most])
    const seen = counted?.seen ?? 0
    if (seen > GROWTH * page.chunk && high - low > 1) {
      width = Math.max(1, Math.floor(((high - low) * page.chunk) / seen))
      continue
    }
    const rows =
      seen === 0 ? [] : await session.query<AuditRow>(select, [...values, low, high, ...cursor])
    const full = page.take(rows)
    if (full !== undefined) return full
    const isThrough = rows.length < page.chunk
    cursor = isThrough ? [isNewest ? low : high, NO_JOB, 0] : positionOf(rows)
    if (expired()) return page.end(cursor.join('.'))
    if (seen < page.chunk / GROWTH) width *= GROWTH
  }
}

/** The first transaction after those of a window that goes back from a position. */
function highOf(tx: number, job: string, open: number): number {
  return Math.min(open, job === NO_JOB ? tx : tx + 1)
}

function positionOf(rows: readonly AuditRow[]): Position {
  return parsePosition((rows[rows.length - 1] as AuditRow).position)
}

/** The facts of one job are few, and found by its id; their numbers are in the ledger's order. */
async function auditJob(
  session: Session,
  page: AuditPage,
  filter: AuditFilter,
  options: AuditOptions,
): Promise<Page<AuditEntry>> {
  if (!isUuid(filter.jobId)) return page.end()
  const [select, values] = selectIn(filter, options, page.chunk)
  const isNewest = options.order === 'newest'
  let cursor: Position = isNewest ? [Number.MAX_SAFE_INTEGER, NO_JOB, 0] : [0, NO_JOB, 0]
  if (options.after !== undefined) cursor = parsePosition(options.after)
  for (;;) {
    const rows = await session.query<AuditRow>(select, [...values, filter.jobId, ...cursor])
    const full = page.take(rows)
    if (full !== undefined || rows.length < page.chunk) return full ?? page.end()
    cursor = positionOf(rows)
  }
}

/** The facts after a position: of one job, or of a range of transactions. */
function selectIn(
  filter: AuditFilter,
  options: AuditOptions,
  limit: number,
): [Statement, readonly Value[]] {
  const values = conditionsOf(filter, wordsOf('')).map(([, value]) => value)
  const [beyond, sort] = options.order === 'newest' ? ['<', 'DESC'] : ['>', 'ASC']
  let next = values.length
  const nextValue = (type: string) => `$${++next}::${type}`
  const range =
    filter.jobId === undefined
      ? `l.tx >= ${nextValue('bigint')} AND l.tx < ${nextValue('bigint')}`
      : `l.job = ${nextValue('uuid')}`
  const start = `(${nextValue('bigint')}, ${nextValue('uuid')}, ${nextValue('int')})`
  const order =
    filter.jobId === undefined ? `l.tx ${sort}, l.job ${sort}, l.seq ${sort}` : `l.seq ${sort}`
  const select = statement((s) => {
    const where = conditionsOf(filter, wordsOf(s)).map(
      ([condition], i) => `AND ${condition.replace('?', `$${i + 1}`)}`,
    )
    return `
    SELECT ${columnsOf(options)}, l.tx || '.' || l.job || '.' || l.seq AS position, l.job AS job_id
    FROM ${s}.ledger AS l
    WHERE ${range} AND (l.tx, l.job, l.seq) ${beyond} ${start} ${where.join(' ')}
    ORDER BY ${order} LIMIT ${limit}`
  })
  return [select, values]
}
