/** Jobs: lists, one job now and as it was, its facts, its payloads, and why it is not running. */
import { changesBetween } from '../../audit/diff.ts'
import { JobNotFound } from '../../core/errors.ts'
import { executionsOf } from '../../core/job/executions.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import { LANES, laneOf } from '../../core/job/lanes.ts'
import type { JobFilter, Store } from '../../stores/contract/store.ts'
import { OUTCOME_WORDS } from '../../stores/ends.ts'
import { RequestRefused } from '../errors.ts'
import { Reply } from '../exchange.ts'
import { PAGING, pageOf, READ, type Route, type RouteCall } from '../route.ts'
import {
  count,
  flag,
  type JsonSchema,
  list,
  name,
  note,
  nullable,
  oneOf,
  page,
  record,
  ref,
  text,
  time,
  whole,
} from '../schema.ts'

/** The conditions on jobs, with the names of the library. */
export const JOB_FILTER: Readonly<Record<string, JsonSchema>> = {
  state: name('jobs in this state'),
  lane: oneOf(Object.keys(LANES), 'jobs in this lane'),
  outcome: oneOf(OUTCOME_WORDS, 'jobs with this outcome, in any lifecycle'),
  stalled: flag('jobs whose lease has expired and whose recovery waits for an operator'),
  queue: name('jobs of this queue'),
  type: name('jobs of this type'),
  tag: name('jobs with this tag'),
  key: name('jobs with this key'),
  error: note('jobs whose last error has this text in its message, code or fingerprint'),
  waitsFor: name('jobs that wait for a signal of this name'),
  flow: name('jobs of this flow or batch, or invoked children of this job'),
  createdFrom: time('created at or after this time'),
  createdBefore: time('created before this time'),
}

const SEQ = count('the number of a fact', 1, Number.MAX_SAFE_INTEGER)
/** How many facts one answer has at most; the executions of a job are made of these. */
const FACTS_MAX = 1000

const DAMAGED = record({ id: text(), lane: text(), why: text() })

async function listJobs(call: RouteCall): Promise<unknown> {
  const { after: _, limit: __, ...filter } = call.query
  const found = await call.pawl.store.list(filter as JobFilter, pageOf(call))
  const damaged = (found.damaged ?? []).map(({ id, lane, why }) => ({ id, lane, why }))
  return { items: found.items, nextCursor: found.next ?? null, damaged }
}

async function findJob(store: Store, id: string): Promise<Job> {
  const job = await store.get(id)
  if (job === undefined) throw new JobNotFound(id)
  return job
}

/** The last facts of a job, in their order. */
async function lastFacts(store: Store, jobId: string): Promise<Fact[]> {
  const facts: Fact[] = []
  let after: string | undefined
  do {
    const options = { order: 'newest', limit: FACTS_MAX, ...(after && { after }) } as const
    const { items, next } = await store.audit({ jobId }, options)
    facts.unshift(...items.map(({ fact }) => fact).reverse())
    after = next
  } while (after !== undefined && facts.length < FACTS_MAX)
  return facts.slice(-FACTS_MAX)
}

async function showJob({ pawl, params, payloads }: RouteCall): Promise<unknown> {
  const { store } = pawl
  const { id = '' } = params
  const job = await findJob(store, id)
  const texts = await store.payloads(id)
  const progress = await store.progress(id)
  const view = (stored: string | undefined) => (stored === undefined ? null : payloads.view(stored))
  return {
    job,
    lane: laneIn(pawl, job),
    executions: executionsOf(await lastFacts(store, id)),
    explanation: await pawl.explain(id),
    input: view(texts?.input),
    result: view(texts?.result),
    progress: view(progress),
  }
}

/** Null if this process does not know the lifecycle. */
function laneIn({ internals, store }: RouteCall['pawl'], job: Job): string | null {
  const lifecycle = internals.lifecycles.find(
    (one) => one.name === job.lifecycle && one.version === job.lifecycleVersion,
  )
  return lifecycle === undefined ? null : laneOf(lifecycle, job, store.now())
}

async function jobFacts(call: RouteCall): Promise<unknown> {
  const { pawl, params, query, payloads } = call
  await findJob(pawl.store, params.id ?? '')
  const { order = 'oldest', payloads: isFull = false } = query
  const filter = { jobId: params.id as string }
  const found = await pawl.store.audit(filter, { ...pageOf(call), order, payloads: isFull })
  const items = found.items.map(({ pos, fact, payload }) => ({
    pos,
    fact,
    ...(isFull && { payload: typeof payload === 'string' ? payloads.view(payload) : null }),
  }))
  return { items, nextCursor: found.next ?? null, unreadable: found.unreadable ?? [] }
}

async function jobAt({ pawl, params }: RouteCall): Promise<unknown> {
  return { job: await pastJob(pawl.store, params.id ?? '', seqOf(params.seq)) }
}

