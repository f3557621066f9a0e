/** The attempts of a job on a line of time, with the moment of the commit. */
import { type Execution, executionsOf } from '../../src/core/job/executions.ts'
import type { Fact } from '../../src/core/job/facts.ts'
import { now } from '../api/session.ts'
import { clock, counted, exact, relative, span } from '../format.ts'
import { type Tone, toneOf } from '../machine-data.ts'
import { Empty, Name } from '../ui/parts.tsx'
import { Sign } from '../ui/state.tsx'
import type { JobData, Moment } from './load.ts'

const SHOWN_MAX = 8

interface Bar {
  readonly attempt: number
  readonly from: number
  readonly to: number
  readonly tone: Tone
  readonly owner: string
  readonly says: string
  /** When it committed. */
  readonly committedAt: number | undefined
  readonly isLater: boolean
}

const ABORTS: Readonly<Record<string, string>> = {
  lease_expired: 'lease expired',
  invalid_input: 'invalid input',
}

function saysOf({ status, abort, error, leaseExpiresAt }: Execution, lease: number): string {
  if (status === 'DONE') return 'done'
  if (status === 'COMMITTED') return 'committed, effects are delivered'
  if (status === 'ABORTED') return error?.message ?? ABORTS[abort ?? ''] ?? abort ?? 'aborted'
  const until = Math.max(lease, leaseExpiresAt)
  return until > now.value
    ? `lease ends ${relative(until, now.value)}`
    : `lease expired ${relative(until, now.value)}`
}

const TONES: Readonly<Record<string, Tone>> = { released: 'cancelled', suspended: 'waiting' }

function toneFor({ status, abort }: Execution): Tone {
  return status === 'ABORTED' ? (TONES[abort ?? ''] ?? 'failed') : toneOf(status)
}

function barsOf(data: JobData, moment: Moment, all: readonly Execution[]): Bar[] {
  const claims = new Map<number, Fact>()
  const commits = new Map<number, number>()
  for (const fact of data.facts) {
    const attempt = fact.execution?.attempt
    if (attempt === undefined) continue
    if (!claims.has(attempt)) claims.set(attempt, fact)
    if (fact.execution?.statuses.includes('COMMITTED')) commits.set(attempt, fact.at)
  }
  const known = new Map(moment.executions.map((one) => [one.attempt, one]))
  const end = moment.isNow ? now.value : (moment.facts.at(-1)?.at ?? 0)
  return all.map((future) => {
    const own = known.get(future.attempt)
    const shown = own ?? future
    const from = claims.get(future.attempt)?.at ?? shown.startedAt ?? end
    const lease = data.job.execution?.leaseUntil ?? 0
    return {
      attempt: future.attempt,
      from,
      to: Math.max(from, shown.finishedAt ?? (own === undefined ? from : end)),
      tone: toneFor(shown),
      owner: shown.leaseOwner,
      says: saysOf(shown, moment.isNow ? lease : 0),
      committedAt: own === undefined ? undefined : commits.get(future.attempt),
      isLater: own === undefined,
    }
  })
}

export function Attempts({ data, moment }: { data: JobData; moment: Moment }) {
  const all = moment.isNow ? moment.executions : executionsOf(data.facts)
  if (all.length === 0) return <Empty title="No attempt yet">A worker has not claimed it.</Empty>
  const bars = barsOf(data, moment, all.slice(-SHOWN_MAX))
  const start = Math.min(...bars.map(({ from }) => from))
  const end = Math.max(...bars.map(({ to }) => to), start + 1)
  const part = (at: number) =>
    `${Math.min(100, Math.max(0, ((at - start) / (end - start)) * 100))}%`
  const { failures, crashes, releases } = moment.job
  return (
    <>
      {all.length > SHOWN_MAX && (
        <p class="small muted">{counted(all.length - SHOWN_MAX, 'earlier attempt')}</p>
      )}
      <ol class="attempts">
        {bars.map((bar) => (
          <li key={bar.attempt} class={bar.isLater ? `later tone-${bar.tone}` : `tone-${bar.tone}`}>
            <span class="n">{bar.attempt}</span>
            <div class="track">
              <i
                style={{ left: part(bar.from), width: `max(4px, ${widthOf(bar, start, end)})` }}
                title={`${exact(bar.from)} – ${exact(bar.to)}`}
              />
              {bar.committedAt !== undefined && (
                <b
                  style={{ left: part(bar.committedAt) }}
                  title={`COMMITTED ${exact(bar.committedAt)}`}
                >
                  <span class="hidden">committed</span>
                </b>
              )}
            </div>
            <p class="small">
              <Sign tone={bar.tone} /> <Name text={bar.owner} /> · {span(bar.to - bar.from)} ·{' '}
              <span class="muted">
                <Name text={bar.says} />
              </span>
            </p>
          </li>
        ))}
      </ol>
      <div class="spread small muted axis">
        <span>{clock(start)}</span>
        <span>{clock(end)}</span>
      </div>
      <p class="small">
        <span class="muted">Spent</span> {counted(failures, 'failure')},{' '}
        {crashes === 1 ? '1 crash' : `${crashes} crashes`}, {counted(releases, 'release')}
      </p>
    </>
  )
}

function widthOf({ from, to }: Bar, start: number, end: number): string {
  return `${((to - from) / (end - start)) * 100}%`
}
