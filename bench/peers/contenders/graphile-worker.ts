import { inBatches, loadPeer, type Open, PAYLOAD, repeat, TYPE } from '../contender.ts'
import { countOnPostgres } from '../counting.ts'

/** What is used of graphile-worker. */
interface GraphileWorker {
  makeWorkerUtils(options: object): Promise<{
    migrate(): Promise<void>
    addJob(identifier: string, payload: object): Promise<unknown>
    addJobs(jobs: readonly object[]): Promise<unknown>
    release(): Promise<void>
  }>
  run(options: object): Promise<{ stop(): Promise<void> }>
  Logger: new (factory: () => () => void) => unknown
}

const COUNTS = {
  waiting: 'SELECT count(*) FROM graphile_worker.jobs WHERE locked_at IS NULL',
  // It deletes finished jobs, so what is gone is finished; failed ones stay.
  finished: `SELECT coalesce(
      pg_sequence_last_value(pg_get_serial_sequence('graphile_worker._private_jobs', 'id')), 0
    ) - (SELECT count(*) FROM graphile_worker.jobs) AS count`,
}

export const openGraphileWorker: Open = async ({ home, place, options }) => {
  const graphile = await loadPeer<GraphileWorker>(home, 'graphile-worker')
  const logger = new graphile.Logger(() => () => {})
  const utils = await graphile.makeWorkerUtils({ connectionString: place, logger })
  await utils.migrate()
  return {
    add: () => utils.addJob(TYPE, PAYLOAD),
    addMany: (jobs) =>
      inBatches(jobs, 5000, (count) =>
        utils.addJobs(repeat(count, { identifier: TYPE, payload: PAYLOAD })),
      ),
    work: async (handler) => {
      const preset = { worker: { connectionString: place, logger, ...options } }
      const taskList = { [TYPE]: async () => handler() }
      const runner = await graphile.run({ preset, taskList, noHandleSignals: true })
      return () => runner.stop()
    },
    count: () => countOnPostgres(place, COUNTS),
    close: () => utils.release(),
  }
}
