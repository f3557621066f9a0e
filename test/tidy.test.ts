// The architecture and the house style as a test. Each rule is shown to hold in this repository,
// and to report small samples that break it: a rule that cannot fail protects nothing.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  foldersDescribed,
  importDirection,
  namedCodes,
  neutralContract,
  pureCore,
  sqlInStores,
  storeSymmetry,
} from './tidy/architecture.ts'
import { decisionsNumbered, linksLeadSomewhere, oneTitle, shortWalks } from './tidy/documents.ts'
import { type Rule, readFiles, type SourceFile } from './tidy/files.ts'
import { documentedExports } from './tidy/public-api.ts'
import { shortFiles, shortFunctions, shortLines } from './tidy/size.ts'
import { allTestsRun, noSleeps } from './tidy/tests.ts'
import { noRetiredWords, termsAreDefinedOnce, termsAreUsed } from './tidy/words.ts'

/** A small repository: texts by path. */
type Sample = Readonly<Record<string, string>>

interface Case {
  readonly promise: string
  readonly rule: Rule
  readonly files: readonly SourceFile[]
  /** Samples that the rule must report. */
  readonly breaking: readonly Sample[]
  /** Samples that look similar and are in order. */
  readonly keeping: readonly Sample[]
}

const source = readFiles(['src'], /\.ts$/)
const shipped = source.filter(({ path }) => !path.endsWith('.test.ts'))
const programs = readFiles(
  ['dashboard', 'examples', 'scripts', 'sim', 'bench', 'chaos', 'model', 'mutation'],
  /(?<!operations)\.(ts|tsx|mjs)$/,
)
const tests = readFiles(['src', 'test'], /^test\/.*\.ts$|\.test\.ts$/)
const rootDocuments = readdirSync('.').filter((name) => name.endsWith('.md'))
const documents = readFiles(['docs', ...rootDocuments], /\.md$/)
const architecturePath = 'docs/internals/architecture.md'
const architecture = existsSync(architecturePath) ? readFileSync(architecturePath, 'utf8') : ''

const entries = shipped
  .map(({ path }) => path)
  .filter((path) => path === 'src/index.ts' || path.startsWith('src/entries/'))

const glossaryPath = 'docs/concepts/glossary.md'
const glossary = documents.filter(({ path }) => path === glossaryPath)
const otherTexts = [...shipped, ...documents].filter(({ path }) => path !== glossaryPath)
/** The folders whose comments and messages are already rewritten to plain English. Add the next. */
const plainFolders = [
  'src/core',
  'src/environment',
  'src/audit',
  'src/engine',
  'src/runs',
  'src/stores',
  'src/testing',
  'src/doctor',
  'src/cli',
  'src/http',
  'src/entries',
]

