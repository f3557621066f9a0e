// Checks that every requirement names a test that exists or says that it is open, and lists the
// open ones. With --report it also checks that each test ran, by vitest's report of a complete run.
// With --json the last line on stdout is one object and all else goes to stderr.
import { existsSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { checkRequirements } from './requirements/check.ts'
import { readReport } from './requirements/report.ts'

const document = 'docs/internals/requirements.md'

const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    report: { type: 'string' },
    quiet: { type: 'boolean', default: false },
  },
})
const print = (line: string) => (options.json ? process.stderr : process.stdout).write(`${line}\n`)

const read = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined)
const report = options.report === undefined ? undefined : read(options.report)
const ran = report === undefined ? undefined : readReport(report, process.cwd())
const { rows, tested, open, openByArea, problems } = checkRequirements(
  read(document) ?? '',
  read,
  ran,
)

print(`${rows} requirements: ${tested} tested, ${open} open`)
if (!options.quiet) {
  for (const [area, ids] of openByArea)
    print(`  open in ${area} (${ids.length}): ${ids.join(', ')}`)
}
for (const problem of problems) print(`${document}: ${problem}`)
if (options.json) process.stdout.write(`${JSON.stringify({ rows, tested, open, problems })}\n`)
process.exitCode = problems.length > 0 ? 1 : 0
