/** `pawl queue list` and `pawl worker list`. */
import { span } from '../../environment/times.ts'
import type { QueueInfo } from '../../stores/store.ts'
import { workerOf } from '../../stores/worker-info.ts'
import { withPawl } from '../opening.ts'
import type { Call, CommandSpec } from '../spec.ts'
import { noteOf } from './queue-act.ts'

async function listQueues(call: Call): Promise<undefined> {
  const { output } = call
  await withPawl(call, async ({ store }) => {
    const queues = await store.listQueues()
    const now = store.now()
    const workers = (await store.listWorkers()).map((row) => workerOf(row, now))
    const liveOn = ({ name }: QueueInfo) =>
      workers.filter(({ live, queues: own }) => live && (own?.includes(name) ?? true)).length
    if (output.json) {
      for (const queue of queues) {
        const { readySince } = queue
        const oldestReadyMs = readySince === undefined ? undefined : Math.max(0, now - readySince)
        output.record({ ...queue, oldestReadyMs, workers: liveOn(queue) })
      }
      return
    }
    if (queues.length === 0) output.say('There are no queues yet.')
    printQueues(call, queues, now, liveOn)
  })
  return undefined
}

function printQueues(
  { output }: Call,
  queues: readonly QueueInfo[],
  now: number,
  liveOn: (queue: QueueInfo) => number,
): void {
  const lanes = ['ready', 'waiting', 'held', 'parked', 'delivering', 'ended'] as const
  const columns = [
    { head: 'queue' },
    ...lanes.map((head) => ({ head, right: true })),
    { head: 'oldest ready', right: true },
    { head: 'workers', right: true },
    { head: 'note' },
  ]
  const rows = queues.map((queue) => {
    const { name, lanes: counts, readySince } = queue
    const workers = liveOn(queue)
    const lonely = workers === 0 ? ['no live worker'] : []
    return [
      name,
      ...lanes.map((lane) => String(counts[lane])),
      readySince === undefined ? '-' : span(now - readySince),
      String(workers),
      [...noteOf(queue), ...lonely].join('; '),
    ]
  })
  output.table(columns, rows)
}

async function listWorkers(call: Call): Promise<undefined> {
  const { output } = call
  await withPawl(call, async ({ store }) => {
    const now = store.now()
    const workers = (await store.listWorkers()).map((row) => workerOf(row, now))
    if (output.json) {
      for (const worker of workers) output.record({ ...worker, types: worker.types ?? [] })
      return
    }
    if (workers.length === 0) output.say('No worker has told of itself.')
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
      worker.live ? worker.state : 'silent',
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

/** Commands about queues and those who work on them. */
export const commands: readonly CommandSpec[] = [
  {
    name: 'queue list',
    summary: 'List queues: depth by lane, oldest ready job, pauses, bounds, and who works on them',
    details: 'A queue that no live worker takes jobs from says so.',
    examples: [
      ['pawl queue list', 'all queues'],
      ['pawl queue list --json | jq "select(.workers == 0).name"', 'where nobody works'],
    ],
    run: listQueues,
  },
  {
    name: 'worker list',
    summary: 'List workers: what they are doing, on which queues and types, and when last seen',
    details: 'A worker that has not told of itself for 15 seconds is silent.',
    examples: [['pawl worker list', 'all workers']],
    run: listWorkers,
  },
]
