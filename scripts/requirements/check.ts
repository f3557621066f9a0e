// The table of requirements, as it is read and checked.
//
// docs/internals/requirements.md holds one Markdown table per requirement document, with the
// columns `| id | about | statement | settled | test |`. Tables with other columns are ignored.
//
// The cell `about` says what a test of the statement must stand on, one or several of
//   - `rule`: pure functions decide it, and tests of them are enough;
//   - `store`: both databases; `sqlite`, `postgres`: one of them, because the statement names it;
//   - `time`: a clock, delays, time-outs; `process`: processes, workers, logs; `file`: files.
// A row that is about more than rules names at least one test outside of the folders of pure rules.
// A row about `store` names tests that use SQLite and tests that use PostgreSQL.
//
// The cell `test` is one of
//   - entries `` `test/path/file.test.ts` › title of a test ``, separated by `<br>`; a case of the
//     store contract is named by its file below test/contract/store;
//   - `open: <area>`, for a statement whose work is still to come.
//
// With the reports of a complete run of the tests, each named test must have run, in `npm test` or,
// for the files that test/support/extent.ts names, in `npm run prove`. A row whose test was skipped
// on this machine is open.

import { type Reach, reachOf } from './reach.ts'
import type { Ran } from './report.ts'
import { isNamed, testsIn, type WrittenTest } from './titles.ts'

/** What the check found; `openByArea` maps an area to the ids of its open rows. */
export interface RequirementsReport {
  readonly rows: number
  readonly tested: number
  /** How many of the tested ones name a test that this run did not have, but another one has. */
  readonly later: number
  readonly open: number
  readonly openByArea: ReadonlyMap<string, readonly string[]>
  readonly problems: readonly string[]
}

interface Row {
  readonly line: number
  readonly cells: readonly string[]
}

/** A test that a row names. */
interface Entry {
  readonly path: string
  readonly title: string
}

/** What is known of the tests of a file. */
interface TestFile {
  readonly tests: readonly WrittenTest[]
  readonly reach: Reach
}

type Files = (path: string) => TestFile | undefined

