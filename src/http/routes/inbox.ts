/**
 * The inbox: jobs that wait for a signal, which mostly means for a person. Jobs that only sleep are
 * not part of it.
 */
import type { Job } from '../../core/job/job.ts'
import type { Lane } from '../../core/job/lanes.ts'
import { approval } from '../../engine/approvals.ts'
import { READ, type Route, type RouteCall } from '../route.ts'
import { anything, count, flag, list, name, nullable, record, ref, text, time } from '../schema.ts'
import { currentWait, schemaOf } from '../waits.ts'

const SHOWN_MAX = 200
const SHOWN_DEFAULT = 50
/** A page of a list takes up to 40 ms if few jobs match, so a request reads a bounded number. */
const PAGES_MAX = 25
const PAGE = 1000
/** A wait without a time-out is in the first, one with a time-out in the second. */
const LANES: readonly Lane[] = ['idle', 'waiting']

interface Asking {
  readonly jobs: readonly Job[]
  readonly more: boolean
}

async function askingIn(call: RouteCall, lane: Lane): Promise<Asking> {
  const { waitsFor, type } = call.query
  const named = waitsFor === undefined ? { waitsForSignal: true as const } : { waitsFor }
  const filter = { lane, ...named, ...(type !== undefined && { type }) }
  const jobs: Job[] = []
  let after: string | undefined
  for (let page = 0; page < PAGES_MAX; page++) {
    const options = { limit: PAGE, ...(after !== undefined && { after }) }
    const found = await call.pawl.store.list(filter, options)
    jobs.push(...found.items)
    after = found.next
    if (after === undefined) return { jobs, more: false }
  }
  return { jobs, more: true }
}

async function showInbox(call: RouteCall): Promise<unknown> {
  const { limit = SHOWN_DEFAULT } = call.query
  const found: Asking[] = []
  for (const lane of LANES) found.push(await askingIn(call, lane))
  const jobs = found.flatMap((one) => one.jobs).sort((a, b) => a.updatedAt - b.updatedAt)
  const items: unknown[] = []
  for (const job of jobs.slice(0, limit)) items.push(...(await itemOf(call, job)))
  const more = jobs.length > limit || found.some((one) => one.more)
  return { items, total: jobs.length, more }
}

/** A job that was woken since the list was read is left out. */
async function itemOf({ pawl, payloads }: RouteCall, job: Job): Promise<unknown[]> {
  const { id, type, queue, key, tags, updatedAt } = job
  const history = await pawl.store.waits.history(id)
  const wait = currentWait(pawl.internals.lifecycles, job, history)
  if (wait?.for !== 'signal') return []
  const texts = await pawl.store.payloads(id)
  const { name: signal, n, until } = wait
  return [
    {
      job: { id, type, queue, key, tags },
      signal,
      n,
      isApproval: signal === approval.name,
      since: updatedAt,
      until,
      schema: schemaOf(pawl, type, signal) ?? null,
      input: texts?.input === undefined ? null : payloads.view(texts.input),
    },
  ]
}

const ITEM = record({
  job: record({
    id: text(),
    type: text(),
    queue: text(),
    key: nullable(text()),
    tags: list(text()),
  }),
  signal: text('the name of the signal that it waits for'),
  n: count('it is the n-th wait of this name', 1, Number.MAX_SAFE_INTEGER),
  isApproval: flag('whether `approve` and `reject` answer it'),
  since: time('since when it waits'),
  until: nullable(time('when the wait ends at the latest; null if it has no time-out')),
  schema: anything('a JSON Schema of the payload; null if none is known here'),
  input: nullable(ref('Payload')),
})

export const routes: readonly Route[] = [
  {
    method: 'GET',
    path: '/api/v1/inbox',
    operation: 'showInbox',
    summary: 'Lists jobs that wait for a signal or an approval, the longest wait first.',
    details:
      'If very many jobs are in the store, a request looks at a part of them, the newest, and ' +
      'says so with `more`. Payloads are shown without secrets.',
    roles: READ,
    query: {
      waitsFor: name('jobs that wait for a signal of this name'),
      type: name('jobs of this type'),
      limit: count(`how many entries; ${SHOWN_DEFAULT} if absent`, 1, SHOWN_MAX),
    },
    answer: record({
      items: list(ITEM),
      total: count('how many were found', 0, Number.MAX_SAFE_INTEGER),
      more: flag('whether there are more than are listed'),
    }),
    run: showInbox,
  },
]
