import { describe, expect, it } from 'vitest'
import { checkRequirements } from '../scripts/requirements/check.ts'
import { reachOf } from '../scripts/requirements/reach.ts'
import { readReport } from '../scripts/requirements/report.ts'
import { testsIn } from '../scripts/requirements/titles.ts'

const testFile = `
import { place } from './support/places.ts'
describe('group', () => {
  it('plain title', () => {})
  it(\`template title\`, () => {})
  it.each([1, 2])('moves %s on', () => {})
  test.concurrent('has a | in it', () => {})
  it('not ' + 'literal', () => {})
  for (const n of [1, 2]) it(\`is put together \${n} times\`, () => {})
  log('not a test')
})
describe.runIf(canTrace)('where it can be traced', () => {
  it('is traced', () => {})
})
it.skipIf(isSlow)('is fast', () => {})
describe.skip('later', () => {
  it('is never run', () => {})
})
`
const contractFile = `
export const claimCases: Cases = {
  'a case of the contract': async (bench) => {},
  'a case that is made': slow(3),
  'no case': 7,
}
export const more = Object.fromEntries(all.map((one) => [\`\${one}: leads on\`, walk]))
`
const files: Record<string, string> = {
  'test/a.test.ts': testFile,
  'test/support/places.ts': `import { freshDatabase } from './postgres/databases.ts'
    const path = 'jobs.db'`,
  'test/support/postgres/databases.ts': 'export {}',
  'test/sqlite.test.ts': `openSqliteStore(); it('holds on a file', run)`,
  'test/postgres.test.ts': `import './support/postgres/databases.ts'; it('holds on a server', run)`,
  'test/core/b.test.ts': `it('is a rule', () => {})`,
  'test/contract/store/claim.ts': contractFile,
}
const RULE = '`test/core/b.test.ts` › is a rule'
const ON_FILE = '`test/sqlite.test.ts` › holds on a file'
const ON_SERVER = '`test/postgres.test.ts` › holds on a server'
const IN_CONTRACT = '`test/contract/store/claim.ts` › a case of the contract'

function check(...rows: string[]) {
  return checkRequirements(tableOf(rows), (path) => files[path])
}

function tableOf(rows: readonly string[]): string {
  const head = ['| id | about | statement | settled | test |', '|---|---|---|---|---|']
  return `# Requirements\n\n${[...head, ...rows].join('\n')}\n`
}

const row = (id: string, test: string, about = 'rule') =>
  `| ${id} | ${about} | it holds | core | ${test} |`

describe('the tests of a file', () => {
  it('are read from literals, templates and parameterised tests, without groups', () => {
    expect(testsIn('test/a.test.ts', testFile)).toEqual([
      { title: 'plain title', runs: 'always' },
      { title: 'template title', runs: 'always' },
      { title: 'moves %s on', runs: 'always' },
      { title: 'has a | in it', runs: 'always' },
      { title: 'is put together * times', runs: 'always' },
      { title: 'is traced', runs: 'sometimes' },
      { title: 'is fast', runs: 'sometimes' },
      { title: 'is never run', runs: 'never' },
    ])
  })

  it('are cases under their titles in the contract of stores', () => {
    const tests = testsIn('test/contract/store/claim.ts', contractFile)
    expect(tests.map(({ title }) => title)).toEqual([
      'a case of the contract',
      'a case that is made',
      '*: leads on',
    ])
    expect(testsIn('test/other.ts', contractFile)).toEqual([])
  })

  it('reach what their file imports, also through others', () => {
    const read = (path: string) => files[path]
    expect(reachOf('test/a.test.ts', read)).toEqual({ pure: false, sqlite: true, postgres: true })
    const onFile = { pure: false, sqlite: true, postgres: false }
    expect(reachOf('test/sqlite.test.ts', read)).toEqual(onFile)
    expect(reachOf('test/core/b.test.ts', read)).toMatchObject({ pure: true })
    const contract = reachOf('test/contract/store/claim.ts', read)
    expect(contract).toEqual({ pure: false, sqlite: true, postgres: true })
  })
})

