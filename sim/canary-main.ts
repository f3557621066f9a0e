/**
 * `npm run canaries [-- --only TEXT] [--json]`: plants each bug of `canaries.ts` in a copy of the
 * built package, and lets the simulator look for it. All must be caught, each by the promise that
 * it breaks.
 */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { CANARIES } from './canaries.ts'
import type { Canary } from './planted.ts'

const SEEDS_MAX = 400
/** Of wall time: all seeds take about three minutes of a core, and other tests may use it, too. */
const TIMEOUT_MS = 6 * 60_000

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    json: { type: 'boolean', default: false },
  },
})

/** What became of a canary. */
interface Caught {
  readonly name: string
  readonly caught: boolean
  readonly promise: string
  readonly seeds: number
  /** Further promises that were found broken. */
  readonly others: readonly string[]
}

const chosen = CANARIES.filter(({ name }) => name.includes(values.only))
const results: Caught[] = []
let next = 0
await Promise.all(Array.from({ length: availableParallelism() }, hunt))
report()

async function hunt(): Promise<void> {
  for (let i = next++; i < chosen.length; i = next++) {
    const canary = chosen[i] as Canary
    const result = await release(canary, i)
    results[i] = result
    const { caught, promise, seeds, others } = result
    const how = caught ? `caught by ${promise}` : `NOT caught (${others.join(', ') || 'nothing'})`
    console.error(`${canary.name}: ${how} in ${seeds} seeds`)
  }
}

/** Plants the bug and lets it be looked for. */
async function release({ name, promise, changes }: Canary, i: number): Promise<Caught> {
  const folder = join('.cache', 'canaries', String(i))
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const isCode = (path: string) => !/\.(map|ts)$/.test(path)
  cpSync('dist', join(folder, 'dist'), { recursive: true, filter: isCode })
  cpSync('.build/programs/sim', join(folder, 'sim'), { recursive: true, filter: isCode })
  cpSync('specs', join(folder, 'specs'), { recursive: true })
  cpSync('package.json', join(folder, 'package.json'))
  for (const { file, find, put } of changes) {
    const path = join(folder, 'dist', file)
    const parts = readFileSync(path, 'utf8').split(find)
    if (parts.length !== 2) {
      throw new Error(`"${name}" no longer fits: ${file} has ${parts.length - 1} times ${find}`)
    }
    writeFileSync(path, parts.join(put))
  }
  const run = promisify(execFile)
  const program = [join(folder, 'sim', 'hunt.js'), promise, String(SEEDS_MAX)]
  try {
    const { stdout } = await run(process.execPath, program, { timeout: TIMEOUT_MS })
    return { name, promise, ...(JSON.parse(stdout) as Omit<Caught, 'name' | 'promise'>) }
  } catch (error) {
    // A bug that ends the simulator, or makes it run without end, is noticed, but by no promise.
    return { name, promise, caught: false, seeds: 0, others: [String(error).split('\n')[0] ?? ''] }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function report(): void {
  const caught = results.filter((result) => result.caught).length
  const total = results.length
  const canaries = results.map(({ name, caught, promise, seeds }) => ({
    name,
    caught,
    promise,
    seeds,
  }))
  if (values.json) console.log(JSON.stringify({ total, caught, canaries }))
  else console.log(`${caught} of ${total} planted bugs were caught`)
  process.exitCode = caught === total ? 0 : 1
}
