/**
 * `npm run mutation [-- --mutate PATTERN] [-- --static] [-- --json]`: changes the core in every way
 * that Stryker knows, one change at a time, and counts which of them a test notices. Fails below
 * the score that stryker.config.json asks for.
 *
 * Stryker needs a newer Node than Pawl does, so both are installed apart when they are first
 * needed; where they cannot be, it exits with 3. It cannot read tsconfig.json, because TypeScript 7
 * has no interface for that, and does without.
 *
 * A mutant that cannot even be loaded, because a definition refuses it, counts as neither killed
 * nor alive. Those in tables and other constants are left out unless asked for with `--static`:
 * they are read once, while loading, so that all tests have to be loaded for each of them.
 */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { installApart, nodeOf } from '../scripts/install-apart.ts'

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    mutate: { type: 'string' },
    static: { type: 'boolean', default: false },
  },
})
const REPORT = '.build/mutation.json'
const home = join(process.cwd(), '.cache/mutation')
const start = performance.now()

if (await isInstalled()) {
  // A run that breaks off must not be told by the numbers of the one before.
  rmSync(REPORT, { force: true })
  process.exitCode = await mutate()
  if (values.json && existsSync(REPORT)) console.log(JSON.stringify(summary()))
} else process.exitCode = 3

async function isInstalled(): Promise<boolean> {
  try {
    await installApart('mutation', home)
    return true
  } catch (error) {
    console.error(`Nothing was mutated: Stryker and Node 24 cannot be installed here. ${error}`)
    return false
  }
}

async function mutate(): Promise<number> {
  const program = join(home, 'node_modules/@stryker-mutator/core/bin/stryker.js')
  const args = [program, 'run', 'mutation/stryker.config.json']
  if (values.mutate !== undefined) args.push('--mutate', values.mutate)
  if (!values.static) args.push('--ignoreStatic')
  // With --json the last line alone is for stdout.
  const child = spawn(nodeOf(home), args, { stdio: ['ignore', values.json ? 2 : 1, 2] })
  return new Promise((settle, fail) => {
    child.once('error', fail)
    child.once('close', (code) => settle(code ?? 1))
  })
}

/** How many mutants there were, and what became of them. */
function summary() {
  interface Report {
    files: Record<string, { mutants: { status: string }[] }>
  }
  const { files } = JSON.parse(readFileSync(REPORT, 'utf8')) as Report
  const counts: Record<string, number> = {}
  for (const { status } of Object.values(files).flatMap(({ mutants }) => mutants)) {
    counts[status] = (counts[status] ?? 0) + 1
  }
  const { Killed = 0, Timeout = 0, Survived = 0, NoCoverage = 0 } = counts
  const noticed = Killed + Timeout
  const score = Math.round((10_000 * noticed) / (noticed + Survived + NoCoverage)) / 100
  const minutes = Math.round((performance.now() - start) / 6_000) / 10
  return { score, mutants: counts, minutes }
}
