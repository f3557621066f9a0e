/**
 * Commands of an operator on all jobs of a flow or batch. Each is a command on a selection of its
 * nodes, so its report counts jobs.
 */
import type { Job } from '../../core/job/job.ts'
import { DEPENDENCY_FAILED } from '../../core/job/links.ts'
import type { FlowInfo, FlowNodeInfo } from '../../stores/contract/flows.ts'
import type { Requester, Store } from '../../stores/contract/store.ts'
import { FlowNotFound } from '../../stores/errors.ts'
import { pagesOf } from '../pages.ts'
import type { OperatorOptions } from './operators.ts'
import { joinReports, type OperatorReport } from './report.ts'

export interface FlowCommand {
  readonly store: Store
  readonly requester: Requester
  readonly options: OperatorOptions
  /** Applies the command to jobs by their ids. */
  readonly act: (ids: readonly string[], options: OperatorOptions) => Promise<OperatorReport>
}

/** How many jobs a selection by ids may have. */
const IDS_MAX = 10_000
const PAGE = 1000

/**
 * Cancels all jobs of a flow that have not ended, dependents first, so that none of them is parked
 * because its dependency was cancelled. An open batch is closed after its callbacks are cancelled:
 * otherwise, the end of its last member would release them.
 */
export async function cancelFlow(command: FlowCommand, id: string): Promise<OperatorReport> {
  const { store, requester, options } = command
  const flow = await findFlow(store, id)
  const isLive = ({ job }: FlowNodeInfo) => job.outcome === null
  const first = await select(store, id, (node) => node.n < flow.callbacks && isLive(node))
  const reports = [await actOn(command, first)]
  if (flow.open && options.dryRun !== true) await store.flows.close(id, requester)
  const rest = await select(store, id, (node) => node.n >= flow.callbacks && isLive(node))
  reports.push(await actOn(command, rest.reverse()))
  return joinReports(reports)
}

/**
 * Redrives the jobs of a flow that have failed or are parked, each after what it waits for. Jobs
 * that are parked or ended because a dependency failed are left out: parked ones go on when it has
 * succeeded.
 */
export async function redriveFlow(command: FlowCommand, id: string): Promise<OperatorReport> {
  const { store } = command
  await findFlow(store, id)
  const parked = new Set<string>()
  const ask = (page: { limit: number; after?: string }) =>
    store.list({ flow: id, lane: 'parked' }, page)
  for await (const { items } of pagesOf(ask, { size: PAGE })) {
    for (const job of items) parked.add(job.id)
  }
  const isStopped = ({ job }: FlowNodeInfo) => parked.has(job.id) || job.outcome === 'failed'
  const chosen = await select(store, id, (node) => isStopped(node) && !isHeldUp(node.job))
  return actOn(command, chosen)
}

/** A failed dependency holds it up: redriving the dependency is what helps. */
function isHeldUp({ blockedReason, reason }: Job): boolean {
  return blockedReason === DEPENDENCY_FAILED || reason === DEPENDENCY_FAILED
}

async function findFlow(store: Store, id: string): Promise<FlowInfo> {
  const flow = await store.flows.get(id)
  if (flow === undefined) throw new FlowNotFound(id)
  return flow
}

async function select(
  store: Store,
  id: string,
  isWanted: (node: FlowNodeInfo) => boolean,
): Promise<string[]> {
  const ids: string[] = []
  const ask = (page: { limit: number; after?: string }) => store.flows.nodes(id, page)
  for await (const { items } of pagesOf(ask, { size: PAGE })) {
    for (const node of items) if (isWanted(node)) ids.push(node.job.id)
  }
  return ids
}

async function actOn(
  { act, options }: FlowCommand,
  ids: readonly string[],
): Promise<OperatorReport> {
  const reports: OperatorReport[] = []
  for (let at = 0; at < ids.length; at += IDS_MAX) {
    const before = reports.reduce((sum, { matched }) => sum + matched, 0)
    const onProgress = (jobs: number) => options.onProgress?.(before + jobs)
    reports.push(await act(ids.slice(at, at + IDS_MAX), { ...options, onProgress }))
  }
  return reports.length === 0 ? emptyReport(options) : joinReports(reports)
}

function emptyReport({ dryRun = false }: OperatorOptions): OperatorReport {
  const counts = { matched: 0, done: 0, same: 0, asked: 0, refused: 0 }
  return { dryRun, ...counts, refusals: [], sample: [], copies: [], more: false }
}
