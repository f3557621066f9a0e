/**
 * `npm run syscalls -- [--part sqlite|runs] [--points N] [--json]`: a small process on a SQLite
 * file whose system calls fail, one at a time, or which dies at one; then a run in a folder whose
 * process dies at each call that changes something. Every call on these files is a point, with
 * every fate that it can have; `--points` takes fewer of each part, evenly spread. A broken promise
 * fails the command.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Judged } from '../../sim/checker.ts'
import { mapInLanes } from '../../test/processes/children.ts'
import { collectGarbage } from '../../test/support/garbage.ts'
import { canRecord } from '../power/record.ts'
import { judge } from './judge.ts'
import { strikeRuns } from './runs.ts'
import { countCalls, freshPlace, pointsOf, strike } from './strace.ts'

/** Two at a time: each is mostly a process that starts. */
const LANES = 2
const COLLECT_EVERY = 10

const { values } = parseArgs({
  options: {
    part: { type: 'string' },
    points: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})
const { part } = values
const max = Number(values.points ?? Number.MAX_SAFE_INTEGER)
if (!(max >= 1) || (part !== undefined && part !== 'sqlite' && part !== 'runs')) {
  console.error('--points takes a number from 1, and --part sqlite or runs')
  process.exit(2)
}
if (!canRecord()) {
  console.error('System calls are not tested: strace is missing, or may not trace here.')
  console.log(values.json ? JSON.stringify({ skipped: true }) : 'skipped')
  process.exit(0)
}

const folder = mkdtempSync(join(tmpdir(), 'pawl-syscalls-'))
const start = performance.now()
const isWanted = (name: string) => part === undefined || part === name
const counts = isWanted('sqlite')
  ? await countCalls(freshPlace(join(folder, 'counting')))
  : new Map()
const points = pointsOf(counts, max)
const hits: Record<string, number> = {}
const errors: Record<string, number> = {}
const violations: { point: string; found: Judged[] }[] = []
let done = 0

await mapInLanes(points, LANES, async (point) => {
  const name = `${point.call}-${point.n}-${point.fate}`
  const place = freshPlace(join(folder, name))
  const told = await strike(place, point)
  const found = await judge(place, point, told).catch((error): Judged[] => [
    { promise: 'P16', job: '', what: `it cannot be finished: ${error}`, facts: [] },
  ])
  count(hits, `${point.call} ${point.fate}`)
  for (const one of told.said) if (one.kind === 'error') count(errors, `${one.code}`)
  if (found.length > 0) violations.push({ point: name, found })
  else rmSync(place.folder, { recursive: true, force: true })
  if (++done % COLLECT_EVERY === 0) await collectGarbage()
  if (done % 100 === 0 && !values.json) console.error(`${done} of ${points.length} points`)
})

const runs = isWanted('runs') ? await strikeRuns(folder, max, LANES) : undefined
for (const { point, found } of violations) {
  for (const { promise, job, what } of found) console.error(`${point}: ${promise}: ${job} ${what}`)
}
for (const { point, found } of runs?.violations ?? [])
  console.error(`${point}: ${found.join('; ')}`)
const isBroken = violations.length + (runs?.violations.length ?? 0) > 0
const seconds = Math.round((performance.now() - start) / 1000)
const calls = Object.fromEntries(counts)
const summary = { points: points.length, seconds, calls, hits, errors, violations, runs }
console.log(values.json ? JSON.stringify(summary) : summary)
if (isBroken) console.error(`The files of these points are kept in ${folder}`)
else rmSync(folder, { recursive: true, force: true })
process.exitCode = isBroken ? 1 : 0

function count(into: Record<string, number>, name: string): void {
  into[name] = (into[name] ?? 0) + 1
}
