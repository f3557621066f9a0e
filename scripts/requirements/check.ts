// The table of requirements, as it is read and checked.
//
// docs/internals/requirements.md holds one Markdown table per requirement document, with the
// columns `| id | statement | settled | test |`. Tables with other columns are passed over.
// The cell `test` is one of
//   - entries `` `test/path/file.test.ts` › title of a test ``, separated by `<br>`;
//   - `open: <area>`, for a statement whose work is still to come.

import { testTitles } from './titles.ts'

/** What the check found; `openByArea` maps an area to the ids of its open rows. */
export interface RequirementsReport {
  readonly rows: number
  readonly tested: number
  readonly open: number
  readonly openByArea: ReadonlyMap<string, readonly string[]>
  readonly problems: readonly string[]
}

interface Row {
  readonly line: number
  readonly cells: readonly string[]
}

const columns = ['id', 'statement', 'settled', 'test']
const entryPattern = /^`([^`]+)` › (.+)$/
const openPattern = /^open:\s*(.+)$/

/**
 * Checks the table of requirements. `readTest` gives the text of a test file by its path from the
 * root of the repository, or undefined when there is none.
 */
export function checkRequirements(
  markdown: string,
  readTest: (path: string) => string | undefined,
): RequirementsReport {
  const problems: string[] = []
  const openByArea = new Map<string, string[]>()
  const lineOfId = new Map<string, number>()
  const titlesIn = cached((path) => {
    const text = readTest(path)
    return text === undefined ? undefined : testTitles(path, text)
  })

  const rows = readRows(markdown)
  let tested = 0
  if (rows.length === 0) problems.push('there are no requirements to check')
  for (const { line, cells } of rows) {
    const [id = '', , , test = ''] = cells
    const report = (problem: string) => problems.push(`line ${line}: ${id || 'a row'} ${problem}`)

    if (cells.length !== columns.length) {
      report(`has ${cells.length} cells instead of ${columns.length}`)
      continue
    }
    for (const name of columns.filter((_, index) => !cells[index])) report(`has no ${name}`)

    const earlier = lineOfId.get(id)
    if (id && earlier !== undefined) report(`is also on line ${earlier}`)
    lineOfId.set(id, earlier ?? line)

    const area = openPattern.exec(test)?.[1]
    if (area) openByArea.set(area, [...(openByArea.get(area) ?? []), id])
    if (area || !test) continue
    const untested = problemsOfEntries(test, titlesIn)
    untested.forEach(report)
    if (untested.length === 0) tested += 1
  }

  const open = [...openByArea.values()].flat().length
  return { rows: rows.length, tested, open, openByArea, problems }
}

function problemsOfEntries(
  cell: string,
  titlesIn: (path: string) => ReadonlySet<string> | undefined,
): string[] {
  return cell.split(/\s*<br\s*\/?>\s*/).flatMap((entry) => {
    const [, path, title] = entryPattern.exec(entry) ?? []
    if (path === undefined || title === undefined) {
      return `has a test that is neither "\`path\` › title" nor "open: area": ${entry || '(empty)'}`
    }
    const titles = titlesIn(path)
    if (!titles) return `names the file ${path}, which does not exist`
    return titles.has(title) ? [] : `names a test that ${path} does not have: ${title}`
  })
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
