import { describe, expect, it } from 'vitest'
import { checkRequirements } from '../scripts/requirements/check.ts'
import { testTitles } from '../scripts/requirements/titles.ts'

const testFile = `
describe('group', () => {
  it('plain title', () => {})
  it(\`template title\`, () => {})
  it.each([1, 2])('moves %s on', () => {})
  test.concurrent('has a | in it', () => {})
  it('not ' + 'literal', () => {})
  log('not a test')
})
`
const files: Record<string, string> = { 'test/a.test.ts': testFile }

function check(...rows: string[]) {
  const table = ['| id | statement | settled | test |', '|---|---|---|---|', ...rows].join('\n')
  return checkRequirements(`# Requirements\n\n${table}\n`, (path) => files[path])
}

const row = (id: string, test: string) => `| ${id} | it holds | core | ${test} |`

describe('titles of tests', () => {
  it('are read from literals, templates and parameterised tests', () => {
    expect([...testTitles('a.test.ts', testFile)].sort()).toEqual([
      'group',
      'has a | in it',
      'moves %s on',
      'plain title',
      'template title',
    ])
  })
})

describe('a table of requirements', () => {
  it('passes when every row names an existing test or is open', () => {
    const report = check(
      row('R1', '`test/a.test.ts` › plain title'),
      row('R2', '`test/a.test.ts` › group<br>`test/a.test.ts` › moves %s on'),
      row('R3', '`test/a.test.ts` › has a \\| in it'),
      row('R4', 'open: engine'),
      row('R5', 'open: engine'),
      row('R6', 'open: doctor'),
    )
    expect(report).toEqual({
      rows: 6,
      tested: 3,
      open: 3,
      openByArea: new Map([
        ['engine', ['R4', 'R5']],
        ['doctor', ['R6']],
      ]),
      problems: [],
    })
  })

  it('spans several tables, and other tables are passed over', () => {
    const other = '\n| word | meaning |\n|---|---|\n| lane | a place |\n\n'
    const header = '| id | statement | settled | test |\n|:--|---|---|--:|\n'
    const table = `${header}${row('R1', 'open: x')}\n`
    const { rows, problems } = checkRequirements(
      table + other + table.replace('R1', 'R2'),
      () => undefined,
    )
    expect({ rows, problems }).toEqual({ rows: 2, problems: [] })
  })

  it.each([
    ['a file that does not exist', row('R1', '`test/b.test.ts` › plain title'), 'does not exist'],
    ['a test that does not exist', row('R1', '`test/a.test.ts` › plain'), 'does not have: plain'],
    ['a title that is no literal', row('R1', '`test/a.test.ts` › not literal'), 'does not have'],
    ['an entry of another form', row('R1', 'somewhere'), 'neither'],
    ['an entry without a title', row('R1', '`test/a.test.ts`'), 'neither'],
    ['a separator with nothing after it', row('R1', '`test/a.test.ts` › group<br>'), '(empty)'],
    ['an open row without an area', row('R1', 'open:'), 'neither'],
    ['an empty test', row('R1', ''), 'R1 has no test'],
    ['an empty id', row('', 'open: x'), 'a row has no id'],
    ['an empty statement', '| R1 | | core | open: x |', 'has no statement'],
    ['a missing cell', '| R1 | it holds | open: x |', 'has 3 cells instead of 4'],
  ])('is refused for %s', (_, line, problem) => {
    expect(check(line).problems).toEqual([expect.stringContaining(problem)])
  })

  it('is refused for an id that occurs twice, with both lines', () => {
    const { problems } = check(row('R1', 'open: x'), row('R1', 'open: x'))
    expect(problems).toEqual(['line 6: R1 is also on line 5'])
  })

  it('is refused when there is nothing in it', () => {
    expect(check().problems).toEqual(['there are no requirements to check'])
  })
})
