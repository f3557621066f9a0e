// `npm run bench -- <name> [--quick] [--only <part of a name>] [--json]`: progress on stderr; with
// --json the last line on stdout is one JSON object. Without a name, the names are listed.
import { parseArgs } from 'node:util'
import { benchDashboard } from './dashboard.ts'
import { benchDoctor } from './doctor.ts'
import { benchEngine } from './engine.ts'
import { benchHttp } from './http.ts'
import { benchLimits } from './limits.ts'
import type { Result } from './measure.ts'
import { benchPeers, type PeerResult } from './peers/compare.ts'
import { benchPostgres } from './postgres-stores.ts'
import { benchRetention } from './retention.ts'
import { benchRuns } from './runs.ts'
import { benchSchedules } from './schedules.ts'
import { benchStores } from './stores.ts'
import { benchWaiting } from './waiting.ts'

/** What every benchmark is told. */
type Bench = (options: { quick: boolean; only?: string }) => Promise<(Result | PeerResult)[]>

const benches: Readonly<Record<string, Bench>> = {
  dashboard: benchDashboard,
  doctor: benchDoctor,
  engine: benchEngine,
  limits: benchLimits,
  retention: benchRetention,
  http: benchHttp,
  peers: benchPeers,
  runs: benchRuns,
  schedules: benchSchedules,
  waiting: benchWaiting,
  stores: async (options) => [...(await benchStores(options)), ...(await benchPostgres(options))],
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
  },
})
const [name = ''] = positionals
const bench = Object.hasOwn(benches, name) ? benches[name] : undefined
if (bench === undefined) {
  process.stderr.write(`Name one of: ${Object.keys(benches).join(', ')}\n`)
  process.exit(1)
}
const { quick, only } = values
const results = await bench({ quick, ...(only !== undefined && { only }) })
if (values.json) process.stdout.write(`${JSON.stringify({ results })}\n`)
else for (const result of results) process.stdout.write(`${format(result)}\n`)

function format(result: Result | PeerResult): string {
  const { name, pawl, ratio } = result
  const other = 'reference' in result ? result.reference : result.peer
  const columns = [pawl, other].map((number) => String(number).padStart(10))
  return `${name.padEnd(70)}${columns.join('')}${ratio.toFixed(2).padStart(8)}`
}
