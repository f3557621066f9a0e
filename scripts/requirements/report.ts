// How the tests of a complete run ended, from the JSON report of vitest.
import { relative } from 'node:path'
import { reportedAs } from './titles.ts'

/**
 * How the tests of a title ended; `missing` if the run has none, or `later` if it is not the run
 * that has them.
 */
export type Ran = (path: string, title: string) => 'ran' | 'skipped' | 'missing' | 'later'

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

/**
 * Reads the reports of a run; `root` is the folder of the repository, to which paths are relative.
 * `isLater` says which files belong to another run.
 */
export function readReport(
  texts: readonly string[],
  root: string,
  isLater: (path: string) => boolean = () => false,
): Ran {
  const testResults = texts.flatMap((text) => (JSON.parse(text) as Report).testResults)
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
    if (tests.length === 0) return isLater(path) ? 'later' : 'missing'
    return tests.every(({ status }) => SKIPPED.has(status)) ? 'skipped' : 'ran'
  }
}