const core = (text: string): Sample => ({ 'src/core/job.ts': text })
const engine = (text: string): Sample => ({ 'src/engine/claim.ts': text })
const entry = (text: string): Sample => ({ 'src/index.ts': text })
const test = (text: string): Sample => ({ 'test/a.test.ts': text })
const doc = (text: string): Sample => ({ 'docs/a.md': text })
const walk = (paths: readonly string[]) =>
  doc(`## The walk of it\n\n${paths.map((path) => `| | \`${path}\` | b |\n`).join('')}`)
const lines = (count: number) => 'work()\n'.repeat(count)

const structure: Case[] = [
  {
    promise: 'imports go along the arrows between the folders of src',
    rule: importDirection,
    files: shipped,
    breaking: [
      core(`import { claim } from '../engine/claim.ts'`),
      core(`import type { Store } from '../stores/store.ts'`),
      core(`export * from '../index.ts'`),
      core(`const claim = await import('../engine/claim.ts')`),
      core(`type Store = import('../stores/store.ts').Store`),
      engine(`import { app } from '../http/app.ts'`),
      engine(`import { helper } from '../../test/helper.ts'`),
      engine(`import { claim } from 'pawl'`),
      { 'src/stores/sqlite/claim.ts': `import { claim } from '../../engine/claim.ts'` },
      { 'src/doctor/doctor.ts': `import { claim } from '../engine/claim.ts'` },
      { 'src/http/app.ts': `import { main } from '../cli/main.ts'` },
      { 'src/runs/journal/reading.ts': `import { Runs } from '../runs.ts'` },
      { 'src/runs/journal/folder/disk.ts': `import { claim } from '../../../engine/claim.ts'` },
      { 'src/unheard/of.ts': `import { job } from '../core/job.ts'` },
      entry(`export { main } from './cli/main.ts'`),
    ],
    keeping: [
      engine(`import { job } from '../core/job/decide.ts'`),
      { 'src/core/job/decide.ts': `import { machine } from '../machine/define.ts'` },
      { 'src/cli/main.ts': `import { app } from '../http/app.ts'` },
      { 'src/cli/main.ts': `import { readRun } from '../runs/journal/reading.ts'` },
      { 'src/runs/runs.ts': `import { readRun } from './journal/reading.ts'` },
      entry(`export { claim } from './engine/claim.ts'`),
    ],
  },
  {
    promise: 'the core imports itself alone and knows no clock, chance, timer or process',
    rule: pureCore,
    files: shipped,
    breaking: [
      core(`import { randomUUID } from 'node:crypto'`),
      core(`import ms from 'ms'`),
      core(`const now = Date.now()`),
      core(`const now = new Date()`),
      core(`const local = new Date(2026, 0)`),
      core(`const now = performance.now()`),
      core(`const chance = Math.random()`),
      core(`setTimeout(work, 1)`),
      core(`setInterval(work, 1)`),
      core(`setImmediate(work)`),
      core(`queueMicrotask(work)`),
      core(`const { env } = process`),
      core(`const id = crypto.randomUUID()`),
      core(`const clock = globalThis['Date']`),
      core(`const options = { performance }`),
    ],
    keeping: [
      core(`// Date.now() and process.env are not for here.\nconst prose = 'Math.random()'`),
      core(`ports.process.exit(job.crypto, { performance: 1 })`),
      core(`const refused = value instanceof Date`),
      core(`const read = new Date(text)`),
      engine(`const now = Date.now()`),
    ],
  },
  {
    promise: 'SQL is written in the stores alone',
    rule: sqlInStores,
    files: shipped,
    breaking: [
      engine(`run('SELECT id FROM jobs')`),
      engine(`run('select id from jobs')`),
      engine(`run(\`\n  INSERT INTO jobs VALUES (1)\`)`),
      engine(`run(\`WITH due AS (SELECT id\n FROM jobs) DELETE FROM \${table}\`)`),
      engine(`run(\`UPDATE \${table} SET state = 1\`)`),
      engine(`run('CREATE UNIQUE INDEX one_commit ON ledger(job)')`),
    ],
    keeping: [
      { 'src/stores/sqlite/claim.ts': `run('SELECT id FROM jobs')` },
      { 'src/cli/demo/shop.ts': `run('SELECT id FROM orders')` },
      engine(`// SELECT id FROM jobs\nfail('cannot select a job from an empty queue')`),
    ],
  },
  {
    promise: 'every folder of src is described in the document of the architecture',
    rule: foldersDescribed(architecture),
    files: source,
    breaking: [{ 'src/unheard/of.ts': '' }, { 'src/core/unheard/of.ts': '' }],
    keeping: [entry('')],
  },
  {
    promise: 'statements name lanes and fact kinds',
    rule: namedCodes,
    files: shipped,
    breaking: [
      { 'src/stores/sqlite/claim.ts': "run('UPDATE jobs SET a = 1 WHERE lane = 3')" },
      { 'src/stores/postgres/query.ts': 'const sql = `WHERE kind IN (10, 17)`' },
    ],
    keeping: [
      { 'src/stores/sqlite/claim.ts': `run('UPDATE jobs SET a = 1 WHERE lane = ' + LANES.held)` },
      { 'src/stores/sqlite/migrations/0001-ledger.ts': "const sql = 'WHERE lane = 3'" },
    ],
  },
  {
    promise: 'the contract of stores knows neither database',
    rule: neutralContract,
    files: shipped,
    breaking: [
      { 'src/stores/contract/store.ts': `import { claim } from '../sqlite/claim.ts'` },
      { 'src/stores/contract/store.ts': `import type { Tx } from '../verbs/operations.ts'` },
    ],
    keeping: [{ 'src/stores/contract/store.ts': `import { KeyTaken } from '../errors.ts'` }],
  },
  {
    promise: 'the two stores consist of files with the same names',
    rule: storeSymmetry,
    files: source,
    breaking: [
      { 'src/stores/sqlite/claim.ts': '', 'src/stores/postgres/settle.ts': '' },
      {
        'src/stores/sqlite/a.ts': '',
        'src/stores/sqlite/b.ts': '',
        'src/stores/postgres/a.ts': '',
      },
    ],
    keeping: [
      { 'src/stores/sqlite/claim.ts': '' },
      {
        'src/stores/sqlite/claim.ts': '',
        'src/stores/postgres/claim.ts': '',
        'src/stores/postgres/listen.ts': '',
      },
    ],
  },
]

