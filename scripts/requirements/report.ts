// How the tests of a complete run ended, from the JSON report of vitest.
import { relative } from 'node:path'
import { reportedAs } from './titles.ts'

/** How the tests of a title ended; `missing` if the run has none. */
export type Ran = (path: string, title: string) => 'ran' | 'skipped' | 'missing'

/** The part of vitest's report that is read. */
interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly assertionResults: readonly { readonly title: string; readonly status: string }[]
  }[]
}

const CONTRACT = 'test/contract/store/'
const CONTRACT_TESTS = 'test/contract/'
const SKIPPED = new Set(['skipped', 'pending', 'todo'])

/** Reads a report; `root` is the folder of the repository, to which paths are relative. */
export function readReport(text: string, root: string): Ran {
  const { testResults } = JSON.parse(text) as Report
  const files = testResults.map(({ name, assertionResults }) => ({
    path: relative(root, name),
    tests: assertionResults,
  }))
  return (path, title) => {
    const isWanted = (file: string) =>
      path.startsWith(CONTRACT) ? file.startsWith(CONTRACT_TESTS) : file === path
    const pattern = reportedAs(title)
    const tests = files
      .filter((file) => isWanted(file.path))
      .flatMap((file) => file.tests)
      .filter((test) => pattern.test(test.title))
    if (tests.length === 0) return 'missing'
    return tests.every(({ status }) => SKIPPED.has(status)) ? 'skipped' : 'ran'
  }
}
