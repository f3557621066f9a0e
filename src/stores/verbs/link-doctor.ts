/**
 * How the doctor compares the links of waiters with their facts and with the jobs that they wait
 * for. All rows of links follow from facts, so a repair writes those of a waiter as they should be,
 * and then decides about the waiter as an arrival would.
 */
import type { Fact } from '../../core/job/facts.ts'
import { LINKS, nodesOf } from '../../core/job/links.ts'
import type { Outcome } from '../../core/lifecycles/lifecycle.ts'
import type { LinkFault } from '../contract/flows.ts'
import type { Answer } from '../contract/store.ts'
import { invokedId, nodeId } from '../derived-ids.ts'
import { endedState, LINK_STATES, type LookRow, NEEDS, type NewLink, needOf } from '../link-rows.ts'
import { toFact } from '../rows.ts'
import type { Tx, Verb } from './operations.ts'
import { settleWaiters } from './wake.ts'

/** A link as its row has it. */
export interface LinkRow extends NewLink {
  readonly state: number
  readonly seq: number | null
}

/** A job that others wait for: how it has ended, and the number of its last fact. */
export interface AwaitedEnd {
  readonly id: string
  readonly outcome: Outcome | null
  readonly seq: number
}

/** A job that waits for others, as its row has it. */
export interface WaiterRow {
  readonly id: string
  readonly flow: string | null
  readonly links: number
  readonly attempt: number
  readonly blocked_reason: string | null
}

/** The operations of these verbs. */
export interface LinkDoctorOperations {
  /** Jobs that have not ended and wait for others, by id, after one; or only those of a list. */
  waiterRows(after: string, limit: number, only?: readonly string[]): readonly WaiterRow[]
  linkRows(waiters: readonly string[]): readonly LinkRow[]
  awaitedEnds(ids: readonly string[]): readonly AwaitedEnd[]
  /** Those of these jobs that were ever redriven. */
  redriven(ids: readonly string[]): readonly string[]
  /** Inserts links, or writes over them; removes the other links of the waiter. */
  replaceLinks(waiter: string, links: readonly LinkRow[]): void
}

const PAGE = 200
const NODES = 1_000_000

/** Looks at every waiter, or at some. */
export function* examineWaiters(
  tx: Tx,
  limit: number,
  only?: readonly string[],
): Verb<LinkFault[]> {
  const found: LinkFault[] = []
  for (let after = ''; found.length < limit; ) {
    const rows = yield* tx.waiterRows(after, PAGE, only)
    for (const row of rows) {
      after = row.id
      const what = yield* faultOf(tx, row)
      if (what !== undefined) found.push({ waiter: row.id, ...what })
    }
    if (rows.length < PAGE) break
  }
  return found.slice(0, limit)
}

type What = Omit<LinkFault, 'waiter'>

function* faultOf(tx: Tx, row: WaiterRow): Verb<What | undefined> {
  const expected = yield* expectedLinks(tx, row)
  if (expected === undefined) return { what: 'no fact says what it waits for', isLost: true }
  const rows = yield* tx.linkRows([row.id])
  const byId = yield* awaitedJobs(tx, expected)
  const lost = expected.find(({ awaited }) => !byId.has(awaited))
  if (lost !== undefined) return { what: `job ${lost.awaited} is missing`, isLost: true }
  const known = new Map(rows.map((link) => [keyOf(link), link]))
  const right = expected.map((link) => rightLink(link, known.get(keyOf(link)), byId))
  const wrong = right.filter((link) => known.get(keyOf(link)) !== link).length
  const missing = expected.filter((link) => !known.has(keyOf(link))).length
  if (missing > 0) return { what: `${missing} of its ${expected.length} links are missing` }
  if (rows.length > expected.length) return { what: 'it has links that no fact has made' }
  if (wrong > 0) return { what: `${wrong} of its links are not as the jobs are` }
  return (yield* isStuck(tx, row, rows))
    ? { what: 'nothing is left that would release it' }
    : undefined
}

function keyOf({ awaited, waiter, part }: NewLink): string {
  return `${awaited}/${waiter}/${part}`
}

/** Whether all links were examined, and nothing that is still to come decides about the waiter. */
function* isStuck(tx: Tx, row: WaiterRow, rows: readonly LinkRow[]): Verb<boolean> {
  if (rows.some(({ state }) => NEWS.includes(state))) return false
  const [look] = yield* tx.lookAtLinks([row.id])
  const { open, failed, hit } = look as LookRow
  if (failed !== null) return row.blocked_reason === null && open === null
  if (row.blocked_reason !== null) return false
  if (open !== null && hit === null) return false
  if ((row.links & LINKS.members) === 0 || hit !== null) return true
  const [flow] = yield* tx.flowRows([row.flow ?? ''])
  return flow?.open !== 1
}

