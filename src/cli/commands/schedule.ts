/** `pawl schedule list|show|next|history`. */
import { span } from '../../core/format.ts'
import { pagesOf } from '../../engine/pages.ts'
import type { ScheduleInfo } from '../../engine/schedules/schedules.ts'
import { stamp } from '../../environment/times.ts'
import type { ScheduleRecord } from '../../stores/contract/schedules.ts'
import { ScheduleNotFound } from '../../stores/errors.ts'
import { withPawl } from '../opening.ts'
import { PAGING_OPTIONS, walkOf } from '../paging.ts'
import { type Call, type CommandSpec, textOf, wholeOf } from '../spec.ts'
import { visible } from '../visible.ts'

async function list(call: Call): Promise<undefined> {
  const { output } = call
  let after: string | undefined
  let shown = 0
  await withPawl(call, async (pawl) => {
    const pages = pagesOf((page) => pawl.schedules.list(page), walkOf(call))
    for await (const page of pages) {
      after = page.after
      shown += page.items.length
      if (output.json) for (const schedule of page.items) output.record({ ...schedule })
      else printList(call, page.items)
    }
  })
  if (shown === 0) output.say('There are no schedules.')
  if (after !== undefined) output.say(`There may be more: --after ${visible(after)}`)
  return undefined
}

function printList({ output }: Call, schedules: readonly ScheduleInfo[]): void {
  const heads = ['schedule', 'type', 'when', 'next', 'last tick', 'note']
  const rows = schedules.map((one) => [
    one.name,
    one.type ?? '?',
    whenOf(one),
    one.nextAt === undefined ? '-' : stamp(one.nextAt),
    one.lastTick === undefined ? '-' : stamp(one.lastTick),
    noteOf(one).join('; '),
  ])
  output.table(
    heads.map((head) => ({ head })),
    rows,
  )
}

/** Describes the timing. The text is not escaped. */
function whenOf({ timing }: ScheduleInfo): string {
  if (timing === undefined) return 'damaged'
  if (timing.kind === 'every') return `every ${span(timing.everyMs)}`
  return `${timing.cron} (${timing.timezone})`
}

/** Describes what is special now. The text is not escaped. */
function noteOf(schedule: ScheduleInfo): string[] {
  const { pausedAt, pausedBy, pauseNote, buffered, timing } = schedule
  const why = pauseNote === undefined ? '' : ` (${pauseNote})`
  return [
    ...(timing === undefined ? ['its definition is damaged: pawl doctor --plan'] : []),
    ...(pausedAt === undefined ? [] : [`paused by ${pausedBy} at ${stamp(pausedAt)}${why}`]),
    ...(buffered.length === 0 ? [] : [`${buffered.length} ticks wait for the end of a job`]),
  ]
}

const SHOWN = 10

async function show(call: Call): Promise<undefined> {
  const { output } = call
  const [name = ''] = call.args
  await withPawl(call, async (pawl) => {
    const schedule = await pawl.schedules.get(name)
    if (schedule === undefined) throw new ScheduleNotFound(name)
    const { items: records } = await pawl.schedules.history(name, { limit: SHOWN })
    if (output.json) {
      output.record({ ...schedule, records })
      return
    }
    const { type, overlap, catchUp, jitterMs, pauseOnFailure, nextAt, version, origin } = schedule
    output.line(
      `${visible(name)}: ${visible(whenOf(schedule))}, makes jobs of type ${visible(type ?? '?')}`,
    )
    if (nextAt !== undefined) output.line(`  next tick ${stamp(nextAt)}`)
    const within = catchUp?.mode === 'none' ? '' : ` within ${span(catchUp?.withinMs ?? 0)}`
    output.line(`  overlap ${overlap}, catch-up ${catchUp?.mode}${within}`)
    if ((jitterMs ?? 0) > 0) output.line(`  jitter up to ${span(jitterMs ?? 0)}`)
    if (pauseOnFailure) output.line('  is paused when a job fails')
    output.line(`  version ${version}, stored by the ${origin}`)
    for (const note of noteOf(schedule)) output.line(`  ${visible(note)}`)
    for (const record of records) output.line(recordLine(record))
  })
  return undefined
}

const NEXT_DEFAULT = 5

