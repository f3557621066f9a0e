import { mkdirSync, writeFileSync } from 'node:fs'
import { openRuns } from 'pawl/runs'
import { report } from './report-run.ts'

mkdirSync('texts', { recursive: true })
writeFileSync('texts/a.txt', 'one two three')
writeFileSync('texts/b.txt', 'four five')

await using runs = await openRuns({ folder: 'runs', runs: [report] })
const handle = await runs.start(report, { runId: 'report-1', input: { folder: 'texts' } })
const outcome = await handle.result()
console.log(outcome.kind, outcome.run.run_state)

for (const { key, verdict, because } of (await runs.explain('report-1')).items) {
  console.log(key, verdict, because)
}