describe('a table of requirements', () => {
  it('passes when every row names existing tests or is open', () => {
    const report = check(
      row('R1', '`test/a.test.ts` › plain title'),
      row('R2', '`test/a.test.ts` › template title<br>`test/a.test.ts` › moves %s on'),
      row('R3', '`test/a.test.ts` › has a \\| in it'),
      row('R4', 'open: engine'),
      row('R5', 'open: engine', 'store, time'),
      row('R6', 'open: doctor'),
      row('R7', '`test/a.test.ts` › is put together 2 times'),
      row('R8', `${RULE}<br>${ON_FILE}<br>${ON_SERVER}`, 'store'),
      row('R9', IN_CONTRACT, 'store, time'),
      row('R10', `${RULE}<br>${ON_FILE}`, 'process, file'),
      row('R11', ON_SERVER, 'postgres'),
      row('R12', '`test/contract/store/claim.ts` › hardened: leads on', 'store'),
    )
    expect(report).toEqual({
      rows: 12,
      tested: 9,
      later: 0,
      open: 3,
      openByArea: new Map([
        ['engine', ['R4', 'R5']],
        ['doctor', ['R6']],
      ]),
      problems: [],
    })
  })

  it('spans several tables, and other tables are ignored', () => {
    const other = '\n| word | meaning |\n|---|---|\n| lane | a place |\n\n'
    const header = '| id | about | statement | settled | test |\n|:--|---|---|---|--:|\n'
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
    ['a group instead of a test', row('R1', '`test/a.test.ts` › group'), 'does not have: group'],
    ['a title that is no literal', row('R1', '`test/a.test.ts` › not literal'), 'does not have'],
    ['a test that never runs', row('R1', '`test/a.test.ts` › is never run'), 'always skipped'],
    ['an entry of another form', row('R1', 'somewhere'), 'neither'],
    ['an entry without a title', row('R1', '`test/a.test.ts`'), 'neither'],
    ['a separator with nothing after it', row('R1', `${RULE}<br>`), '(empty)'],
    ['an open row without an area', row('R1', 'open:'), 'neither'],
    ['an empty test', row('R1', ''), 'R1 has no test'],
    ['an empty id', row('', 'open: x'), 'a row has no id'],
    ['an empty statement', '| R1 | rule | | core | open: x |', 'has no statement'],
    ['an empty subject', row('R1', 'open: x', ''), 'has no about'],
    ['an unknown subject', row('R1', 'open: x', 'rule, weather'), 'about weather'],
    ['a missing cell', '| R1 | it holds | core | open: x |', 'has 4 cells instead of 5'],
    ['time that only rules test', row('R1', RULE, 'time'), 'only tests of pure rules'],
    ['a store that only rules test', row('R1', RULE, 'rule, store'), 'only tests of pure rules'],
    ['both databases without PostgreSQL', row('R1', ON_FILE, 'store'), 'uses postgres'],
    ['both databases without SQLite', row('R1', ON_SERVER, 'store'), 'uses sqlite'],
    ['SQLite without SQLite', row('R1', ON_SERVER, 'sqlite'), 'uses sqlite'],
    ['PostgreSQL without PostgreSQL', row('R1', ON_FILE, 'postgres'), 'uses postgres'],
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

describe('after a run of all tests', () => {
  const results = (name: string, ...tests: [title: string, status: string][]) => ({
    name: `/repo/${name}`,
    assertionResults: tests.map(([title, status]) => ({ title, status })),
  })
  const report = JSON.stringify({
    testResults: [
      results(
        'test/a.test.ts',
        ['plain title', 'passed'],
        ['moves 1 on', 'skipped'],
        ['moves 2 on', 'passed'],
        ['is traced', 'skipped'],
        ['is fast', 'pending'],
      ),
      results('test/contract/sqlite.test.ts', ['a case of the contract', 'passed']),
    ],
  })

  function checkRan(...rows: string[]) {
    return checkRequirements(tableOf(rows), (path) => files[path], readReport([report], '/repo'))
  }

  it('a row whose test was skipped is open, and listed', () => {
    const { open, tested, openByArea, problems } = checkRan(
      row('R1', '`test/a.test.ts` › plain title'),
      row('R2', '`test/a.test.ts` › is traced'),
      row('R3', '`test/a.test.ts` › plain title<br>`test/a.test.ts` › is fast'),
      row('R4', '`test/a.test.ts` › moves %s on'),
      row('R5', IN_CONTRACT, 'store'),
    )
    expect({ open, tested, problems }).toEqual({ open: 2, tested: 3, problems: [] })
    expect(openByArea).toEqual(new Map([['skipped on this machine', ['R2', 'R3']]]))
  })

  it('a row whose test belongs to another run is tested, and counted as such', () => {
    const named = row('R1', '`test/a.test.ts` › is put together 7 times')
    const ran = readReport([report], '/repo', (path) => path === 'test/a.test.ts')
    const { tested, later, problems } = checkRequirements(
      tableOf([named, row('R2', '`test/a.test.ts` › plain title')]),
      (path) => files[path],
      ran,
    )
    expect({ tested, later, problems }).toEqual({ tested: 2, later: 1, problems: [] })
  })

  it('a row whose test did not run is refused', () => {
    const { problems } = checkRan(
      row('R1', '`test/a.test.ts` › is put together 7 times'),
      row('R2', '`test/contract/store/claim.ts` › hardened: leads on', 'store'),
    )
    expect(problems).toEqual([
      expect.stringContaining('R1 names a test of test/a.test.ts that did not run'),
      expect.stringContaining('R2 names a test of test/contract/store/claim.ts'),
    ])
  })
})