function seqOf(given = ''): number {
  if (/^\d{1,15}$/.test(given) && Number(given) > 0) return Number(given)
  throw new RequestRefused(400, 'The number of the fact must be a whole number from 1')
}

async function pastJob(store: Store, id: string, seq: number): Promise<Job> {
  const last = (await findJob(store, id)).seq
  // Beyond its last fact, the store would return the job as it is now.
  const job = seq > last ? undefined : await store.asOf(id, seq)
  if (job !== undefined) return job
  throw new RequestRefused(404, `The job has no fact ${seq}; its last one has number ${last}`)
}

async function diffJob({ pawl, params, query }: RouteCall): Promise<unknown> {
  const { id = '' } = params
  const { seq } = await findJob(pawl.store, id)
  const { from = 1, to = seq } = query
  const before = from === 0 ? {} : await pastJob(pawl.store, id, from)
  const changes = changesBetween(before, await pastJob(pawl.store, id, to))
  return { id, from, to, changes }
}

async function explainJob({ pawl, params }: RouteCall): Promise<unknown> {
  return pawl.explain(params.id ?? '')
}

/** Downloads a payload: the whole text, without secrets. */
const download = (what: 'input' | 'result') => async (call: RouteCall) => {
  const { id = '' } = call.params
  await findJob(call.pawl.store, id)
  const stored = (await call.pawl.store.payloads(id))?.[what]
  if (stored === undefined) throw new RequestRefused(404, `The job has no ${what}`)
  return new Reply(call.payloads.whole(stored), {
    'content-type': 'application/json',
    'content-disposition': `attachment; filename="${what}-${id.replace(/[^\w-]/g, '_')}.json"`,
  })
}

const ROOT = '/api/v1/jobs'
const JOB = ref('Job')
const UNREADABLE = record({ pos: text(), jobId: text(), seq: whole(), unreadable: text() })
const MAYBE_PAYLOAD = nullable(ref('Payload'))

export const routes: readonly Route[] = [
  {
    method: 'GET',
    path: ROOT,
    operation: 'listJobs',
    summary: 'Lists jobs, newest first. A job must match all conditions.',
    roles: READ,
    query: { ...JOB_FILTER, ...PAGING },
    answer: page(JOB, { damaged: list(DAMAGED) }),
    run: listJobs,
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}`,
    operation: 'showJob',
    summary: 'Shows a job with its attempts, its payloads and why it is in its state.',
    details: 'Payloads are shown up to a length and without secrets.',
    roles: READ,
    errors: [404],
    answer: record({
      job: JOB,
      lane: nullable(ref('Lane')),
      executions: list(ref('Execution')),
      explanation: ref('Explanation'),
      input: MAYBE_PAYLOAD,
      result: MAYBE_PAYLOAD,
      progress: MAYBE_PAYLOAD,
    }),
    run: showJob,
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}/facts`,
    operation: 'listJobFacts',
    summary: 'Lists the facts of a job: each step, who caused it, and why.',
    roles: READ,
    query: {
      order: oneOf(['oldest', 'newest'], 'oldest if absent'),
      payloads: flag('also the payload beside each fact'),
      ...PAGING,
    },
    errors: [404],
    answer: page(
      record(
        { pos: text('its position in the ledger'), fact: ref('Fact') },
        {
          payload: MAYBE_PAYLOAD,
        },
      ),
      { unreadable: list(UNREADABLE) },
    ),
    run: jobFacts,
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}/at/{seq}`,
    operation: 'showJobAt',
    summary: 'Shows a job as it was after one of its facts.',
    roles: READ,
    errors: [404],
    answer: record({ job: JOB }),
    run: jobAt,
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}/diff`,
    operation: 'diffJob',
    summary: 'Compares two states of a job.',
    roles: READ,
    query: {
      from: count('after this fact; 1 if absent, 0 for before the first', 0, 2 ** 53 - 1),
      to: { ...SEQ, description: 'after this fact; the last one if absent' },
    },
    errors: [404],
    answer: record({ id: text(), from: whole(), to: whole(), changes: list(ref('Change')) }),
    run: diffJob,
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}/explain`,
    operation: 'explainJob',
    summary: 'Says why a job is not running, and which command would change that.',
    roles: READ,
    errors: [404],
    answer: ref('Explanation'),
    run: explainJob,
  },
  ...(['input', 'result'] as const).map(
    (what): Route => ({
      method: 'GET',
      path: `${ROOT}/{id}/${what}`,
      operation: what === 'input' ? 'downloadInput' : 'downloadResult',
      summary: `Downloads the ${what} of a job as JSON, without secrets.`,
      roles: READ,
      errors: [404],
      answer: { media: 'application/json', says: 'the JSON text of the payload' },
      run: download(what),
    }),
  ),
]
