import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { isProof, proofs, proveOnly } from './test/support/extent.ts'
import { useQuickFolder } from './test/support/quick-folder.ts'

useQuickFolder()

/**
 * The seed of all random choices in tests (test/support/seed.ts), fixed unless it is asked for.
 * The workers take it from here, so that `random` is the same number for all of them.
 */
const seed = seedFrom(process.env.PAWL_TEST_SEED)

const source = (path: string) => fileURLToPath(new URL(`src/${path}`, import.meta.url))

/** Tests of pure functions: no store, process, file or real time. They cover the whole core. */
const rules = ['conformance/rules', 'core', 'invariants', 'machine', 'transitions']

/** Tests with processes of their own, which they stop and kill; others would take their time. */
const alone = [
  'crash',
  'engine/processes',
  'failure-modes',
  'postgres',
  'processes',
  'runs/processes',
]

/** Tests that use every core by themselves. */
const wholeMachine = ['chaos', 'sim']

/**
 * Left out on the second Node, to save time: what depends on SQL, on the rules, on a browser or on
 * the documents, and not on Node. What stays covers the drivers, threads, timers, processes,
 * signals, files, streams, modules and HTTP.
 */
const alike = [
  ...['bench', 'failure-list', 'guides', 'mutation', 'recipes', 'requirements-check', 'tidy'],
  ...['walk', 'audit/*', 'chaos/*', 'conformance/*-both-stores', 'costs/*', 'dashboard/*'],
  'cli/{audit,doctor,frame,hostile,job-show,jobs,limits,machine-migrate,parts,places,queues}',
  'cli/{replay,retention,runs,runs-in-store,schedules,several,signals,stats}',
  ...['crash/*', 'doctor/*', 'engine/{boundary-property,groups,limits,many-schedules}'],
  'engine/processes/{admissions,crash-points,enqueuing,orders,schedules}',
  ...['http/worker-contract', 'interleavings/*', 'package/{contents,define,surface}'],
  ...['package/{unknown-options,version}', 'postgres/faults/*', 'processes/{limits,load}'],
  'runs/{crashes,damage,damaged-views,explain-property,forged-runs}',
  'stores/{columns,damaged-*,examination*,executions-view,far-times,postgres-*,stray-effects}',
  ...['stores/sqlite-{constraints,damaged-time,list,order,plans}', 'support/**/*'],
].map((name) => `test/${name}.test.ts`)
const left = process.env.PAWL_TEST_BRIEF === undefined ? [] : alike

/** The files that take longest, in this order, start first: then the workers end together. */
const slow = [
  'contract/postgres',
  'http/worker-contract',
  'contract/sqlite',
  'cli/work',
  'examples',
  'interleavings/sqlite',
  'dashboard/hostile',
  'dashboard/walk',
  'dashboard/runs',
  'cli/dev',
  'package/first-minutes',
  'sim/simulator',
  'engine/processes/crash-points',
  'engine/processes/crashes',
  'engine/processes/enqueuing',
  'engine/processes/orders',
  'failure-modes/wall-clock',
  'processes/bundle',
  'processes/limits',
  'crash/kill',
].map((name) => fileURLToPath(new URL(`test/${name}.test.ts`, import.meta.url)))

class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const rank = ({ moduleId }: TestSpecification) =>
      slow.includes(moduleId) ? slow.indexOf(moduleId) : slow.length
    return sorted.sort((a, b) => rank(a) - rank(b))
  }
}

const below = (folders: string[]) => folders.map((folder) => `test/${folder}/**/*.test.ts`)
const isIn = (folders: string[]) => (path: string) =>
  folders.some((folder) => path.startsWith(`test/${folder}/`))

/** The files of each project, in `npm test` and in `npm run prove`. */
const files = isProof
  ? {
      rules: [],
      together: proofs.filter((path) => !isIn([...alone, ...wholeMachine])(path)),
      alone: proofs.filter(isIn(alone)),
      wholeMachine: proofs.filter(isIn(wholeMachine)),
    }
  : {
      rules: [...below(rules), 'src/**/*.test.ts'],
      together: ['test/**/*.test.ts'],
      alone: below(alone),
      wholeMachine: below(wholeMachine),
    }
const exclude = isProof ? [] : [...left, ...proveOnly]

export default defineConfig({
  resolve: {
    // Tests read the sources, so that coverage and stack traces speak of them and not of dist.
    alias: [
      { find: /^pawl$/, replacement: source('index.ts') },
      { find: /^pawl\/(\w+)$/, replacement: source('entries/$1.ts') },
    ],
  },
  test: {
    env: { PAWL_TEST_SEED: String(seed) },
    setupFiles: ['test/support/setup.ts'],
    sequence: { sequencer: SlowFirst },
    projects: [
      {
        extends: true,
        test: { name: 'rules', include: files.rules, sequence: { groupOrder: 0 } },
      },
      {
        extends: true,
        test: {
          name: 'together',
          include: files.together,
          exclude: [...exclude, ...below([...rules, ...alone, ...wholeMachine])],
          globalSetup: ['test/support/postgres/global-setup.ts'],
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'alone',
          include: files.alone,
          exclude,
          globalSetup: ['test/support/postgres/global-setup.ts'],
          // A process of its own for each file: what one leaves behind reaches no other's children.
          isolate: true,
          // These tests wait for leases and for processes about half of their time.
          maxWorkers: 3,
          testTimeout: 120_000,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          name: 'whole machine',
          include: files.wholeMachine,
          exclude,
          isolate: true,
          maxWorkers: isProof ? 1 : 2,
          sequence: { groupOrder: 3 },
        },
      },
    ],
    // Built files are loaded by Node itself, not transformed: a copy of them has no source maps.
    server: { deps: { external: [/\/dist\/.*\.js$/] } },
    // Processes rather than threads: a test may send itself signals or change its directory.
    pool: 'forks',
    // A worker keeps what it has loaded for its next file: to start a process and to load the
    // sources for each of 250 files took longer than most of the tests themselves.
    isolate: false,
    // Ends what hangs. What a promise says about time is asserted by its test, and a busy machine
    // is no failure.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    coverage: {
      provider: 'v8',
      // The core holds every rule, hence every branch of it is exercised, by the tests of rules.
      include: ['src/core/**/*.ts'],
      exclude: ['src/**/*.test.ts'],
      reporter: [['text', { skipFull: true }], 'json-summary'],
      reportsDirectory: '.build/coverage',
      thresholds: { branches: 100, functions: 100, lines: 100, statements: 100 },
    },
  },
})

function seedFrom(given: string | undefined): number {
  if (given === undefined) return 1
  const seed = given === 'random' ? 2 + Math.floor(Math.random() * 20_000) : Number(given)
  if (Number.isInteger(seed) && seed > 0 && seed <= 1_000_000) return seed
  throw new Error(`PAWL_TEST_SEED is ${given}: give a number from 1 to 1000000, or random.`)
}
