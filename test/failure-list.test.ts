// The list of failures that `npm test` and CI print last.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { failedStep, failedTests, failureLines } from '../scripts/failures.mjs'

const failed = (title: string, message: string) => ({
  ancestorTitles: ['a store', 'after a crash'],
  title,
  status: 'failed',
  failureMessages: [message],
})

/** Reads the failures of files as vitest reports them. */
function read(...testResults: object[]) {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-failures-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'report.json')
  writeFileSync(path, JSON.stringify({ testResults }))
  return failedTests(path)
}

it('names file, full name and error of each failed test, without foreign frames', () => {
  const error = [
    '\u001b[31mAssertionError\u001b[39m: expected 1 to be 2',
    '    at /repo/test/a.test.ts:3:1',
    '    at file:///repo/node_modules/vitest/dist/chunk.js:7:1',
  ]
  const tests = [failed('keeps its rows', error.join('\n')), { title: 'other', status: 'passed' }]
  const name = join(process.cwd(), 'test/a.test.ts')
  expect(failureLines(read({ name, status: 'failed', assertionResults: tests }))).toEqual([
    'FAILED 1 of 1: test/a.test.ts › a store › after a crash › keeps its rows',
    '    AssertionError: expected 1 to be 2',
    '        at /repo/test/a.test.ts:3:1',
  ])
})

it('names a file that could not be loaded, and a step that is no test', () => {
  const name = join(process.cwd(), 'test/b.test.ts')
  const files = read({ name, status: 'failed', message: 'Cannot find x', assertionResults: [] })
  expect(failureLines([...files, failedStep('lint', 'src/a.ts:1 format\n')])).toEqual([
    'FAILED 1 of 2: test/b.test.ts',
    '    Cannot find x',
    'FAILED 2 of 2: step lint',
    '    src/a.ts:1 format',
    'FAILED  test/b.test.ts',
    'FAILED  step lint',
  ])
})

it('has a bound, and says what it leaves out', () => {
  const many = Array.from({ length: 30 }, (_, i) => failed(`case ${i}`, 'line\n'.repeat(100)))
  const failures = read({ name: 'c.test.ts', status: 'failed', assertionResults: many })
  const lines = failureLines(failures)
  expect(lines).toHaveLength(20 * 26 + 20 + 1)
  expect(lines.at(-1)).toBe('and 10 more failures')
  expect(failureLines(failures, { linesMax: 1 })).toHaveLength(20 * 2 + 20 + 1)
})

it('is preceded by each failure at the moment it happens, with what differed', () => {
  const folder = mkdtempSync(join(process.cwd(), '.build/failing-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const text =
    "import { expect, it } from 'vitest'\nit('adds', () => expect({ sum: 3 }).toEqual({ sum: 4 }))"
  writeFileSync(join(folder, 'adds.test.mjs'), text)
  writeFileSync(join(folder, 'vitest.config.mjs'), 'export default {}')
  const args = ['run', '--root', folder, '--reporter', resolve('scripts/progress.mjs')]
  const { PAWL_TEST_DETAILS: _, PAWL_TEST_PROGRESS: __, ...env } = process.env
  const vitest = [resolve('node_modules/vitest/vitest.mjs'), ...args]
  const { stderr } = spawnSync(process.execPath, vitest, { env, encoding: 'utf8' })
  const lines = stderr.split('\n').map((line) => line.trim())
  expect(lines).toEqual(
    expect.arrayContaining(['FAILED  adds.test.mjs › adds', '-   "sum": 4,', '+   "sum": 3,']),
  )
})

it('is empty when there is no report', () => {
  expect(failedTests('/no/such/report.json')).toEqual([])
})
