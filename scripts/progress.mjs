// The reporter of the tests. On a terminal it keeps one line current; elsewhere it prints a line
// every 30 seconds. A test that fails is printed at once, with the first lines of its error: a log
// may be cut later on. All else about failures is printed at the end, by scripts/failures.mjs, from
// the report of vitest and from what this file writes beside it: differences of values, and errors
// outside of tests, which that report does not have.
//
// With PAWL_TEST_PROGRESS=3 the lines go to file descriptor 3 instead of stderr, so that the caller
// of vitest can keep its other output for the case of a failure.
import { writeFileSync, writeSync } from 'node:fs'
import { relative } from 'node:path'
import { isatty } from 'node:tty'
import { firstLines } from './failures.mjs'

const EVERY_MS = 30_000
/** Of so many failures the error is printed at once, in so many lines. */
const SHOWN_MAX = 10
const LINES_MAX = 30
const out = process.env.PAWL_TEST_PROGRESS === '3' ? 3 : 2
const isTerminal = isatty(out)

/** Prints how far the tests are. */
export default class Progress {
  #total = 0
  #ended = 0
  #passed = 0
  #failed = 0
  /** How many failures were printed with their errors. */
  #shown = 0
  #current = ''
  #start = performance.now()
  #timer
  #details = {}

  onTestRunStart(specifications) {
    this.#total = specifications.length
    this.#timer = setInterval(() => this.#print(), isTerminal ? 1000 : EVERY_MS)
    this.#timer.unref()
    this.#print()
  }

  onTestModuleStart(module) {
    this.#current = module.relativeModuleId
    if (isTerminal) this.#print()
  }

  onTestCaseResult(test) {
    const { state, errors } = test.result()
    if (state === 'passed') this.#passed++
    if (state !== 'failed') return
    this.#failed++
    const name = test.fullName.replaceAll(' > ', ' › ')
    this.#details[`${test.module.relativeModuleId} › ${name}`] = errors.map(textOf)
    this.#line(`FAILED  ${test.module.relativeModuleId} › ${name}`)
    if (this.#shown++ >= SHOWN_MAX) return
    const lines = firstLines(errors.map(textOf).join('\n'), LINES_MAX)
    for (const line of lines) this.#line(`            ${line}`)
  }

  onTestModuleEnd(module) {
    this.#ended++
    const broken = module.state() === 'failed' && module.children.size === 0
    if (broken) this.#line(`FAILED  ${module.relativeModuleId}`)
  }

  onTestRunEnd(_modules, unhandled) {
    clearInterval(this.#timer)
    if (isTerminal) writeSync(out, '\r\u001b[K')
    else this.#print()
    const path = process.env.PAWL_TEST_DETAILS
    if (path === undefined) return
    const errors = unhandled.map((error) => ({ text: textOf(error), file: fileOf(error) }))
    writeFileSync(path, JSON.stringify({ tests: this.#details, unhandled: errors }))
  }

  #print() {
    const seconds = Math.round((performance.now() - this.#start) / 1000)
    const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
    const count = `${this.#passed} passed, ${this.#failed} failed`
    const text = `        ${this.#ended} of ${this.#total} files, ${count}, ${time}`
    if (isTerminal) writeSync(out, `\r\u001b[K${`${text}  ${this.#current}`.slice(0, 100)}`)
    else writeSync(out, `${text}\n`)
  }

  #line(text) {
    writeSync(out, isTerminal ? `\r\u001b[K${text}\n` : `${text}\n`)
  }
}

function textOf({ name, message, diff, stack = '' }) {
  const frames = stack.split('\n').filter((line) => /^\s*at /.test(line))
  return [`${name ?? 'Error'}: ${message}`, ...(diff ? [diff] : []), ...frames].join('\n')
}

/** The file of the test during which an error outside of tests came, if vitest knows. */
function fileOf(error) {
  return error.VITEST_TEST_PATH ? relative(process.cwd(), error.VITEST_TEST_PATH) : null
}