const columns = ['id', 'about', 'statement', 'settled', 'test']
const subjects = new Set(['rule', 'store', 'sqlite', 'postgres', 'time', 'process', 'file'])
const entryPattern = /^`([^`]+)` › (.+)$/
const openPattern = /^open:\s*(.+)$/
/** The area of rows whose tests were skipped. */
const SKIPPED = 'skipped on this machine'

/**
 * Checks the table of requirements. `readTest` gives the text of a test file by its path from the
 * root of the repository, or undefined when there is none. `ran` says how a test ended in a run of
 * all tests; without a run it is absent.
 */
export function checkRequirements(
  markdown: string,
  readTest: (path: string) => string | undefined,
  ran?: Ran,
): RequirementsReport {
  const problems: string[] = []
  const openByArea = new Map<string, string[]>()
  const lineOfId = new Map<string, number>()
  const files: Files = cached((path) => {
    const text = readTest(path)
    if (text === undefined) return undefined
    return { tests: testsIn(path, text), reach: reachOf(path, readTest) }
  })

  const rows = readRows(markdown)
  let tested = 0
  let later = 0
  if (rows.length === 0) problems.push('there are no requirements to check')
  for (const { line, cells } of rows) {
    const [id = '', about = '', , , test = ''] = cells
    const report = (problem: string) => problems.push(`line ${line}: ${id || 'a row'} ${problem}`)
    const isOpen = (area: string) => openByArea.set(area, [...(openByArea.get(area) ?? []), id])

    if (cells.length !== columns.length) {
      report(`has ${cells.length} cells instead of ${columns.length}`)
      continue
    }
    for (const name of columns.filter((_, index) => !cells[index])) report(`has no ${name}`)
    const unknown = about ? subjectsOf(about).filter((subject) => !subjects.has(subject)) : []
    if (unknown.length > 0) report(`is about ${unknown.join(', ')}, which is no subject`)

    const earlier = lineOfId.get(id)
    if (id && earlier !== undefined) report(`is also on line ${earlier}`)
    lineOfId.set(id, earlier ?? line)

    const area = openPattern.exec(test)?.[1]
    if (area) isOpen(area)
    if (area || !test) continue
    const found = problemsOfTests(test, subjectsOf(about), files, ran)
    found.problems.forEach(report)
    if (found.problems.length > 0) continue
    if (found.isSkipped) {
      isOpen(SKIPPED)
    } else {
      tested += 1
      if (found.isLater) later += 1
    }
  }

  const open = [...openByArea.values()].flat().length
  return { rows: rows.length, tested, later, open, openByArea, problems }
}

const subjectsOf = (about: string) => about.split(/,\s*/)

function problemsOfTests(
  cell: string,
  about: readonly string[],
  files: Files,
  ran: Ran | undefined,
): {
  readonly problems: readonly string[]
  readonly isSkipped: boolean
  readonly isLater: boolean
} {
  const problems: string[] = []
  const entries: Entry[] = []
  for (const text of cell.split(/\s*<br\s*\/?>\s*/)) {
    const [, path, title] = entryPattern.exec(text) ?? []
    if (path === undefined || title === undefined) {
      const form = '"`path` › title" nor "open: area"'
      problems.push(`has a test that is neither ${form}: ${text || '(empty)'}`)
    } else {
      entries.push({ path, title })
    }
  }
  for (const entry of entries) problems.push(...problemsOfEntry(entry, files))
  if (problems.length > 0) return { problems, isSkipped: false, isLater: false }
  problems.push(...problemsOfReach(entries, about, files))
  const endings = entries.map((entry) => ran?.(entry.path, entry.title))
  for (const [i, { path, title }] of entries.entries()) {
    if (endings[i] === 'missing')
      problems.push(`names a test of ${path} that did not run: ${title}`)
  }
  return {
    problems,
    isSkipped: endings.includes('skipped'),
    isLater: endings.includes('later'),
  }
}

function problemsOfEntry({ path, title }: Entry, files: Files): string[] {
  const file = files(path)
  if (!file) return [`names the file ${path}, which does not exist`]
  const named = file.tests.filter((test) => isNamed(title, test))
  if (named.length === 0) return [`names a test that ${path} does not have: ${title}`]
  if (named.every(({ runs }) => runs === 'never')) {
    return [`names a test that is always skipped: ${title}`]
  }
  return []
}

/** What the named tests must reach, and do not. */
function problemsOfReach(
  entries: readonly Entry[],
  about: readonly string[],
  files: Files,
): string[] {
  const reaches = entries.map(({ path }) => files(path)?.reach as Reach)
  const real = about.filter((subject) => subject !== 'rule')
  if (real.length > 0 && reaches.every(({ pure }) => pure)) {
    return [`is about ${real.join(', ')}, and names only tests of pure rules`]
  }
  const wanted = (['sqlite', 'postgres'] as const).filter(
    (database) => about.includes('store') || about.includes(database),
  )
  return wanted
    .filter((database) => !reaches.some((reach) => reach[database]))
    .map((database) => `is about ${about.join(', ')}, and names no test that uses ${database}`)
}

/** The rows of all tables of requirements in a document. */
function readRows(markdown: string): Row[] {
  const rows: Row[] = []
  let table: 'none' | 'requirements' | 'other' = 'none'
  markdown.split('\n').forEach((text, index) => {
    if (!text.trimStart().startsWith('|')) {
      table = 'none'
      return
    }
    const cells = cellsOf(text)
    if (table === 'none') {
      table = cells.join() === columns.join() ? 'requirements' : 'other'
    } else if (table === 'requirements' && !cells.every((cell) => /^:?-+:?$/.test(cell))) {
      rows.push({ line: index + 1, cells })
    }
  })
  return rows
}

/** The cells of a table row, with Markdown's backslash escapes resolved. */
function cellsOf(text: string): string[] {
  const inner = text
    .trim()
    .replace(/^\|/, '')
    .replace(/(?<!\\)\|$/, '')
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\([!-/:-@[-`{-~])/g, '$1'))
}

function cached<Value>(compute: (key: string) => Value): (key: string) => Value {
  const values = new Map<string, Value>()
  return (key) => {
    const value = values.has(key) ? (values.get(key) as Value) : compute(key)
    values.set(key, value)
    return value
  }
}
