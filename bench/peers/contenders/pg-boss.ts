import { inBatches, loadPeer, type Open, PAYLOAD, QUEUE, repeat } from '../contender.ts'
import { countOnPostgres } from '../counting.ts'

/** What is used of pg-boss. */
interface Boss {
  on(event: 'error', listener: (error: Error) => void): void
  start(): Promise<unknown>
  stop(options?: object): Promise<void>
  createQueue(name: string, options?: object): Promise<void>
  send(name: string, data: object): Promise<string | null>
  insert(name: string, jobs: readonly object[]): Promise<unknown>
  work(
    name: string,
    options: object,
    handler: (jobs: readonly object[]) => Promise<void>,
  ): Promise<string>
  offWork(name: string, options?: object): Promise<void>
}

interface Options {
  readonly boss?: object
  readonly queue?: object
  readonly work?: object
}

// `completed` only: a failed job would be one that the harness did not intend.
const COUNTS = {
  waiting: `SELECT count(*) FROM pgboss.job WHERE name = '${QUEUE}' AND state = 'created'`,
  finished: `SELECT count(*) FROM pgboss.job WHERE name = '${QUEUE}' AND state = 'completed'`,
}

export const openPgBoss: Open = async ({ home, place, options }) => {
  const { PgBoss } = await loadPeer<{ PgBoss: new (options: object) => Boss }>(home, 'pg-boss')
  const { boss: own = {}, queue = {}, work = {} } = options as Options
  const boss = new PgBoss({ connectionString: place, ...own })
  boss.on('error', (error) => process.stderr.write(`pg-boss: ${error.message}\n`))
  await boss.start()
  await boss.createQueue(QUEUE, queue)
  return {
    add: () => boss.send(QUEUE, PAYLOAD),
    addMany: (jobs) =>
      inBatches(jobs, 5000, (count) => boss.insert(QUEUE, repeat(count, { data: PAYLOAD }))),
    work: async (handler) => {
      await boss.work(QUEUE, work, async (jobs) => {
        await Promise.all(jobs.map(() => handler()))
      })
      return () => boss.offWork(QUEUE, { wait: true })
    },
    count: () => countOnPostgres(place, COUNTS),
    close: () => boss.stop({ graceful: true, close: true }),
  }
}
