/** `pawl queue list` and `pawl worker list`. */
import { span } from '../../core/format.ts'
import type { QueueSummary } from '../../engine/reading.ts'
import { withPawl } from '../opening.ts'
import type { Call, CommandSpec } from '../spec.ts'
import { noteOf } from './queue-act.ts'

async function listQueues(call: Call): Promise<undefined> {
  const { output } = call
  await withPawl(call, async (pawl) => {
    const queues = await pawl.queues.list()
    if (output.json) {
      for (const queue of queues) output.record({ ...queue })
      return
    }
    if (queues.length === 0) output.say('There are no queues yet.')
    printQueues(call, queues, pawl.store.now())
  })
  return undefined
}

function printQueues({ output }: Call, queues: readonly QueueSummary[], now: number): void {
  const lanes = ['ready', 'waiting', 'held', 'parked', 'delivering', 'ended'] as const
  const columns = [
    { head: 'queue' },
    ...lanes.map((head) => ({ head, right: true })),
    { head: 'oldest ready', right: true },
    { head: 'workers', right: true },
    { head: 'note' },
  ]
  const rows = queues.map((queue) => {
    const { name, lanes: counts, readySince, workers } = queue
    const unserved = workers === 0 ? ['no live worker'] : []
    return [
      name,
      ...lanes.map((lane) => String(counts[lane])),
      readySince === undefined ? '-' : span(now - readySince),
      String(workers),
      [...noteOf(queue), ...unserved].join('; '),
    ]
  })
  output.table(columns, rows)
}

async function listWorkers(call: Call): Promise<undefined> {
  const { output } = call
  await withPawl(call, async (pawl) => {
    const workers = await pawl.workers.list()
    const now = pawl.store.now()
    if (output.json) {
      for (const worker of workers) output.record({ ...worker, types: worker.types ?? [] })
      return
    }
    if (workers.length === 0) output.say('No worker is known to this store.')
    const columns = [
      { head: 'worker' },
      { head: 'state' },
      { head: 'running', right: true },
      { head: 'queues' },
      { head: 'types' },
      { head: 'up', right: true },
      { head: 'seen' },
    ]
    const rows = workers.map((worker) => [
      worker.id,
      worker.activity,
      `${worker.running}/${worker.concurrency}`,
      worker.queues?.join(', ') ?? 'all',
      worker.types?.join(', ') ?? '',
      span(worker.seenAt - worker.startedAt),
      `${span(now - worker.seenAt)} ago`,
    ])
    output.table(columns, rows)
  })
  return undefined
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'queue list',
    summary: 'List queues: jobs by lane, oldest ready job, workers, pauses and limits',
    details: 'The note says if no live worker serves a queue.',
    examples: [
      ['pawl queue list', 'all queues'],
      ['pawl queue list --json | jq "select(.workers == 0).name"', 'queues without workers'],
    ],
    run: listQueues,
  },
  {
    name: 'worker list',
    summary: 'List workers: state, running jobs, queues, types, and when they last reported',
    details:
      'States: working (runs at least one job), idle, draining (stops; claims nothing more), ' +
      'gone (has not reported for 15 seconds).',
    examples: [['pawl worker list', 'all workers']],
    run: listWorkers,
  },
]
