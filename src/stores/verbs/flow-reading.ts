/** What is read of flows: nodes at a moment, and how dependencies ended. */
import { fold } from '../../core/job/evolve.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import type { AfterEnds, DependencyEnd, FlowNodeInfo } from '../contract/flows.ts'
import type { Page, Store } from '../contract/store.ts'
import { toFact } from '../rows.ts'
import type { ChildEnd } from './invoke.ts'
import type { TableAccess } from './run-tables.ts'

/** How many jobs are read at once. */
const CHUNK = 1000

/** Reads of flows, over the tables of a store. */
export class FlowReading {
  readonly #access: TableAccess
  readonly #store: Pick<Store, 'getMany' | 'asOf' | 'now'>

  constructor(access: TableAccess, store: Pick<Store, 'getMany' | 'asOf' | 'now'>) {
    this.#access = access
    this.#store = store
  }

  /** Nodes with a number above `after`, by number, as they are or as they were. */
  async nodes(
    flow: string,
    after: number,
    limit: number,
    at: number | undefined,
  ): Promise<Page<FlowNodeInfo>> {
    const found = await this.#access.look((tx) => tx.nodeIds(flow, after, limit))
    const ids = found.map(({ id }) => id)
    const until = at ?? Number.MAX_SAFE_INTEGER
    const rows = ids.length === 0 ? [] : await this.#access.look((tx) => tx.factsUntil(ids, until))
    const facts = new Map<string, Fact[]>(ids.map((id) => [id, []]))
    for (const row of rows) facts.get(row.job_id)?.push(toFact(row.job_id, row))
    const jobs = at === undefined ? await this.#byId(ids) : undefined
    const items = found.flatMap(({ id, node }): FlowNodeInfo[] => {
      const own = facts.get(id) as Fact[]
      const job = jobs === undefined ? fold(own) : jobs.get(id)
      return job === undefined || job === null ? [] : [nodeOf(node, job, own)]
    })
    const last = found[found.length - 1]
    return found.length === limit && last !== undefined
      ? { items, next: String(last.node) }
      : { items }
  }

  /** How the dependencies of a job ended, by group. */
  async after(id: string): Promise<AfterEnds[]> {
    const [created] = await this.#access.look((tx) => tx.createFacts([id]))
    if (created?.after === undefined) return []
    const links = await this.#access.look((tx) => tx.linksOfWaiter(id))
    const raw = links.map(({ awaited, seq }) => ({ id: awaited, seq, outcome: null }))
    const found = await this.ends(raw)
    const jobs = await this.#byId(raw.map((one) => one.id))
    const order = (end: DependencyEnd) => jobs.get(end.id)?.node ?? 0
    return created.after.groups.map(({ name, need, list }, part) => {
      const ends = found.filter((_, i) => links[i]?.part === part)
      return { name, need, list, ends: ends.sort((a, b) => order(a) - order(b)) }
    })
  }

  /** Jobs as they were when they ended, with their results. */
  async ends(raw: readonly ChildEnd[]): Promise<DependencyEnd[]> {
    const ids = raw.map(({ id }) => id)
    const jobs = await this.#byId(ids)
    const results = await this.#results(ids)
    const ends: DependencyEnd[] = []
    for (const { id, seq } of raw) {
      const now = jobs.get(id)
      const isLater = seq !== null && now !== undefined && now.seq !== seq
      ends.push(endOf(id, seq, isLater ? await this.#store.asOf(id, seq) : now, results.get(id)))
    }
    return ends
  }

  async #byId(ids: readonly string[]): Promise<Map<string, Job>> {
    const jobs = new Map<string, Job>()
    for (const chunk of chunksOf(ids)) {
      for (const job of await this.#store.getMany(chunk)) jobs.set(job.id, job)
    }
    return jobs
  }

  async #results(ids: readonly string[]): Promise<Map<string, string>> {
    const results = new Map<string, string>()
    for (const chunk of chunksOf(ids)) {
      const rows = await this.#access.look((tx) => tx.results(chunk))
      for (const { id, payload } of rows) if (payload !== null) results.set(id, payload)
    }
    return results
  }
}

function chunksOf(ids: readonly string[]): readonly string[][] {
  const chunks: string[][] = []
  for (let from = 0; from < ids.length; from += CHUNK) chunks.push(ids.slice(from, from + CHUNK))
  return chunks
}

/** A job that is not there any more has no outcome. */
function endOf(
  id: string,
  seq: number | null,
  job: Job | undefined,
  result: string | undefined,
): DependencyEnd {
  const outcome = job?.outcome ?? null
  return {
    id,
    type: job?.type ?? '',
    outcome,
    seq: outcome === null ? null : seq,
    ...(outcome === 'succeeded' && result !== undefined && { result }),
    error: job?.error ?? null,
    reason: job?.reason ?? null,
  }
}

function nodeOf(n: number, job: Job, facts: readonly Fact[]): FlowNodeInfo {
  const [created] = facts
  const released = created?.after === undefined ? created : facts.find(isRelease)
  return {
    n,
    job,
    after: created?.after?.groups ?? [],
    onFailure: created?.after?.onFailure ?? 'park',
    ...(created?.as !== undefined && { as: created.as }),
    ...(released !== undefined && { releasedAt: released.at }),
  }
}

/** The first arrival after which the job does not wait. */
function isRelease({ trigger, links, outcome }: Fact): boolean {
  return trigger === 'arrive' && links !== undefined && outcome === undefined
}
