/** `pawl queue pause|resume|limit|show|history`: changes of queues, and the records of them. */

import type { QueueOptions } from '../../engine/options.ts'
import { pagesOf } from '../../engine/pages.ts'
import { span, stamp } from '../../environment/times.ts'
import type { QueueRecord, QueueSettings } from '../../stores/queue-records.ts'
import type { QueueInfo } from '../../stores/store.ts'
import { eachOf } from '../each.ts'
import { NameUnknown, UsageInvalid } from '../errors.ts'
import type { ExitCode } from '../exit-codes.ts'
import { knownQueues } from '../known-queues.ts'
import { withPawl } from '../opening.ts'
import { PAGING_OPTIONS, walkOf } from '../paging.ts'
import { type Call, type CommandSpec, textOf, wholeOf } from '../spec.ts'
import { readDuration } from '../times.ts'
import { visible } from '../visible.ts'
import { identityOf, OPERATOR_OPTIONS } from './job-act.ts'

/** What `queue list` and `queue show` say of pauses and bounds, in text that may hold anything. */
export function noteOf(queue: QueueInfo): string[] {
  const { pausedAt, pausedBy, pauseReason, maxDepth, maxWaitMs } = queue
  const by = pausedBy === undefined ? '' : ` by ${pausedBy}`
  const why = pauseReason === undefined ? '' : ` (${pauseReason})`
  return [
    ...(pausedAt === undefined ? [] : [`paused${by} at ${stamp(pausedAt)}${why}`]),
    ...(maxDepth === undefined ? [] : [`at most ${maxDepth} ready`]),
    ...(maxWaitMs === undefined ? [] : [`ready for at most ${span(maxWaitMs)}`]),
  ]
}

const pausing =
  (verb: 'pause' | 'resume') =>
  async (call: Call): Promise<ExitCode> => {
    const identity = identityOf(call)
    return withPawl(call, async (pawl) => {
      const operator = pawl.operator(identity)
      const paused = verb === 'pause'
      const known = await knownQueues(pawl)
      return eachOf(call, 'queue', call.args, async (queue) => {
        const record = await (paused ? operator.pauseQueue(queue) : operator.resumeQueue(queue))
        const changed = record !== undefined
        if (call.output.json) call.output.record({ queue, paused, changed, ...known.notice(queue) })
        else {
          const was = paused ? 'was paused already' : 'was not paused'
          call.output.line(`${visible(queue)} ${changed ? `${verb}d` : was}`)
        }
        known.warn(call, queue)
      })
    })
  }

/** The bounds that the options name; `none` lifts one. */
function limitsOf(call: Call): QueueOptions {
  const depth = textOf(call, 'maxDepth')
  const wait = textOf(call, 'maxWait')
  if (depth === undefined && wait === undefined) {
    throw new UsageInvalid('No bound is named', 'Add --max-depth, --max-wait or both.')
  }
  return {
    ...(depth !== undefined && {
      maxDepth: depth === 'none' ? null : (wholeOf(call, 'maxDepth', 0, 1_000_000) ?? null),
    }),
    ...(wait !== undefined && {
      maxWait: wait === 'none' ? null : readDuration(wait, 'max-wait'),
    }),
  }
}

async function limit(call: Call): Promise<ExitCode> {
  const { output } = call
  const identity = identityOf(call)
  const limits = limitsOf(call)
  return withPawl(call, async (pawl) => {
    const operator = pawl.operator(identity)
    const known = await knownQueues(pawl)
    return eachOf(call, 'queue', call.args, async (queue) => {
      const record = await operator.limitQueue(queue, limits)
      const now = (await pawl.store.listQueues()).find(({ name }) => name === queue)
      const { maxDepth = null, maxWaitMs = null } = now ?? {}
      const changed = record !== undefined
      const bounds = { maxDepth, maxWaitMs, changed, ...known.notice(queue) }
      if (output.json) output.record({ queue, ...bounds })
      else
        output.line(`${visible(queue)} ${changed ? changeOf(record) : 'has these bounds already'}`)
      known.warn(call, queue)
    })
  })
}

/** What a record changed, in words that are harmless on a terminal. */
function changeOf({ action, before, after }: QueueRecord): string {
  if (action === 'pause') return 'paused'
  if (action === 'resume') {
    const { pausedAt } = before
    return pausedAt === null ? 'resumed' : `resumed, paused since ${stamp(pausedAt)}`
  }
  const spanOf = (ms: number | null) => (ms === null ? 'none' : span(ms))
  const depthOf = (depth: number | null) => String(depth ?? 'none')
  const part = (field: keyof QueueSettings, words: string, show: (n: number | null) => string) =>
    before[field] === after[field]
      ? []
      : [`${words} ${show(before[field])} → ${show(after[field])}`]
  return [...part('maxDepth', 'max depth', depthOf), ...part('maxWaitMs', 'max wait', spanOf)].join(
    ', ',
  )
}