const readability: Case[] = [
  {
    promise: 'files are at most 500 lines long',
    rule: shortFiles,
    files: [...source, ...programs],
    breaking: [core(lines(501))],
    keeping: [core(lines(500))],
  },
  {
    promise: 'functions are at most 70 lines long',
    rule: shortFunctions,
    files: [...shipped, ...programs],
    breaking: [
      core(`function long() {\n${lines(69)}}`),
      core(`const long = () => {\n${lines(69)}}`),
      core(`class Job {\n  long() {\n${lines(69)}}\n}`),
    ],
    keeping: [core(`function short() {\n${lines(68)}}\n${lines(10)}`)],
  },
  {
    promise: 'lines are at most 100 columns wide',
    rule: shortLines,
    files: [...source, ...programs, ...tests],
    breaking: [core(`// ${'x'.repeat(98)}`)],
    keeping: [core(`// ${'–'.repeat(97)}`)],
  },
  {
    promise: 'every public function and class has a doc comment',
    rule: documentedExports(entries),
    files: shipped,
    breaking: [
      entry(`export const a = () => 1`),
      entry(`export default () => 1`),
      entry(`/* Not a doc comment. */\nexport function a() {}`),
      entry(`/** Of b. */\nconst b = 1\nexport class A {}`),
      entry(`class A {}\nexport { A }`),
      { 'src/entries/testing.ts': `export class A {}` },
      { ...entry(`export * from './core/job.ts'`), ...core(`export function a() {}`) },
      { ...entry(`export { a as b } from './core/job.ts'`), ...core(`export function a() {}`) },
      {
        ...entry(`import { a } from './core/job.ts'\nexport { a }`),
        ...core(`export const a = function () {}`),
      },
    ],
    keeping: [
      entry(`export const a = 1`),
      entry(`export interface A {}\nexport type B = 1`),
      entry(`/**\n * Two\n * lines.\n */\nexport class A {}`),
      {
        ...entry(`export { a } from './core/job.ts'`),
        ...core(`/** A. */\nexport function a() {}`),
      },
      { ...entry(`export { a } from './core/job.ts'`), ...core(`const inner = 1`) },
    ],
  },
]

