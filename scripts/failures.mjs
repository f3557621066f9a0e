// The failures of a run of checks, and how they are printed: last, and in a bounded number of
// lines. A reader of only the end of a log, such as the record of CI, must find them all there.
import { existsSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'

const FAILURES_MAX = 20
const LINES_MAX = 25

/**
 * One failure: the file of a test or the name of a step, the full name of the test if it is one,
 * and the first lines of the error.
 *
 * @typedef {{ where: string, name?: string, lines: string[] }} Failure
 */

/**
 * Reads the failed tests from the JSON report of vitest, and the files that could not be loaded.
 * The reporter (progress.mjs) has written to `details` how each test failed, with the difference of
 * its values, and which errors came outside of tests.
 *
 * @param {string} path
 * @param {string} [details]
 * @returns {Failure[]}
 */
export function failedTests(path, details) {
  if (!existsSync(path)) return []
  const { tests = {}, unhandled = [] } = details && existsSync(details) ? read(details) : {}
  const inTests = read(path).testResults.flatMap((file) => {
    const where = relative(process.cwd(), file.name)
    const failed = file.assertionResults.filter(({ status }) => status === 'failed')
    if (failed.length === 0 && file.status === 'failed')
      return [{ where, lines: firstLines(file.message) }]
    return failed.map(({ ancestorTitles, title, failureMessages }) => {
      const name = [...ancestorTitles, title].join(' › ')
      const texts = tests[`${where} › ${name}`] ?? failureMessages
      return { where, name, lines: firstLines(texts.join('\n')) }
    })
  })
  const outside = unhandled.map(({ file, text }) => ({
    where: file ?? 'tests',
    name: 'an error outside of any test',
    lines: firstLines(text),
  }))
  return [...inTests, ...outside]
}

/**
 * The failure of a step that is not the tests.
 *
 * @param {string} name
 * @param {string} output
 * @returns {Failure}
 */
export function failedStep(name, output) {
  return { where: `step ${name}`, lines: firstLines(output) }
}

/**
 * The text to print: each failure with the first lines of its error, then, if there are several,
 * one line for each.
 *
 * @param {Failure[]} failures
 * @param {{ failuresMax?: number, linesMax?: number }} [bounds]
 * @returns {string[]}
 */
export function failureLines(failures, { failuresMax = FAILURES_MAX, linesMax = LINES_MAX } = {}) {
  const shown = failures.slice(0, failuresMax)
  const title = ({ where, name }) => (name ? `${where} › ${name}` : where)
  const details = shown.flatMap((failure, i) => [
    `FAILED ${i + 1} of ${failures.length}: ${title(failure)}`,
    ...failure.lines.slice(0, linesMax).map((line) => `    ${line}`),
  ])
  const list = shown.length > 1 ? shown.map((failure) => `FAILED  ${title(failure)}`) : []
  const more = failures.length - shown.length
  return [...details, ...list, ...(more > 0 ? [`and ${more} more failures`] : [])]
}

function read(path) {
  return JSON.parse(readFileSync(path, 'utf8'))
}

/**
 * The first lines of an error, without colours and without frames inside of packages.
 *
 * @param {string} [text]
 * @param {number} [linesMax]
 * @returns {string[]}
 */
export function firstLines(text = '', linesMax = LINES_MAX) {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one.
  const plain = text.replace(/\u001b\[[0-9;]*m/g, '')
  const isForeignFrame = (line) => /^\s*at .*(node_modules|node:internal|new Promise)/.test(line)
  const lines = plain.split('\n').filter((line) => line.trim() && !isForeignFrame(line))
  return lines.slice(0, linesMax).map((line) => line.slice(0, 300).trimEnd())
}
