// A process that fills a new database with jobs that do nothing, drains them in the way that its
// order says, and prints how many it did per second. Arguments: the connection string, and the
// order as JSON.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type Held, openPostgresStore } from 'pawl/postgres'
import { timed } from './measure.ts'
import { fill } from './postgres-loads.ts'
import { execute } from './postgres-server.ts'
import { INPUT, requestOf, settleAll } from './stores.ts'

/** Who drains, how many jobs, and how. */
export type DrainOrder = PawlOrder | GraphileOrder

interface PawlOrder {
  readonly kind: 'pawl'
  readonly jobs: number
  readonly batch: number
  readonly connections: number
  /** How many share them, so that a connection has its next statement while one works. */
  readonly callers: number
}

interface GraphileOrder {
  readonly kind: 'graphile-worker'
  readonly jobs: number
  /** Where the package is installed. */
  readonly home: string
  readonly concurrentJobs: number
  readonly localQueue: number
}

/** What is used of graphile-worker. */
interface GraphileWorker {
  makeWorkerUtils(options: object): Promise<{
    migrate(): Promise<void>
    addJobs(jobs: readonly object[]): Promise<unknown>
    release(): Promise<void>
  }>
  run(options: object): Promise<{ stop(): Promise<void> }>
  Logger: new (factory: () => () => void) => unknown
}

const TASK = 'send-mail'
const ADD_AT_ONCE = 5000

const noop = async () => {}

const [url = '', text = ''] = process.argv.slice(2)
const order = JSON.parse(text) as DrainOrder
const ms = order.kind === 'pawl' ? await drainPawl(order) : await drainGraphile(order)
process.stdout.write(`${(order.jobs / ms) * 1000}\n`)

/** From the first claim to the answer to the last commit. */
async function drainPawl({ jobs, batch, connections, callers }: PawlOrder): Promise<number> {
  await using store = await openPostgresStore({ connectionString: url, connections })
  await fill(url, jobs)
  const loop = async () => {
    let held: readonly Held[] = await store.claim(requestOf({ batch, jobs }))
    while (held.length > 0) {
      await Promise.all(held.map(noop))
      held = await settleAll(store, held, { batch, jobs })
    }
  }
  return await timed(async () => {
    await Promise.all(Array.from({ length: callers }, loop))
  })
}

/** From the first job to the last, so that neither its start nor its end are held against it. */
async function drainGraphile(order: GraphileOrder): Promise<number> {
  const from = createRequire(join(order.home, 'package.json'))
  const graphile = from('graphile-worker') as GraphileWorker
  const logger = new graphile.Logger(() => () => {})
  await addGraphileJobs(graphile, logger, order.jobs)
  let start = 0
  let done = 0
  let finish: (ms: number) => void
  const finished = new Promise<number>((resolve) => {
    finish = resolve
  })
  const task = async () => {
    if (done === 0) start = performance.now()
    if (++done === order.jobs) finish(performance.now() - start)
  }
  const worker = {
    connectionString: url,
    logger,
    concurrentJobs: order.concurrentJobs,
    maxPoolSize: order.concurrentJobs + 1,
    localQueue: { size: order.localQueue },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  }
  const runner = await graphile.run({ preset: { worker }, taskList: { [TASK]: task } })
  const ms = await finished
  await runner.stop()
  return ms
}

async function addGraphileJobs({ makeWorkerUtils }: GraphileWorker, logger: unknown, jobs: number) {
  const utils = await makeWorkerUtils({ connectionString: url, logger })
  await utils.migrate()
  const payload = JSON.parse(INPUT) as unknown
  for (let left = jobs; left > 0; left -= ADD_AT_ONCE) {
    const length = Math.min(left, ADD_AT_ONCE)
    await utils.addJobs(Array.from({ length }, () => ({ identifier: TASK, payload })))
  }
  await utils.release()
  await execute(url, 'VACUUM ANALYZE')
}
