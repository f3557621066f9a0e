// `npm test`: every check of the repository, in a fresh clone as well. All steps run even when one
// fails; what a step printed is shown only if it failed.
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { failedStep, failedTests, failureLines } from './failures.mjs'
import { build, install, PrepareError } from './prepare.mjs'
import { run } from './process.mjs'

const program = (name) => `.build/programs/scripts/${name}.js`
const testReport = '.build/vitest.json'
const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${testReport}`]
// What a brief run leaves out would be missing from the coverage.
const coverage = process.env.PAWL_TEST_BRIEF === undefined ? ['--coverage'] : []
const wholeReport = process.env.PAWL_TEST_BRIEF === undefined ? ['--report', testReport] : []

const steps = [
  { name: 'types', command: ['tsc', '--noEmit'] },
  { name: 'lint', command: ['biome', 'check', '--error-on-warnings'] },
  { name: 'dead-code', command: ['knip', '--no-progress', '--no-config-hints'] },
  { name: 'package', command: ['node', 'scripts/check-package.mjs'], build: 'needed' },
  { name: 'docs', command: ['node', program('generate-docs'), '--check'], build: 'needed' },
  // Most tests read the sources, so they tell something even when the build is broken.
  {
    name: 'tests',
    command: ['vitest', 'run', ...coverage, ...reporters],
    build: 'wanted',
    stream: true,
  },
  // After the tests, whose report says which of them were skipped on this machine. A run that
  // leaves tests out on purpose has no complete report.
  {
    name: 'requirements',
    command: ['node', program('check-requirements'), '--json', ...wholeReport],
    build: 'needed',
  },
]

const usage = `Usage: npm test -- [--json] [--only <step>]…
Steps: ${steps.map(({ name }) => name).join(', ')}
`

const { json, only } = readArguments()
const print = (line) => (json ? process.stderr : process.stdout).write(`${line}\n`)
const outcomes = []
const failures = []
let requirements = null

const installed = await perform('install', () => prepared(install))
const selected = installed ? steps.filter(({ name }) => !only || only.includes(name)) : []
const built = selected.some((step) => step.build) && (await perform('build', () => prepared(build)))
rmSync(testReport, { force: true })
for (const step of selected) {
  await perform(step.name, async () => {
    if (step.build === 'needed' && !built)
      return { ok: false, output: 'Needs the build, which failed.\n' }
    const [command, ...args] = step.command
    const { ok, stdout, stderr } = await run(command, args, { stream: step.stream })
    if (step.name === 'requirements') requirements = readRequirements(ok, stdout, stderr)
    const shown = step.stream ? 'No test failed; the output above says what else did.\n' : ''
    return { ok, output: stdout + stderr || shown }
  })
}
summarise()

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        help: { type: 'boolean' },
        json: { type: 'boolean', default: false },
        only: { type: 'string', multiple: true },
      },
    })
    if (values.help) {
      process.stdout.write(usage)
      process.exit(0)
    }
    const unknown = values.only?.find((name) => !steps.some((step) => step.name === name))
    if (unknown) throw new Error(`There is no step "${unknown}".`)
    return values
  } catch (error) {
    process.stderr.write(`${error.message}\n${usage}`)
    process.exit(2)
  }
}

/** Runs one step, prints its line, and its output if it failed. */
async function perform(name, action) {
  const start = performance.now()
  const { ok, output } = await action()
  const ms = Math.round(performance.now() - start)
  outcomes.push({ name, ok, ms })
  if (!ok) failures.push(...failuresOf(name, output))
  print(`${ok ? 'ok    ' : 'FAILED'}  ${name.padEnd(13)} ${(ms / 1000).toFixed(1).padStart(6)} s`)
  if (!ok && output) print(output.trimEnd().replace(/^/gm, '  '))
  return ok
}

/** What failed in a step; tests that failed are named one by one. */
function failuresOf(name, output) {
  const tests = name === 'tests' ? failedTests(testReport) : []
  return tests.length > 0 ? tests : [failedStep(name, output)]
}

async function prepared(preparation) {
  try {
    await preparation()
    return { ok: true }
  } catch (error) {
    if (!(error instanceof PrepareError)) throw error
    return { ok: false, output: error.message }
  }
}

function summarise() {
  const failed = outcomes.filter(({ ok }) => !ok).map(({ name }) => name)
  const tests = readTests()
  if (requirements) print(`\n${requirements.report}`)
  if (failures.length > 0) print(['', ...failureLines(failures)].join('\n'))
  print(failed.length ? `\nFailed: ${failed.join(', ')}` : '\nAll steps passed.')
  if (tests) print(`${tests.passed} passed, ${tests.failed} failed`)
  if (json) {
    const openRequirements = requirements?.open ?? null
    const result = { ok: failed.length === 0, steps: outcomes, tests, openRequirements, failures }
    process.stdout.write(`${JSON.stringify(result)}\n`)
  }
  process.exitCode = failed.length ? 1 : 0
}

/** The requirements step prints its report on stderr and one JSON object last on stdout. */
function readRequirements(ok, stdout, stderr) {
  // The report of a failed step has been shown already, and there may be no object at all.
  if (!ok) return null
  return { open: JSON.parse(stdout.trimEnd().split('\n').at(-1)).open, report: stderr.trimEnd() }
}

/** Counts the tests; a file that could not be loaded counts as one failed test. */
function readTests() {
  if (!existsSync(testReport)) return null
  const report = JSON.parse(readFileSync(testReport, 'utf8'))
  const unloaded = report.testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.length === 0,
  )
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + unloaded.length,
    skipped: report.numPendingTests + report.numTodoTests,
    files: report.testResults.length,
  }
}
