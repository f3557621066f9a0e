/** The numbers of a store as lines for people. All texts of users are escaped here. */
import { size, span } from '../../core/format.ts'
import type { RetentionStatus } from '../../engine/retention/run.ts'
import { stamp } from '../../environment/times.ts'
import { type Column, type Style, tableLines } from '../output.ts'
import { visible } from '../visible.ts'
import type { Stats } from './stats.ts'

export interface Line {
  readonly text: string
  readonly style?: Style
}

/** What is shown besides the numbers. */
export interface Shown {
  /** The address of the store, without its password. */
  readonly store: string
  /** Jobs per second that ended, by queue; absent if there is only one reading. */
  readonly rates?: ReadonlyMap<string, number>
  readonly retention?: RetentionStatus
}

const LANES = ['ready', 'waiting', 'blocked', 'held', 'parked', 'delivering', 'ended'] as const
const COUNT_MAX = 10_000
const NAME_MAX = 40
const NOTE_MAX = 60

/** Sections with an empty line between them. */
export function linesOf(stats: Stats, shown: Shown): Line[] {
  const sections = [
    headLines(stats, shown),
    jobLines(stats),
    recentLines(stats),
    attentionLines(stats),
    queueLines(stats, shown.rates),
    workerLines(stats),
    limitLines(stats),
  ]
  return sections
    .filter((lines) => lines.length > 0)
    .flatMap((lines, i) => (i === 0 ? lines : [{ text: '' }, ...lines]))
}

function headLines(stats: Stats, { store, retention }: Shown): Line[] {
  const { workers, schedules } = stats
  const bytes = stats.bytes === undefined ? '' : `  ${size(stats.bytes)}`
  const late = schedules.latestMs === null ? '' : ` by up to ${span(schedules.latestMs)}`
  return [
    { text: `store      ${visible(store)}${bytes}`, style: 'bold' },
    { text: `time       ${stamp(stats.now)}` },
    {
      text:
        `workers    ${workers.live} live, ${workers.gone} gone; ` +
        `${workers.running} of ${workers.concurrency} places in use`,
    },
    {
      text:
        `schedules  ${schedules.count}${schedules.more ? ' or more' : ''}, ` +
        `${schedules.paused} paused, ` +
        `${schedules.late} late${late}`,
    },
    ...(retention === undefined ? [] : [{ text: `retention  ${retentionText(retention)}` }]),
  ]
}

function retentionText({ active, due, old }: RetentionStatus): string {
  const least = due.complete ? '' : 'at least '
  const would = due.classes.length === 0 ? '' : `, would remove ${least}${due.removed} jobs`
  const bound = old >= COUNT_MAX ? `${COUNT_MAX} or more` : String(old)
  return `${active ? 'on' : 'off'}${would}; ${bound} jobs ended more than 30 days ago`
}

function jobLines({ lanes, ended }: Stats): Line[] {
  const columns = ['jobs', ...LANES].map((head, i) => ({ head, right: i > 0 }))
  const outcomes = Object.entries(ended).map(([outcome, count]) => `${count} ${outcome}`)
  return [
    ...sectionOf(columns, [['', ...LANES.map((lane) => String(lanes[lane]))]]),
    ...(outcomes.length === 0 ? [] : [{ text: `ended: ${visible(outcomes.join(', '))}` }]),
  ]
}

function recentLines({ recent }: Stats): Line[] {
  const names = ['enqueued', 'started', 'retried', 'succeeded', 'failed', 'cancelled'] as const
  const head = `last ${span(recent.windowMs)}`
  const perSecond = (count: number) => rateText((count * 1000) / recent.windowMs)
  const times = (name: string, of: Stats['recent']['waitMs']) =>
    of === null
      ? [name, '0', '-', '-', '-']
      : [name, String(of.count), span(of.p50), span(of.p95), span(of.p99)]
  return [
    ...sectionOf(
      [head, ...names].map((name, i) => ({ head: name, right: i > 0 })),
      [
        ['jobs', ...names.map((name) => String(recent[name]))],
        ['per second', ...names.map((name) => perSecond(recent[name]))],
      ],
    ),
    { text: '' },
    ...sectionOf(
      ['latency', 'attempts', 'p50', 'p95', 'p99'].map((name, i) => ({ head: name, right: i > 0 })),
      [times('wait', recent.waitMs), times('run', recent.runMs)],
    ),
  ]
}

