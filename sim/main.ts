/**
 * `npm run sim -- --seeds N [--from N] [--seed N --trace] [--json]`: plays seeds one after the
 * other and tells what came of them. A seed with a violation fails the command, and can be played
 * again.
 */
import { parseArgs } from 'node:util'
import { type SimResult, simulate } from './engine.ts'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '100' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    trace: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})

const first = Number(values.seed ?? values.from)
const last = values.seed === undefined ? first + Number(values.seeds) - 1 : first
const results: SimResult[] = []
for (let seed = first; seed <= last; seed++) {
  const result = await simulate(seed)
  results.push(result)
  if (values.trace) console.error(result.trace)
  for (const violation of result.violations) console.error(`seed ${seed}: ${violation}`)
  if (seed % 50 === 0) console.error(`${seed - first + 1} of ${last - first + 1} seeds`)
}

const violations = results.reduce((sum, result) => sum + result.violations.length, 0)
const faults: Record<string, number> = {}
for (const result of results) {
  for (const [kind, count] of Object.entries(result.faults)) {
    faults[kind] = (faults[kind] ?? 0) + count
  }
}
const simulatedMs = results.reduce((sum, result) => sum + result.simulatedMs, 0)
const simulatedDays = Math.round((simulatedMs / 86_400_000) * 1000) / 1000
const summary = { seeds: results.length, violations, simulatedDays, faults }
console.log(values.json ? JSON.stringify(summary) : summary)
process.exitCode = violations === 0 ? 0 : 1
