/**
 * `npm run power -- [--states N] [--seed N] [--json]`: the power fails at moments of the life of a
 * SQLite file, and everything that was acknowledged must be there afterwards. A store that is
 * relaxed may lose the last writes, and a writer that never syncs must be caught losing some.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { missingFrom, moments, unsound, type WriterDurability } from './moments.ts'
import { canRecord } from './record.ts'

const { values } = parseArgs({
  options: {
    states: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
  },
})
const states = Number(values.states)
const seed = Number(values.seed)
if (!(states >= 1) || !Number.isInteger(seed)) {
  console.error('--states takes a number from 1, --seed a whole number')
  process.exit(2)
}
if (!canRecord()) {
  console.error('Power failures are not tested: strace is missing, or may not trace here.')
  console.log(values.json ? JSON.stringify({ skipped: true }) : 'skipped')
  process.exit(0)
}

const folder = mkdtempSync(join(tmpdir(), 'pawl-power-'))
const violations: string[] = []
try {
  const full = await failAll('full')
  const relaxed = await failAll('relaxed')
  const off = await failAll('off')
  for (const what of full.lossy) violations.push(`P1: lost an acknowledged write: ${what}`)
  if (off.lossy.length === 0) violations.push('vacuity: a writer that never syncs lost nothing')
  const count = ({ seen, lossy }: typeof full) => ({ states: seen, lossy: lossy.length })
  const counts = { full: count(full), relaxed: count(relaxed), off: count(off) }
  const summary = { seed, ...counts, violations }
  console.log(values.json ? JSON.stringify(summary) : summary)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exitCode = violations.length > 0 ? 1 : 0

/** How many states were looked at, and those in which something acknowledged was missing. */
async function failAll(durability: WriterDurability) {
  const lossy: string[] = []
  let seen = 0
  for await (const moment of moments(folder, { durability, states, seed })) {
    seen++
    if (missingFrom(moment).length > 0) lossy.push(moment.what)
    // Who writes without the store has no promises to keep.
    const found = durability === 'off' ? [] : await unsound(moment)
    violations.push(...found.map(({ promise, what }) => `${promise}: ${what}: ${moment.what}`))
  }
  return { seen, lossy }
}
