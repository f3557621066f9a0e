/**
 * `npm run chaos -- --seconds N [--store sqlite|postgres|both] [--workers N] [--seed N] [--json]`:
 * real processes on real stores, among them a monkey that kills, stops and cuts for so long. Both
 * stores are run at the same time. A broken promise fails the command; then the folder with the
 * logs is kept, and the facts that show it are printed.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type RunResult, run, type StoreKind } from './run.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    store: { type: 'string', default: 'both' },
    workers: { type: 'string', default: '3' },
    seed: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})

const KINDS = { sqlite: ['sqlite'], postgres: ['postgres'], both: ['sqlite', 'postgres'] } as const
const SHOWN_MAX = 20

const wanted = Object.entries(KINDS).find(([name]) => name === values.store)?.[1]
const seconds = Number(values.seconds)
const workers = Number(values.workers)
const seed = Number(values.seed ?? Math.floor(Math.random() * 1_000_000))
const isSound = seconds > 0 && Number.isInteger(workers) && workers > 0 && Number.isInteger(seed)
if (wanted === undefined || !isSound) {
  console.error(
    '--seconds and --workers take numbers from 1, --store takes sqlite, postgres or both',
  )
  process.exit(2)
}

// An interrupted run leaves no process behind, not even a stopped one.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

const folder = mkdtempSync(join(tmpdir(), 'pawl-chaos-'))
const tell = (line: string) => {
  if (!values.json) console.error(line)
}
const runOn = async (store: StoreKind): Promise<[StoreKind, RunResult]> => [
  store,
  await run({ store, seconds, workers, seed, folder, tell }),
]
const results = await Promise.all(wanted.map(runOn))

for (const [store, { violations }] of results) {
  for (const { promise, job, what, facts } of violations.slice(0, SHOWN_MAX)) {
    console.error(`${store}: ${promise}: ${job} ${what}`)
    for (const fact of facts) console.error(`  ${JSON.stringify(fact)}`)
  }
}
const isBroken = results.some(([, { violations }]) => violations.length > 0)
const stores = results.map(([store, { faults, ...rest }]) => [store, { ...faults, ...rest }])
const summary = { seconds, seed, stores: Object.fromEntries(stores) }
console.log(values.json ? JSON.stringify(summary) : summary)
if (isBroken) console.error(`Files and logs are kept in ${folder}`)
else rmSync(folder, { recursive: true, force: true })
process.exitCode = isBroken ? 1 : 0