const { arrivedNew, failedNew, orphaned, reopened } = LINK_STATES
const NEWS: readonly number[] = [arrivedNew, failedNew, orphaned, reopened]

/** The links that facts say the waiter has; `undefined` if they do not say it. */
function* expectedLinks(tx: Tx, row: WaiterRow): Verb<NewLink[] | undefined> {
  if (row.attempt > 0) {
    const facts = (yield* tx.waitFacts([row.id])).map((fact) => toFact(row.id, fact))
    return childLinks(row.id, facts)
  }
  const [created] = yield* tx.createFacts([row.id])
  if (created?.after === undefined || row.flow === null) return undefined
  const { flow } = row
  const members = (row.links & LINKS.members) === 0 ? [] : yield* membersOf(tx, flow)
  return created.after.groups.flatMap(({ of, need }, part) => {
    const ids =
      of === 'members'
        ? members
        : [...new Set(nodesOf(of))].map((n) => nodeId(flow, n, created.as ?? 'node'))
    return ids.map((awaited) => ({ awaited, waiter: row.id, part, need: needOf(need) }))
  })
}

/** The members of a batch: its nodes after the callbacks. */
function* membersOf(tx: Tx, flow: string): Verb<string[]> {
  const [row] = yield* tx.flowRows([flow])
  const nodes = yield* tx.nodeIds(flow, (row?.callbacks ?? 0) - 1, NODES)
  return nodes.map(({ id }) => id)
}

/** The children of the last wait for children. */
function childLinks(waiter: string, facts: readonly Fact[]): NewLink[] | undefined {
  const wait = facts.findLast((fact) => fact.wait?.for === 'children')?.wait
  if (wait === undefined) return undefined
  const need = wait.abandons ? NEEDS.end : NEEDS.owned
  return Array.from({ length: wait.children ?? 0 }, (_, i) => ({
    awaited: invokedId(waiter, wait.name, wait.n, i),
    waiter,
    part: 0,
    need,
  }))
}

/** A job that others wait for. */
interface AwaitedJob extends Omit<AwaitedEnd, 'id'> {
  readonly isRedriven: boolean
}

const MISSING: AwaitedJob = { outcome: null, seq: 0, isRedriven: false }

function* awaitedJobs(tx: Tx, links: readonly NewLink[]): Verb<ReadonlyMap<string, AwaitedJob>> {
  const ids = links.map(({ awaited }) => awaited)
  const redriven = new Set(yield* tx.redriven(ids))
  const ends = yield* tx.awaitedEnds(ids)
  return new Map(ends.map((end) => [end.id, { ...end, isRedriven: redriven.has(end.id) }]))
}

/** The link as it should be: as it is if that agrees with the awaited job. */
function rightLink(
  link: NewLink,
  row: LinkRow | undefined,
  jobs: ReadonlyMap<string, AwaitedJob>,
): LinkRow {
  const job = jobs.get(link.awaited) ?? MISSING
  const { outcome, seq } = job
  if (row !== undefined && isRight(row, job)) return row
  const state = outcome === null ? LINK_STATES.open : endedState(link.need, outcome)
  return { ...link, state, seq: outcome === null ? null : seq }
}

const OPEN: readonly number[] = [LINK_STATES.open, reopened, orphaned]
const ARRIVED: readonly number[] = [arrivedNew, LINK_STATES.arrived]
const FAILED: readonly number[] = [failedNew, LINK_STATES.failed]

/** An end, or a failure, counts once: a redrive does not take it back. */
function isRight({ need, state, seq }: LinkRow, { outcome, isRedriven }: AwaitedJob): boolean {
  if ((seq === null) !== OPEN.includes(state)) return false
  if (isRedriven && need !== NEEDS.success && ARRIVED.includes(state)) return true
  if (outcome === null) return OPEN.includes(state)
  const isArrival = endedState(need, outcome) === arrivedNew
  return (isArrival ? ARRIVED : FAILED).includes(state)
}

/** Writes the links of waiters as they should be, and decides about the waiters. */
export function* relink(tx: Tx, waiters: readonly string[]): Verb<readonly Answer[]> {
  const rows = yield* tx.waiterRows('', waiters.length, waiters)
  const flows = rows.flatMap(({ flow, links }) => (links & LINKS.members && flow ? [flow] : []))
  yield* tx.lockFlows(flows, 'share')
  yield* tx.lockJobs(waiters)
  for (const row of rows) {
    const expected = yield* expectedLinks(tx, row)
    if (expected === undefined) continue
    const byId = yield* awaitedJobs(tx, expected)
    const known = new Map((yield* tx.linkRows([row.id])).map((link) => [keyOf(link), link]))
    const right = expected.map((link) => rightLink(link, known.get(keyOf(link)), byId))
    yield* tx.replaceLinks(row.id, right)
  }
  return yield* settleWaiters(tx, { waiters, flows, orphans: [] })
}
