// Checks that every requirement names a test that exists or says that it is open, and lists the
// open ones. With --report, once for each step of tests, it also checks that each test ran. Tests
// of `npm run prove` need not have run yet, unless --proven says that they have.
// With --json the last line on stdout is one object and all else goes to stderr.
import { existsSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { proveOnly } from '../test/support/extent.ts'
import { checkRequirements } from './requirements/check.ts'
import { readReport } from './requirements/report.ts'

const document = 'docs/internals/requirements.md'

const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    report: { type: 'string', multiple: true },
    proven: { type: 'boolean', default: false },
    quiet: { type: 'boolean', default: false },
  },
})
const print = (line: string) => (options.json ? process.stderr : process.stdout).write(`${line}\n`)

const read = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined)
const reports = (options.report ?? []).flatMap((path) => read(path) ?? [])
const isComplete = reports.length > 0 && reports.length === options.report?.length
const isLater = (path: string) => !options.proven && proveOnly.includes(path)
const ran = isComplete ? readReport(reports, process.cwd(), isLater) : undefined
const { rows, tested, later, open, openByArea, problems } = checkRequirements(
  read(document) ?? '',
  read,
  ran,
)

const laterText = later > 0 ? ` (${later} of them also need npm run prove)` : ''
print(`${rows} requirements: ${tested} tested${laterText}, ${open} open`)
if (!options.quiet) {
  for (const [area, ids] of openByArea)
    print(`  open in ${area} (${ids.length}): ${ids.join(', ')}`)
}
for (const problem of problems) print(`${document}: ${problem}`)
if (options.json)
  process.stdout.write(`${JSON.stringify({ rows, tested, later, open, problems })}\n`)
process.exitCode = problems.length > 0 ? 1 : 0
