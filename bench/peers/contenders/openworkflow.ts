import { byCallers, loadPeer, type Open, PAYLOAD, STEPS, TYPE } from '../contender.ts'
import { countOnPostgres, countOnSqlite } from '../counting.ts'

/** What is used of OpenWorkflow. */
interface Client {
  defineWorkflow(
    spec: { name: string },
    run: (context: { step: Step }) => Promise<void>,
  ): { run(input: object): Promise<unknown> }
  newWorker(options: object): { start(): Promise<void>; stop(): Promise<void> }
}

interface Step {
  run(spec: { name: string }, work: () => unknown): Promise<unknown>
}

interface Backend {
  stop(): Promise<void>
}

interface Backends {
  BackendPostgres: { connect(url: string): Promise<Backend> }
  BackendSqlite: { connect(path: string): Backend }
}

const DONE = `status IN ('completed', 'succeeded')`

const counts = (schema: string) => ({
  waiting: `SELECT count(*) FROM ${schema}workflow_runs WHERE status = 'pending'`,
  finished: `SELECT count(*) FROM ${schema}workflow_runs WHERE ${DONE}`,
  steps: `SELECT count(*) FROM ${schema}step_attempts WHERE ${DONE}`,
})

export const openOpenWorkflow: Open = async ({ home, place, options, steps }) => {
  const { OpenWorkflow } = await loadPeer<{ OpenWorkflow: new (parts: object) => Client }>(
    home,
    'openworkflow',
  )
  const onPostgres = place.startsWith('postgres:')
  const kind = onPostgres ? 'openworkflow/postgres' : 'openworkflow/sqlite'
  const { BackendPostgres, BackendSqlite } = await loadPeer<Backends>(home, kind)
  const backend = onPostgres ? await BackendPostgres.connect(place) : BackendSqlite.connect(place)
  const client = new OpenWorkflow({ backend })
  let handler: () => void | Promise<void> = () => {}
  const workflow = client.defineWorkflow({ name: TYPE }, async ({ step }) => {
    for (let i = 0; steps && i < STEPS; i++) await step.run({ name: `step-${i}` }, () => i)
    await handler()
  })
  return {
    add: () => workflow.run(PAYLOAD),
    // It has no call for many.
    addMany: (jobs) => byCallers(jobs, 50, () => workflow.run(PAYLOAD)),
    work: async (given) => {
      handler = given
      const worker = client.newWorker(options)
      await worker.start()
      return () => worker.stop()
    },
    count: async () =>
      onPostgres
        ? countOnPostgres(place, counts('openworkflow.'))
        : countOnSqlite(place, counts('')),
    close: () => backend.stop(),
  }
}
