/** What connects a job with others: its flow or parent, what it waits for, and its children. */
import type { ComponentChildren } from 'preact'
import type { Job } from '../../src/core/job/job.ts'
import { type Answer, call } from '../api/client.ts'
import { useView } from '../api/view.ts'
import { count } from '../format.ts'
import { jobTone } from '../machines.ts'
import { flowHref, hrefOf, jobHref } from '../router.ts'
import { Failure, Name, Panel } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'

type Linked = Answer<'showJobLinks'>
type Other = Linked['waitsFor'][number]

interface Shown {
  readonly links: Linked
  /** A job that this one waits for, one that that one waits for, and so on. */
  readonly chain: readonly Other[]
}

/** How far the chain of waits is followed. */
const CHAIN_MAX = 8
/** How many jobs are shown of each kind. */
const SHOWN = 6
/** The answer has at most so many. */
const ASKED = 20

async function load(id: string, signal: AbortSignal): Promise<Shown> {
  const links = await call('showJobLinks', { params: { id } }, signal)
  const chain: Other[] = []
  let [next] = links.waitsFor
  while (next !== undefined && chain.length < CHAIN_MAX) {
    chain.push(next)
    const further = await call('showJobLinks', { params: { id: next.id } }, signal)
    next = further.waitsFor[0]
  }
  return { links, chain }
}

/** Nothing for most jobs: they have no links. */
export function Links({ job }: { job: Job }) {
  return job.flow === null && job.links === 0 ? null : <Shown job={job} />
}

function Shown({ job }: { job: Job }) {
  const { data, error, reload } = useView(`${job.id} links`, (signal) => load(job.id, signal), {
    on: ({ jobId }) => jobId.startsWith(job.id.slice(0, 13)),
    everyMs: 5000,
  })
  if (data === undefined) return <Failure error={error} retry={reload} />
  const { links, chain } = data
  const { flow, parent, after, waitsFor, awaitedBy, children } = links
  return (
    <Panel title="What it belongs to">
      <Failure error={error} retry={reload} />
      <dl class="facts">
        {flow !== null && (
          <Row title={flow.kind}>
            <a href={flowHref(flow.id)}>
              <Name text={flow.key ?? flow.id} />
            </a>
            {job.node !== null && <span class="muted"> job #{job.node}</span>}
          </Row>
        )}
        {parent !== null && (
          <Row title="parent">
            <One job={parent} />
          </Row>
        )}
        {waitsFor.length > 0 && (
          <Row title="waits for">
            <Many jobs={waitsFor} />
          </Row>
        )}
        {chain.length > 1 && (
          <Row title="chain of waits">
            <Chain jobs={chain} />
          </Row>
        )}
        {after.length > 0 && (
          <Row title="after">
            <ul class="chain">
              {after.map(({ name, ends }) => (
                <li key={name} class="row">
                  <Name text={name} /> <Ends ends={ends} />
                </li>
              ))}
            </ul>
          </Row>
        )}
        {awaitedBy.length > 0 && (
          <Row title="awaited by">
            <Many jobs={awaitedBy} />
          </Row>
        )}
        {children.length > 0 && (
          <Row title="children">
            <Many jobs={children.map((child) => child.job)} all={job.id} />
          </Row>
        )}
      </dl>
    </Panel>
  )
}

function Row({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </>
  )
}

function One({ job }: { job: Other }) {
  const isParked = job.blockedReason !== null
  return (
    <span class="row">
      <a href={jobHref(job.id)}>
        <Name text={job.node === null ? job.type : `${job.type} #${job.node}`} />
      </a>
      <State tone={isParked ? 'parked' : jobTone(job)} word={isParked ? 'parked' : job.state} />
    </span>
  )
}

/** The first jobs; the others are in the list of jobs, if `all` is the flow or parent of them. */
function Many({ jobs, all }: { jobs: readonly Other[]; all?: string }) {
  const rest = jobs.length - SHOWN
  return (
    <ul class="chain">
      {jobs.slice(0, SHOWN).map((job) => (
        <li key={job.id}>
          <One job={job} />
        </li>
      ))}
      {rest > 0 && (
        <li class="muted">
          and {count(rest)} {jobs.length >= ASKED ? 'or more' : 'more'}
        </li>
      )}
      {all !== undefined && (
        <li>
          <a href={hrefOf('/jobs', { flow: all })}>list them</a>
        </li>
      )}
    </ul>
  )
}

/** It waits for the first, which waits for the second, and so on. The last can move. */
function Chain({ jobs }: { jobs: readonly Other[] }) {
  return (
    <ol class="chain">
      {jobs.map((job, i) => (
        <li key={job.id} class="row">
          <span class="muted">{i === 0 ? '' : 'waits for'}</span> <One job={job} />
        </li>
      ))}
    </ol>
  )
}

function Ends({ ends }: { ends: Linked['after'][number]['ends'] }) {
  const counts = new Map<string, number>()
  for (const { outcome } of ends) {
    counts.set(outcome ?? 'open', (counts.get(outcome ?? 'open') ?? 0) + 1)
  }
  if (counts.size === 0) return <span class="muted">no jobs</span>
  return (
    <span class="row">
      {[...counts].map(([word, many]) => (
        <State key={word} tone={TONES[word] ?? 'waiting'} word={`${count(many)} ${word}`} />
      ))}
    </span>
  )
}

const TONES: Readonly<Record<string, 'succeeded' | 'failed' | 'cancelled'>> = {
  succeeded: 'succeeded',
  failed: 'failed',
  cancelled: 'cancelled',
}