function attentionLines({ attention }: Stats): Line[] {
  const { longBlocked, ...counts } = attention
  const says: Readonly<Record<keyof typeof counts, readonly [what: string, see: string]>> = {
    parkedJobs: ['parked jobs', 'pawl job list --lane parked'],
    parkedEffects: ['parked effects', 'pawl effect list --state parked'],
    stalledJobs: ['stalled jobs that wait for an operator', 'pawl doctor'],
    stuckHandlers: ['handlers that go on without their lease', 'pawl worker list'],
    pausedQueues: ['paused queues', 'pawl queue list'],
    unservedQueues: ['queues with ready jobs and no live worker', 'pawl queue list'],
    parkedFlows: ['flows with a parked job', 'pawl flow list --state attention'],
    missedTicks: ['ticks that schedules missed in the last day', 'pawl schedule list'],
  }
  const names = Object.keys(says) as (keyof typeof counts)[]
  return [
    ...names
      .filter((name) => counts[name] > 0)
      .map((name) => {
        const [what, see] = says[name]
        return { text: `! ${what}: ${counts[name]} (${see})`, style: 'yellow' } as const
      }),
    ...longBlocked.slice(0, 5).map(({ limit, key, blocked, forMs }) => {
      const of = key === undefined ? '' : ` ${key}`
      const text = visible(`! jobs that ${limit}${of} blocks: ${blocked}, for ${span(forMs)}`)
      return { text, style: 'yellow' } as const
    }),
  ]
}

function queueLines({ queues, queueCount }: Stats, rates: Shown['rates']): Line[] {
  const columns = [
    { head: 'queue', max: NAME_MAX },
    ...LANES.map((head) => ({ head, right: true })),
    { head: 'oldest ready', right: true },
    ...(rates === undefined ? [] : [{ head: 'ended/s', right: true }]),
    { head: 'workers', right: true },
    { head: 'note', max: NOTE_MAX },
  ]
  const rows = queues.map(({ name, lanes, oldestReadyMs, workers, pausedAt }) => {
    const rate = rates?.get(name)
    const notes = [
      ...(pausedAt === undefined ? [] : ['paused']),
      ...(workers === 0 ? ['no live worker'] : []),
    ]
    return [
      name,
      ...LANES.map((lane) => String(lanes[lane])),
      oldestReadyMs === undefined ? '-' : span(oldestReadyMs),
      ...(rates === undefined ? [] : [rate === undefined ? '-' : rateText(rate)]),
      String(workers),
      notes.join('; '),
    ]
  })
  return [...sectionOf(columns, rows), ...moreLine(queueCount - queues.length, 'queues')]
}

function workerLines({ workerList, workers, now }: Stats): Line[] {
  const columns: Column[] = [
    { head: 'worker', max: NAME_MAX },
    { head: 'state' },
    { head: 'running', right: true },
    { head: 'up', right: true },
    { head: 'seen', right: true },
    { head: 'queues', max: NOTE_MAX },
  ]
  const rows = workerList.map((worker) => [
    worker.id,
    worker.activity,
    `${worker.running}/${worker.concurrency}`,
    span(worker.seenAt - worker.startedAt),
    `${span(now - worker.seenAt)} ago`,
    worker.queues?.join(', ') ?? 'all',
  ])
  const more = workers.live + workers.gone - workerList.length
  return [...sectionOf(columns, rows), ...moreLine(more, 'workers')]
}

function limitLines({ limits }: Stats): Line[] {
  const columns: Column[] = [
    { head: 'limit', max: NAME_MAX },
    { head: 'in use', right: true },
    { head: 'value', right: true },
    { head: 'blocked', right: true },
    { head: 'oldest', right: true },
  ]
  const rows = limits.map(({ limit, isThrottle, max, used, blocked, blockedMs }) => [
    limit,
    isThrottle ? '-' : String(used),
    max === null ? 'by input' : String(max),
    String(blocked),
    blockedMs === undefined ? '-' : span(blockedMs),
  ])
  return sectionOf(columns, rows)
}

function moreLine(count: number, what: string): Line[] {
  return count > 0 ? [{ text: `… and ${count} more ${what}` }] : []
}

/** A table with its header; nothing if it has no rows. */
function sectionOf(columns: readonly Column[], rows: readonly (readonly string[])[]): Line[] {
  if (rows.length === 0) return []
  const [head = '', ...lines] = tableLines(
    columns,
    rows.map((row) => row.map(visible)),
  )
  return [{ text: head, style: 'dim' }, ...lines.map((text) => ({ text }))]
}

function rateText(perSecond: number): string {
  return perSecond >= 100 ? String(Math.round(perSecond)) : perSecond.toFixed(2)
}
