// Against a queue that people use: graphile-worker, in the best settings that are known for it, on
// the same server and the same Node. Both drain jobs that do nothing; each turn is a process of its
// own with a new database. The peer and its Node are a package of their own (bench/peers), which
// is installed when it is first needed.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { installApart, nodeOf } from '../scripts/install-apart.ts'
import { compare, type Result } from './measure.ts'
import type { DrainOrder } from './postgres-peer-drain.ts'
import { inDatabase, type Measurement } from './postgres-server.ts'

const run = promisify(execFile)
const NAME = 'postgres: drain, batches of 500, against graphile-worker'
const ROUNDS = 3
const SETTINGS = [
  { concurrentJobs: 100, localQueue: 1000 },
  { concurrentJobs: 24, localQueue: 500 },
]

/** The better of the peer's settings counts. */
export const againstPeer: Measurement = {
  names: [NAME],
  run: async (serverUrl, _, quick) => {
    const home = await install()
    if (home === undefined) return []
    const jobs = quick ? 20_000 : 200_000
    const rate = (order: DrainOrder) => () =>
      inDatabase(serverUrl, (url) => rateInChild(home, url, order))
    const own = rate({ kind: 'pawl', jobs, batch: 500, connections: 2, callers: 4 })
    const results: Result[] = []
    for (const { concurrentJobs, localQueue } of SETTINGS) {
      const name = `${NAME} ${concurrentJobs}/${localQueue}`
      const other = rate({ kind: 'graphile-worker', jobs, home, concurrentJobs, localQueue })
      results.push(await compare(name, ROUNDS, own, other))
    }
    const [best] = results.sort((a, b) => b.reference - a.reference)
    return best === undefined ? [] : [{ ...best, name: NAME }]
  },
}

async function rateInChild(home: string, url: string, order: DrainOrder): Promise<number> {
  const program = fileURLToPath(new URL('postgres-peer-drain.js', import.meta.url))
  const { stdout } = await run(nodeOf(home), [program, url, JSON.stringify(order)])
  return Number(stdout)
}

/** The folder with the peer; nothing where it is not to be had. */
async function install(): Promise<string | undefined> {
  const home = join(process.cwd(), '.cache/bench-peers')
  try {
    await installApart('bench/peers', home)
    return home
  } catch (error) {
    process.stderr.write(`Not measured: ${NAME}. It cannot be installed: ${error}\n`)
    return undefined
  }
}