const documentation: Case[] = [
  {
    promise: 'every document has one title',
    rule: oneTitle,
    files: documents,
    breaking: [doc('# One\n\n# Two\n'), doc('## None\n')],
    keeping: [doc('# One\n\n```sh\n# a comment\n```\n')],
  },
  {
    promise: 'every decision record has a number of its own',
    rule: decisionsNumbered,
    files: documents,
    breaking: [
      { 'docs/decisions/0001-a.md': '# 0001: A\n', 'docs/decisions/0001-b.md': '# 0001: B\n' },
      { 'docs/decisions/0002-a.md': '# 0001: A\n' },
    ],
    keeping: [
      { 'docs/decisions/0001-a.md': '# 0001: A\n', 'docs/decisions/0002-b.md': '# 0002: B\n' },
      doc('# Not a decision\n'),
    ],
  },
  {
    promise: 'links in documents lead to existing files',
    rule: linksLeadSomewhere(existsSync),
    files: documents,
    breaking: [
      doc('See [this](missing.md).'),
      doc('See [this](../missing/) and ![that](missing.png "title").'),
      doc('See [this][1].\n\n[1]: missing.md#part'),
    ],
    keeping: [
      doc('See [this](../package.json), [that](#part) and [there](https://example.org/a).'),
      doc('```md\n[this](missing.md)\n```\n\nA link is written `[text](missing.md)`.'),
    ],
  },
  {
    promise: 'a walk through the tree has at most 22 files, which exist',
    rule: shortWalks(existsSync, 22),
    files: documents,
    breaking: [
      walk(['src/missing.ts']),
      walk(['src/index.ts', 'src/index.ts']),
      walk(['src/core/errors.ts', 'missing.ts']),
      walk([]),
      walk(shipped.slice(0, 23).map(({ path }) => path)),
    ],
    keeping: [walk(['src/core/errors.ts', 'fields.ts']), doc('| a | `src/missing.ts` | b |')],
  },
]

const term = (name: string, meaning = 'Something.') => `| ${name} | ${meaning} |\n`

const words: Case[] = [
  {
    promise: 'every term of the glossary is used in the code or in the documents',
    rule: termsAreUsed(glossary.map(({ text }) => text).join('')),
    files: otherTexts,
    breaking: [core('const nothing = 1')],
    keeping: [],
  },
  {
    promise: 'the glossary defines each term once, in a sentence',
    rule: termsAreDefinedOnce,
    files: glossary,
    breaking: [doc(term('lease') + term('lease')), doc(term('lease', 'a right'))],
    keeping: [doc(`| term | meaning |\n|---|---|\n${term('lease')}${term('fence')}`)],
  },
  {
    promise: 'retired words do not occur in folders that are rewritten',
    rule: noRetiredWords(plainFolders),
    files: shipped,
    breaking: [
      core('// As document 003 says.'),
      core('/** Returns the job that was given\n * back. */'),
      core(`fail('nobody holds the job')`),
      core('fail(`a kind of job`)'),
      core('// Nothing where the job has ended.'),
    ],
    keeping: [
      core('// The `Requester` is a type. See R3.'),
      core(`import { nobody } from './requester.ts'`),
      { 'src/unlisted/a.ts': '// Whoever holds it.' },
    ],
  },
]

const testing: Case[] = [
  {
    promise: 'no test is left out',
    rule: allTestsRun,
    files: tests,
    breaking: [test(`it.only('a', run)`), test(`describe.skip('a', run)`), test(`test.todo('a')`)],
    keeping: [test(`it('never says it.only', run)`), test(`results.skip(1)`)],
  },
  {
    promise: 'no test waits for time to pass',
    rule: noSleeps,
    files: tests,
    breaking: [
      test(`await new Promise((done) => setTimeout(done, 10))`),
      test(`import { setTimeout as sleep } from 'node:timers/promises'`),
    ],
    keeping: [test(`const timers = { setTimeout: 1 }\ntimers.setTimeout(run, 10)`)],
  },
]

const filesOf = (sample: Sample) => Object.entries(sample).map(([path, text]) => ({ path, text }))

for (const { promise, rule, files, breaking, keeping } of [
  ...structure,
  ...readability,
  ...documentation,
  ...words,
  ...testing,
]) {
  describe(promise, () => {
    it('holds in this repository', () => {
      expect(rule(files)).toEqual([])
    })

    it('is reported for every sample that breaks it', () => {
      const unreported = breaking.filter((sample) => rule(filesOf(sample)).length === 0)
      expect(unreported).toEqual([])
    })

    it('is not reported for samples that keep it', () => {
      expect(keeping.flatMap((sample) => rule(filesOf(sample)))).toEqual([])
    })
  })
}
