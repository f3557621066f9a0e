/**
 * Examines links that have changed: releases, parks or ends waiters, and cancels children of ended
 * parents.
 *
 * The transaction that ends an awaited job marks its links, and does not touch the waiter: 10,000
 * members of a batch would otherwise queue for the row of their callback. A waiter with open links
 * is left alone; only the last arrival needs its lock. Two last arrivals cannot miss each other:
 * each is marked before it is looked at, so the later look sees both
 * (`test/interleavings/postgres-links.test.ts`). If a process dies before this verb, its marks
 * stay, and another process finds them.
 *
 * Locks are taken in the order links, flows, jobs.
 */
import type { Job } from '../../core/job/job.ts'
import { isWaiter, LINKS, type Look, PARENT_ENDED } from '../../core/job/links.ts'
import { ENGINE } from '../contract/requester.ts'
import type { Answer } from '../contract/store.ts'
import { LINK_STATES, type LinkNews, type LookRow } from '../link-rows.ts'
import { Changes } from './changes.ts'
import type { Tx, Verb } from './operations.ts'
import type { Read } from './reading.ts'

/** What one call has done. */
export interface Woken {
  /** At how many links it has looked. */
  readonly looked: number
  readonly answers: readonly Answer[]
}

/** Examines up to `limit` links. */
export function* wake(tx: Tx, limit: number): Verb<Woken> {
  const news = yield* tx.linkNews(limit)
  if (news.length === 0) return { looked: 0, answers: [] }
  const orphans = idsOf(news.filter(isOrphan), ({ awaited }) => awaited)
  const arrivals = news.filter((one) => !isOrphan(one) && mayWait(one))
  const waiters = idsOf(arrivals, ({ waiter }) => waiter)
  const looks = waiters.length === 0 ? [] : yield* tx.lookAtLinks(waiters)
  const reopened = new Set(arrivals.filter(isReopened).map(({ waiter }) => waiter))
  const decidable = looks.filter((row) => isDecidable(row) || reopened.has(row.waiter))
  const answers = yield* settleWaiters(tx, {
    waiters: decidable.map(({ waiter }) => waiter),
    flows: flowsOf(arrivals),
    orphans,
  })
  yield* tx.examineLinks(news)
  return { looked: news.length, answers }
}

function idsOf(news: readonly LinkNews[], id: (one: LinkNews) => string): string[] {
  return [...new Set(news.map(id))]
}

function isOrphan({ state }: LinkNews): boolean {
  return state === LINK_STATES.orphaned
}

function isReopened({ state }: LinkNews): boolean {
  return state === LINK_STATES.reopened
}

/** Whether the waiter may still wait, by its row as it was read without a lock. */
function mayWait({ waiter_links: links }: LinkNews): boolean {
  return isWaiter({ links: links ?? 0 })
}

function isDecidable({ open, failed, hit }: LookRow): boolean {
  return open === null || failed !== null || hit !== null
}

/** The batches whose callbacks are among the waiters. */
function flowsOf(news: readonly LinkNews[]): string[] {
  const flows = news.flatMap(({ waiter_links, waiter_flow }) =>
    (waiter_links ?? 0) & LINKS.members && waiter_flow !== null ? [waiter_flow] : [],
  )
  return [...new Set(flows)]
}

interface Settling {
  readonly waiters: readonly string[]
  /** The batches of callbacks among them. */
  readonly flows: readonly string[]
  /** Children whose parent has ended. */
  readonly orphans: readonly string[]
}

/** Locks jobs, looks at their links in a later statement, decides and writes. */
export function* settleWaiters(
  tx: Tx,
  { waiters, flows, orphans }: Settling,
): Verb<readonly Answer[]> {
  if (waiters.length === 0 && orphans.length === 0) return []
  // A batch cannot be closed between this look and the commit.
  const open = flows.length === 0 ? new Set<string>() : yield* openFlows(tx, flows)
  const { reads } = yield* tx.lockJobs([...waiters, ...orphans])
  const looks = waiters.length === 0 ? [] : yield* tx.lookAtLinks(waiters)
  const changes = new Changes(tx)
  const cancelled = yield* cancelOrphans(tx, changes, readsOf(reads, orphans))
  const answers = looks.flatMap((row): Answer[] => {
    const read = reads.get(row.waiter)
    if (read === undefined || !isWaiter(read.job)) return []
    const look = lookOf(row, isOpenIn(open, read.job))
    return [changes.answer(read, { kind: 'arrive', look }, ENGINE)]
  })
  yield* tx.write(changes)
  return [...cancelled, ...answers].filter(({ kind }) => kind === 'done' || kind === 'asked')
}

function* openFlows(tx: Tx, ids: readonly string[]): Verb<Set<string>> {
  const rows = yield* tx.lockFlows(ids, 'share')
  return new Set(rows.flatMap(({ id, open }) => (open === 1 ? [id] : [])))
}

/** Whether members can still be added to the batch of a callback. */
export function isOpenIn(open: ReadonlySet<string>, { links, flow }: Job): boolean {
  return (links & LINKS.members) !== 0 && flow !== null && open.has(flow)
}

/** What the decider is told. */
function lookOf({ open, failed, hit }: LookRow, isOpenBatch: boolean): Look {
  return {
    open: open !== null || isOpenBatch,
    ...(failed !== null && { failed }),
    ...(hit !== null && { hit }),
  }
}

function readsOf(reads: ReadonlyMap<string, Read>, ids: readonly string[]): Read[] {
  return ids.flatMap((id) => reads.get(id) ?? [])
}

/** Children that are held are asked, as by `cancel`; those that have ended are left alone. */
function* cancelOrphans(
  tx: Tx,
  changes: Changes,
  orphans: readonly Read[],
): Verb<readonly Answer[]> {
  const live = orphans.filter(({ job }) => job.outcome === null)
  if (live.length === 0) return []
  const asked = yield* tx.askHolders(live)
  return live.map((read): Answer => {
    if (asked.has(read.job.id)) return { kind: 'asked', job: read.job }
    return changes.answer(read, { kind: 'cancel', reason: PARENT_ENDED }, ENGINE)
  })
}
