import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/**
 * The seed of all random choices in tests (test/support/seed.ts), fixed unless it is asked for.
 * The workers take it from here, so that `random` is the same number for all of them.
 */
const seed = seedFrom(process.env.PAWL_TEST_SEED)

const source = (path: string) => fileURLToPath(new URL(`src/${path}`, import.meta.url))

/** Tests with processes of their own, which they stop and kill; they need the machine. */
const alone = [
  'chaos',
  'crash',
  'engine/processes',
  'failure-modes',
  'postgres',
  'processes',
  'runs/processes',
  'sim',
].map((folder) => `test/${folder}/**/*.test.ts`)

/** What tells nothing of a second Node that the first has not told: left out where time is short. */
const alike = [
  'chaos/chaos',
  'cli/{audit,doctor,hostile,jobs,places,runs,runs-in-store}',
  'conformance/000-invariants-both-stores',
  'contract/postgres-{debian,pooled}',
  'doctor/{corruption,fuzz}',
  'engine/processes/{orders,outage}',
  'interleavings/postgres-pairs',
  'model',
  'postgres/faults/*',
  'sim/canaries',
  'stores/{examination,examination-schema,postgres-examination,postgres-opening}',
  'support/postgres/server',
].map((name) => `test/${name}.test.ts`)
const left = process.env.PAWL_TEST_BRIEF === undefined ? [] : alike

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
    globalSetup: ['test/support/postgres/global-setup.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'together',
          include: ['test/**/*.test.ts', 'src/**/*.test.ts'],
          exclude: [...alone, ...left],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'alone',
          include: alone,
          exclude: left,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
    // Built files are loaded by Node itself, not transformed: a copy of them has no source maps.
    server: { deps: { external: [/\/dist\/.*\.js$/] } },
    // Processes rather than threads: a test may send itself signals or change its directory.
    pool: 'forks',
    testTimeout: 20_000,
    hookTimeout: 20_000,
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts'],
      exclude: ['src/**/*.test.ts'],
      reporter: [['text', { skipFull: true }], 'json-summary'],
      reportsDirectory: '.build/coverage',
      thresholds: {
        // The core holds every rule, hence every branch of it is exercised.
        'src/core/**': { branches: 100, functions: 100, lines: 100, statements: 100 },
      },
    },
  },
})

function seedFrom(given: string | undefined): number {
  if (given === undefined) return 1
  const seed = given === 'random' ? 2 + Math.floor(Math.random() * 20_000) : Number(given)
  if (Number.isInteger(seed) && seed > 0 && seed <= 1_000_000) return seed
  throw new Error(`PAWL_TEST_SEED is ${given}: give a number from 1 to 1000000, or random.`)
}
