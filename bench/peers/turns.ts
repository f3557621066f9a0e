/** One turn: a new database, and one contender in one process or several, on Node 24. */
import { execFile } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { nodeOf } from '../../scripts/install-apart.ts'
import { inFolder } from '../measure.ts'
import { execute, inDatabase } from '../postgres-server.ts'
import type { Order } from './child.ts'
import type { MeasureName, Outcome, Shared } from './measures.ts'
import type { Metric } from './metrics.ts'
import type { Servers } from './servers.ts'
import type { Contender } from './settings.ts'

const run = promisify(execFile)
/** A turn that takes longer hangs. */
const TURN_MS = 180_000

/** Where turns run. */
export interface Grounds {
  readonly home: string
  readonly servers: Servers
}

/** Measures a contender once. */
export function takeTurn(grounds: Grounds, metric: Metric, contender: Contender): Promise<number> {
  const { servers } = grounds
  switch (contender.database) {
    case 'postgres': {
      const { url, pid } = servers.postgres
      return inDatabase(url, (place) => measureAt(grounds, metric, contender, { place, pid }))
    }
    case 'sqlite':
      return inFolder((folder) => {
        return measureAt(grounds, metric, contender, { place: join(folder, 'jobs.db') })
      })
    case 'redis':
      return servers.withRedis((place) => measureAt(grounds, metric, contender, { place }))
  }
}

interface Ground {
  readonly place: string
  readonly pid?: number | undefined
}

async function measureAt(
  { home }: Grounds,
  metric: Metric,
  { library, options, database, jobsMost }: Contender,
  { place, pid }: Ground,
): Promise<number> {
  const jobs = metric.fill ? Math.min(metric.jobs, jobsMost) : metric.jobs
  const order = (measure: MeasureName): Order => ({
    home,
    place,
    library,
    measure,
    options,
    jobs,
    limitMs: metric.limitMs ?? TURN_MS,
    steps: metric.steps ?? false,
    ...(pid !== undefined && { serverPid: pid }),
  })
  const child = (measure: MeasureName) => inChild(home, order(measure))
  const isOnPostgres = database === 'postgres'
  const size = () => (isOnPostgres ? sizeOnPostgres(place) : sizeOfFile(place))
  if (metric.measure === 'bytesPerJob') {
    await inChild(home, { ...order('fill'), jobs: 0 })
    const before = await size()
    await child('fill')
    await child('drain')
    return ((await size()) - before) / jobs
  }
  if (metric.fill) await child('fill')
  // A server that has run for a while has statistics of its tables.
  if (metric.fill && isOnPostgres) await execute(place, 'VACUUM ANALYZE')
  if (metric.measure !== 'twoProcesses') return (await child(metric.measure)) as number
  const shares = (await Promise.all([child('share'), child('share')])) as Shared[]
  return rateOf(jobs, shares)
}

/** The rate of several processes together. */
function rateOf(jobs: number, shares: readonly Shared[]): number {
  const calls = shares.reduce((sum, share) => sum + share.calls, 0)
  if (calls !== jobs) throw new Error(`${calls} calls of handlers for ${jobs} jobs`)
  if (shares.some((share) => share.calls === 0)) throw new Error('One process did all the work.')
  const first = Math.min(...shares.map((share) => share.first))
  const last = Math.max(...shares.map((share) => share.last))
  return (jobs / (last - first)) * 1000
}

async function inChild(home: string, order: Order): Promise<Outcome> {
  const program = fileURLToPath(new URL('child.js', import.meta.url))
  const flags = ['--experimental-import-meta-resolve', '--expose-gc', '--no-warnings']
  const { stdout } = await run(nodeOf(home), [...flags, program, JSON.stringify(order)], {
    timeout: TURN_MS,
    killSignal: 'SIGKILL',
    maxBuffer: 64 * 1024 * 1024,
  })
  return JSON.parse(stdout.trim().split('\n').at(-1) as string) as Outcome
}

async function sizeOnPostgres(url: string): Promise<number> {
  await execute(url, 'CHECKPOINT')
  const [row] = (await execute(url, 'SELECT pg_database_size(current_database()) AS size')) as {
    size: string
  }[]
  return Number(row?.size)
}

async function sizeOfFile(path: string): Promise<number> {
  const sizes = [path, `${path}-wal`].map((file) => statSync(file, { throwIfNoEntry: false })?.size)
  return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0)
}
