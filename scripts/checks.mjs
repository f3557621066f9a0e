// Runs the steps of `npm test` and of `npm run prove` and tells how they ended. All steps run even
// when one fails. What a step printed is shown only if it failed, and its failures are repeated
// last, right before the result.
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { failedStep, failedTests, failureLines } from './failures.mjs'
import { build, install, PrepareError } from './prepare.mjs'
import { run } from './process.mjs'

/** How much is shown of what tests have printed, if the report says which of them failed. */
const OUTPUT_LINES_MAX = 20

/**
 * A step. `build` says whether it needs what was built, or is run even if the build failed
 * ('wanted'). `report` is where a step of tests leaves its report; such a step shows its progress.
 * The last line that a step with `result` prints on stdout is a JSON object, which `summary` takes.
 *
 * @typedef {{
 *   name: string, command: string[], env?: Record<string, string>, report?: string,
 *   build?: 'needed' | 'wanted', summary?: (result: any, text: string) => void
 * }} Step
 */

/** The command that runs tests with our reporter, and the file of their report. */
export function vitest(name, args, env = {}) {
  const report = `.build/${name}.json`
  return {
    name,
    report,
    command: [
      ...['vitest', 'run', ...args, '--reporter=./scripts/progress.mjs', '--reporter=json'],
      `--outputFile.json=${report}`,
    ],
    env: { PAWL_TEST_DETAILS: detailsOf(report), PAWL_TEST_PROGRESS: '3', ...env },
    build: 'wanted',
  }
}

/** What the command line asks for; ends the process if it is wrong. */
export function readArguments(usage, steps, more = {}) {
  try {
    const { values } = parseArgs({
      options: {
        help: { type: 'boolean' },
        json: { type: 'boolean', default: false },
        only: { type: 'string', multiple: true },
        ...more,
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

/** Installs, builds, and runs the steps, or only those that are named. */
export async function runSteps(steps, { json, only, seed }) {
  const checks = new Checks(json, seed)
  await checks.run(steps.filter(({ name }) => !only || only.includes(name)))
}

class Checks {
  #json
  #seed
  #outcomes = []
  #failures = []
  #tests = null
  #notes = []
  #extra = {}

  constructor(json, seed) {
    this.#json = json
    this.#seed = seed
  }

  async run(steps) {
    const installed = await this.#perform('install', () => prepared(install))
    const selected = installed ? steps : []
    const built =
      selected.some((step) => step.build) && (await this.#perform('build', () => prepared(build)))
    for (const steps of sideBySide(selected)) {
      const perform = (step) =>
        this.#perform(step.name, () => this.#runStep(step, built), step.report)
      await Promise.all([everyOther(steps, 0), everyOther(steps, 1)].map(inTurn(perform)))
    }
    this.#summarise()
  }

  async #runStep({ command: [command, ...args], ...step }, built) {
    if (step.build === 'needed' && !built)
      return { ok: false, output: 'Needs the build, which failed.\n' }
    if (step.report !== undefined) {
      rmSync(step.report, { force: true })
      rmSync(detailsOf(step.report), { force: true })
    }
    const { ok, stdout, stderr } = await run(command, args, {
      env: step.env,
      progress: step.report !== undefined,
    })
    if (step.summary && ok) {
      const { note, ...extra } = step.summary(JSON.parse(stdout.trimEnd().split('\n').at(-1)))
      this.#notes.push(note ?? stderr.trimEnd())
      Object.assign(this.#extra, extra)
    }
    if (step.report !== undefined) this.#count(step.report)
    return { ok, output: stdout + stderr }
  }

  /** Runs one step, prints its line, and its output if it failed. */
  async #perform(name, action, report) {
    if (report !== undefined) this.#print(`        ${name} …`)
    const start = performance.now()
    const { ok, output } = await action()
    const ms = Math.round(performance.now() - start)
    this.#outcomes.push({ name, ok, ms })
    const seconds = (ms / 1000).toFixed(1).padStart(6)
    this.#print(`${ok ? 'ok    ' : 'FAILED'}  ${name.padEnd(13)} ${seconds} s`)
    if (ok) return true
    const tests = report === undefined ? [] : failedTests(report, detailsOf(report))
    // What tests print says little beside their failures, and must not push these out of a log.
    const lines = output?.trimEnd().split('\n') ?? []
    const shown = tests.length > 0 ? lines.slice(-OUTPUT_LINES_MAX) : lines
    if (output) this.#print(shown.map((line) => `  ${line}`).join('\n'))
    this.#failures.push(...(tests.length > 0 ? tests : [failedStep(name, output)]))
    return false
  }

  /** Counts the tests of a report; a file that could not be loaded counts as one failed test. */
  #count(path) {
    if (!existsSync(path)) return
    const report = JSON.parse(readFileSync(path, 'utf8'))
    const unloaded = report.testResults.filter(
      (file) => file.status === 'failed' && file.assertionResults.length === 0,
    )
    this.#tests ??= { passed: 0, failed: 0, skipped: 0, files: 0 }
    this.#tests.passed += report.numPassedTests
    this.#tests.failed += report.numFailedTests + unloaded.length
    this.#tests.skipped += report.numPendingTests + report.numTodoTests
    this.#tests.files += report.testResults.length
  }

  #summarise() {
    const [failures, tests] = [this.#failures, this.#tests]
    const failed = this.#outcomes.filter(({ ok }) => !ok).map(({ name }) => name)
    for (const note of this.#notes) this.#print(`\n${note}`)
    if (failures.length > 0) this.#print(['', ...failureLines(failures)].join('\n'))
    if (tests && failed.length > 0) {
      this.#print(`\nRandom choices came from PAWL_TEST_SEED=${this.#seed}.`)
    }
    this.#print(failed.length > 0 ? `\nFailed: ${failed.join(', ')}` : '\nAll steps passed.')
    if (tests) this.#print(`${tests.passed} passed, ${tests.failed} failed`)
    if (this.#json) {
      const result = { ok: failed.length === 0, steps: this.#outcomes, tests, seed: this.#seed }
      process.stdout.write(`${JSON.stringify({ ...result, ...this.#extra, failures })}\n`)
    }
    process.exitCode = failed.length > 0 ? 1 : 0
  }

  #print(line) {
    const stream = this.#json ? process.stderr : process.stdout
    stream.write(`${line}\n`)
  }
}

/** Steps without tests need one core each; steps of tests need both and run by themselves. */
function sideBySide(steps) {
  const groups = []
  for (const step of steps) {
    const last = groups.at(-1)
    if (last && !step.report && !last.at(-1).report) last.push(step)
    else groups.push([step])
  }
  return groups
}

const everyOther = (items, first) => items.filter((_, i) => i % 2 === first)

const inTurn = (perform) => async (steps) => {
  for (const step of steps) await perform(step)
}

/** The seed of all random choices in tests; see test/support/seed.ts. `random` is drawn here. */
export function drawSeed(given) {
  return given === 'random' ? String(2 + Math.floor(Math.random() * 20_000)) : (given ?? '1')
}

/** Where the reporter writes what the report of vitest does not have. */
function detailsOf(report) {
  return report.replace(/\.json$/, '-details.json')
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
