/** `pawl queue pause|resume|limit|show|history`. */

import { span } from '../../core/format.ts'
import { CONCURRENCY_MAX, gateName } from '../../core/limits/keys.ts'
import { NameUnknown } from '../../engine/errors.ts'
import type { QueueOptions } from '../../engine/options.ts'
import { pagesOf } from '../../engine/pages.ts'
import type { Pawl } from '../../engine/pawl.ts'
import { stamp } from '../../environment/times.ts'
import type { QueueInfo } from '../../stores/contract/store.ts'
import type { QueueRecord, QueueSettings } from '../../stores/queue-records.ts'
import { eachOf } from '../each.ts'
import { UsageInvalid } from '../errors.ts'
import type { ExitCode } from '../exit-codes.ts'
import { changeText } from '../limit-text.ts'
import { knownQueues } from '../name-warnings.ts'
import { withPawl } from '../opening.ts'
import { PAGING_OPTIONS, walkOf } from '../paging.ts'
import { type Call, type CommandSpec, textOf, wholeOf } from '../spec.ts'
import { readDuration } from '../times.ts'
import { visible } from '../visible.ts'
import { identityOf, OPERATOR_OPTIONS } from './job-act.ts'
import { changeLimit } from './limit-act.ts'

/** Describes pause and limits of a queue. The text is not escaped. */
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
          const was = paused ? 'was already paused' : 'was not paused'
          call.output.line(`${visible(queue)} ${changed ? `${verb}d` : was}`)
        }
        known.warn(call, queue)
      })
    })
  }

/** `none` removes a limit. */
function limitsOf(call: Call): QueueOptions {
  const depth = textOf(call, 'maxDepth')
  const wait = textOf(call, 'maxWait')
  if (depth === undefined && wait === undefined && textOf(call, 'concurrency') === undefined) {
    throw new UsageInvalid('No limit is given', 'Add --max-depth, --max-wait or --concurrency.')
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

/** How many jobs of a queue may run: a limit like any other, which has records of its own. */
async function limitRunning(call: Call, pawl: Pawl, queue: string): Promise<string | undefined> {
  const said = textOf(call, 'concurrency')
  if (said === undefined) return undefined
  const wanted = said === 'none' ? undefined : wholeOf(call, 'concurrency', 0, CONCURRENCY_MAX)
  const record = await changeLimit(pawl, identityOf(call), gateName('queue', queue), wanted)
  return record && `concurrency ${changeText(record)}`
}

async function limit(call: Call): Promise<ExitCode> {
  const { output } = call
  const identity = identityOf(call)
  const limits = limitsOf(call)
  if (textOf(call, 'concurrency') !== 'none') wholeOf(call, 'concurrency', 0, CONCURRENCY_MAX)
  return withPawl(call, async (pawl) => {
    const operator = pawl.operator(identity)
    const known = await knownQueues(pawl)
    return eachOf(call, 'queue', call.args, async (queue) => {
      const isBounded = Object.keys(limits).length > 0
      const record = isBounded ? await operator.limitQueue(queue, limits) : undefined
      const running = await limitRunning(call, pawl, queue)
      const now = (await pawl.store.listQueues()).find(({ name }) => name === queue)
      const { maxDepth = null, maxWaitMs = null } = now ?? {}
      const changes = [...(record ? [changeOf(record)] : []), ...(running ? [running] : [])]
      const changed = changes.length > 0
      const bounds = { maxDepth, maxWaitMs, changed, ...known.notice(queue) }
      if (output.json) output.record({ queue, ...bounds })
      else
        output.line(
          `${visible(queue)} ${changed ? changes.join(', ') : 'already has these limits'}`,
        )
      known.warn(call, queue)
    })
  })
}

/** Describes the change of a record; contains no text of users. */
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
  if (shown === 0) output.say('No queue was ever paused, resumed or limited.')
  if (after !== undefined) output.say(`There may be more: --after ${after}`)
  return undefined
}

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

const NAMES = [{ flags: '<queues...>', says: 'names of queues' }]

export const commands: readonly CommandSpec[] = [
  {
    name: 'queue show',
    summary: 'Show a queue: jobs by lane, pause, limits and its last changes',
    args: [{ flags: '<queue>', says: 'the name of the queue' }],
    examples: [['pawl queue show mail', 'who paused it, when and why']],
    run: show,
  },
  {
    name: 'queue pause',
    summary: 'Pause queues: no jobs are claimed; running jobs continue',
    args: NAMES,
    options: OPERATOR_OPTIONS,
    examples: [['pawl queue pause mail --reason "the relay is down"', 'one queue']],
    run: pausing('pause'),
  },
  {
    name: 'queue resume',
    summary: 'Resume paused queues',
    args: NAMES,
    options: OPERATOR_OPTIONS,
    examples: [['pawl queue resume mail --reason "the relay is back"', 'one queue']],
    run: pausing('resume'),
  },
  {
    name: 'queue limit',
    summary: 'Limit how many jobs of queues may be ready, for how long, and how many may run',
    details:
      'Limits that are not given stay unchanged; none removes one. Limits apply to all ' +
      'processes. A program that sets them with the option queues of createPawl sets them again ' +
      'when it starts.',
    args: NAMES,
    options: [
      { flags: '--max-depth <count>', says: 'how many jobs may be ready, or none' },
      { flags: '--max-wait <duration>', says: 'how long a job may be ready, or none' },
      { flags: '--concurrency <count>', says: 'how many jobs may run (pawl limit set), or none' },
      ...OPERATOR_OPTIONS,
    ],
    examples: [
      ['pawl queue limit mail --max-depth 1000 --max-wait 5m --reason "INC-7"', 'both limits'],
      ['pawl queue limit mail --max-depth none --reason "INC-7 is over"', 'remove one of them'],
    ],
    run: limit,
  },
  {
    name: 'queue history',
    summary: 'List changes of queues, newest first, with operator and reason',
    args: [{ flags: '[queue]', says: 'the name of the queue; all if absent' }],
    options: PAGING_OPTIONS,
    examples: [
      ['pawl queue history mail', 'changes of one queue'],
      ['pawl queue history --json | jq "select(.operator == \\"ada\\")"', 'what ada changed'],
    ],
    run: history,
  },
]
