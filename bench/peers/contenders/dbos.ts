import { byCallers, loadPeer, type Open, PAYLOAD, QUEUE, STEPS, TYPE } from '../contender.ts'
import { countOnPostgres } from '../counting.ts'

/** What is used of DBOS. */
interface Dbos {
  DBOS: {
    setConfig(config: object): void
    migrate(url: string): Promise<void>
    launch(): Promise<void>
    shutdown(): Promise<void>
    registerWorkflow(run: () => Promise<void>, config: object): unknown
    registerQueue(name: string, options: object): Promise<unknown>
    runStep(work: () => Promise<unknown>, config: object): Promise<unknown>
  }
  DBOSClient: {
    create(options: object): Promise<{
      enqueue(options: object, ...args: unknown[]): Promise<unknown>
      destroy(): Promise<void>
    }>
  }
}

interface Options {
  readonly config?: object
  readonly queue?: object
}

const COUNTS = {
  waiting: `SELECT count(*) FROM dbos.workflow_status WHERE status = 'ENQUEUED'`,
  finished: `SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'`,
  steps: 'SELECT count(*) FROM dbos.operation_outputs',
}

export const openDbos: Open = async ({ home, place, options, steps }) => {
  const { DBOS, DBOSClient } = await loadPeer<Dbos>(home, '@dbos-inc/dbos-sdk')
  const { config = {}, queue = {} } = options as Options
  await DBOS.migrate(place)
  const client = await DBOSClient.create({ systemDatabaseUrl: place })
  const logger = { info: () => {}, debug: () => {}, warn: () => {}, error: console.error }
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: place, logger, ...config })
  let handler: () => void | Promise<void> = () => {}
  const run = async () => {
    for (let i = 0; steps && i < STEPS; i++) {
      await DBOS.runStep(async () => i, { name: `step-${i}` })
    }
    await handler()
  }
  DBOS.registerWorkflow(run, { name: TYPE })
  const add = () => client.enqueue({ queueName: QUEUE, workflowName: TYPE }, PAYLOAD)
  return {
    add,
    // It has no public call for many.
    addMany: (jobs) => byCallers(jobs, 50, add),
    work: async (given) => {
      handler = given
      await DBOS.launch()
      await DBOS.registerQueue(QUEUE, queue)
      return () => DBOS.shutdown()
    },
    count: () => countOnPostgres(place, COUNTS),
    close: () => client.destroy(),
  }
}