async function next(call: Call): Promise<undefined> {
  const { output } = call
  const [name = ''] = call.args
  const ticks = wholeOf(call, 'count', 1, 1000) ?? NEXT_DEFAULT
  await withPawl(call, async (pawl) => {
    for (const tick of await pawl.schedules.next(name, ticks)) {
      if (output.json) output.record({ schedule: name, tick: tick.toISOString() })
      else output.line(stamp(tick.getTime()))
    }
  })
  return undefined
}

async function history(call: Call): Promise<undefined> {
  const { output, interrupted } = call
  const [schedule] = call.args
  const kind = textOf(call, 'kind') as 'tick' | 'change' | undefined
  const filter = {
    ...(schedule !== undefined && { schedule }),
    ...(kind !== undefined && { kind }),
  }
  let after: string | undefined
  let shown = 0
  await withPawl(call, async ({ store }) => {
    const pages = pagesOf((page) => store.schedules.records(filter, page), walkOf(call))
    for await (const page of pages) {
      after = page.after
      shown += page.items.length
      for (const record of page.items) {
        if (output.json) output.record({ ...record })
        else output.line(recordLine(record))
      }
      await output.taken()
      if (interrupted.aborted || output.gone.aborted) break
    }
  })
  if (shown === 0) output.say('There are no records.')
  if (after !== undefined) output.say(`There may be more: --after ${after}`)
  return undefined
}

/** One line for a tick, or for a change with operator and reason. */
function recordLine(record: ScheduleRecord): string {
  const { at, schedule, action, tick, actor, operator, note, job } = record
  const name = visible(schedule)
  if (tick !== undefined) return `${name} ${tickOf(record)} ${action}${whyOf(record)}`
  const made = job === undefined ? '' : ` job ${visible(job)}`
  const who = operator === undefined ? actor : `${actor} ${operator}`
  const why = note === undefined ? '' : `: ${note}`
  return `${name} ${stamp(at)} ${action}${made}, by ${visible(`${who}${why}`)}`
}

function tickOf({ tick = 0, lastTick, ticks = 1 }: ScheduleRecord): string {
  if (lastTick === undefined) return stamp(tick)
  return `${stamp(tick)} to ${stamp(lastTick)} (${ticks < 1000 ? ticks : 'at least 1000'} ticks)`
}

const REASONS: Readonly<Record<string, string>> = {
  overlap: 'a job was open',
  'buffer-full': 'too many ticks waited',
  replaced: 'a later tick came first',
  late: 'no worker looked in time',
  paused: 'the schedule was paused',
  changed: 'the schedule was changed',
  removed: 'the schedule was removed',
  existing: 'the job was there already',
}

function whyOf({ reason, job }: ScheduleRecord): string {
  const made = job === undefined ? '' : ` job ${visible(job)}`
  if (reason === undefined) return made
  return `${made}: ${visible(REASONS[reason] ?? reason)}`
}

const NAME = [{ flags: '<schedule>', says: 'the name of the schedule' }]

export const commands: readonly CommandSpec[] = [
  {
    name: 'schedule list',
    summary: 'List schedules: job type, timing, next and last tick, pauses',
    options: PAGING_OPTIONS,
    examples: [['pawl schedule list', 'all schedules, by name']],
    run: list,
  },
  {
    name: 'schedule show',
    summary: 'Show a schedule: its definition, its next tick and its last records',
    args: NAME,
    examples: [['pawl schedule show nightly-report', 'what it does, and what it did']],
    run: show,
  },
  {
    name: 'schedule next',
    summary: 'List the next ticks of a schedule, in UTC',
    details: 'Ticks of a paused schedule are listed, too; no jobs are made of them.',
    args: NAME,
    options: [{ flags: '--count <count>', says: `how many (${NEXT_DEFAULT} if absent)` }],
    examples: [['pawl schedule next nightly-report --count 3', 'the next three']],
    run: next,
  },
  {
    name: 'schedule history',
    summary: 'List each tick with its result, and each change with operator and reason',
    details:
      'Results: fired and late (with the job), backfilled (by an operator), skipped (with the ' +
      'job that was open), missed (with the reason; several ticks may be one record).',
    args: [{ flags: '[schedule]', says: 'the name of the schedule; all if absent' }],
    options: [
      { flags: '--kind <kind>', says: 'only ticks or only changes', choices: ['tick', 'change'] },
      ...PAGING_OPTIONS,
    ],
    examples: [
      ['pawl schedule history nightly-report', 'why it did not run last Tuesday'],
      ['pawl schedule history --json | jq "select(.action == \\"missed\\")"', 'missed ticks'],
    ],
    run: history,
  },
]