function recordLine(record: QueueRecord): string {
  const { at, queue, actor, operator, note } = record
  const who = operator === undefined ? actor : `${actor} ${operator}`
  const why = note === undefined ? '' : `: ${note}`
  return `${stamp(at)} ${visible(queue)} ${changeOf(record)}, by ${visible(`${who}${why}`)}`
}

async function history(call: Call): Promise<undefined> {
  const { output, interrupted } = call
  const [queue] = call.args
  const filter = queue === undefined ? {} : { queue }
  let after: string | undefined
  let shown = 0
  await withPawl(call, async ({ store }) => {
    const pages = pagesOf((page) => store.listQueueRecords(filter, page), walkOf(call))
    for await (const page of pages) {
      after = page.after
      shown += page.items.length
      for (const record of page.items) {
        if (output.json) output.record(record)
        else output.line(recordLine(record))
      }
      await output.taken()
      if (interrupted.aborted || output.gone.aborted) break
    }
  })
  if (shown === 0) output.say('No queue was paused, resumed or bounded.')
  if (after !== undefined) output.say(`There may be more: --after ${after}`)
  return undefined
}

/** How many records `queue show` prints. */
const SHOWN = 10

async function show(call: Call): Promise<undefined> {
  const { output } = call
  const [name = ''] = call.args
  await withPawl(call, async ({ store }) => {
    const queues = await store.listQueues()
    const queue = queues.find((one) => one.name === name)
    if (queue === undefined) {
      throw new NameUnknown(
        'queue',
        name,
        queues.slice(0, SHOWN).map((one) => one.name),
      )
    }
    const { items: records, next } = await store.listQueueRecords({ queue: name }, { limit: SHOWN })
    if (output.json) {
      output.record({ ...queue, records })
      return
    }
    const lanes = Object.entries(queue.lanes).filter(([, jobs]) => jobs > 0)
    const counts = lanes.map(([lane, jobs]) => `${jobs} ${lane}`).join(', ')
    output.line(`${visible(name)}: ${counts === '' ? 'no jobs' : counts}`)
    for (const note of noteOf(queue)) output.line(`  ${visible(note)}`)
    for (const record of records) output.line(recordLine(record))
    if (next !== undefined) output.say('There are older changes: pawl queue history')
  })
  return undefined
}

const NAMES = [{ flags: '<queues...>', says: 'their names' }]

/** Commands that change queues, and that show what was changed. */
export const commands: readonly CommandSpec[] = [
  {
    name: 'queue show',
    summary: 'Show one queue: its jobs by lane, pause and bounds, and its last changes',
    args: [{ flags: '<queue>', says: 'its name' }],
    examples: [['pawl queue show mail', 'who paused it, when and why']],
    run: show,
  },
  {
    name: 'queue pause',
    summary: 'Stop claims from queues; what runs, runs on',
    args: NAMES,
    options: OPERATOR_OPTIONS,
    examples: [['pawl queue pause mail --reason "the relay is down"', 'one queue']],
    run: pausing('pause'),
  },
  {
    name: 'queue resume',
    summary: 'Let queues be claimed from again',
    args: NAMES,
    options: OPERATOR_OPTIONS,
    examples: [['pawl queue resume mail --reason "the relay is back"', 'one queue']],
    run: pausing('resume'),
  },
  {
    name: 'queue limit',
    summary: 'Bound how many jobs may be ready in queues, and for how long',
    details:
      'A bound that is not named stays as it is, and none lifts one. Bounds hold for every ' +
      'process. A program that sets them by the option queues of createPawl does so again when ' +
      'it starts.',
    args: NAMES,
    options: [
      { flags: '--max-depth <count>', says: 'how many jobs may be ready, or none' },
      { flags: '--max-wait <duration>', says: 'how long one may be ready unclaimed, or none' },
      ...OPERATOR_OPTIONS,
    ],
    examples: [
      ['pawl queue limit mail --max-depth 1000 --max-wait 5m --reason "INC-7"', 'both bounds'],
      ['pawl queue limit mail --max-depth none --reason "INC-7 is over"', 'lift one of them'],
    ],
    run: limit,
  },
  {
    name: 'queue history',
    summary: 'List changes of queues, newest first: who paused, resumed or bounded them, and why',
    args: [{ flags: '[queue]', says: 'its name; all queues if absent' }],
    options: PAGING_OPTIONS,
    examples: [
      ['pawl queue history mail', 'the changes of one queue'],
      ['pawl queue history --json | jq "select(.operator == \\"ada\\")"', 'what ada changed'],
    ],
    run: history,
  },
]
