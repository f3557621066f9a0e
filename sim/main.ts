/**
 * `npm run sim -- --seeds N [--from N] [--seed N --trace] [--parallel N] [--json]`: plays seeds and
 * tells what came of them. A seed with a violation fails the command, says which promise is broken
 * and by which facts, and can be played again.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Report } from './report.ts'
import { simulate } from './world.ts'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    parallel: { type: 'string', default: '1' },
    trace: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})

const from = Number(values.seed ?? values.from)
const count = values.seed === undefined ? Number(values.seeds) : 1
const parallel = Math.min(Number(values.parallel), count)
for (const [name, value] of Object.entries({ from, count, parallel })) {
  if (Number.isSafeInteger(value) && value >= 1) continue
  throw new RangeError(`${name} must be a whole number from 1`)
}
const report = new Report(count)
if (parallel > 1) await Promise.all(Array.from({ length: parallel }, (_, i) => playElsewhere(i)))
else await playHere()
report.end(values.json)
process.exitCode = report.isClean ? 0 : 1

async function playHere(): Promise<void> {
  for (let seed = from; seed < from + count; seed++) {
    const result = await simulate(seed, { trace: values.trace })
    report.add(result)
    for (const line of result.trace) console.log(line)
    process.send?.(result)
  }
}

/** Plays a share of the seeds in another process, which sends what came of each. */
function playElsewhere(i: number): Promise<void> {
  const share = Math.floor(count / parallel)
  const first = from + i * share
  const seeds = i === parallel - 1 ? count - i * share : share
  const child = fork(
    fileURLToPath(import.meta.url),
    ['--from', String(first), '--seeds', String(seeds), '--json'],
    { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] },
  )
  child.on('message', (result) => report.add(result as Parameters<Report['add']>[0]))
  return new Promise((resolve, reject) => {
    child.on('exit', (code) => {
      // 1 means that a promise is broken, or that it died: then seeds are missing from the report.
      if (code === 0 || code === 1) resolve()
      else reject(new Error(`A process of the simulation ended with ${code}`))
    })
  })
}
