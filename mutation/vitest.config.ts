// The tests of the core alone: nothing here opens a database, so that a mutant costs little.
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { CheapestFirst } from './cheapest-first.ts'

const core = fileURLToPath(new URL('core.ts', import.meta.url))

export default defineConfig({
  resolve: { alias: [{ find: /^pawl(\/(errors|rules|runs|testing))?$/, replacement: core }] },
  test: {
    include: [
      'test/core/**/*.test.ts',
      'test/invariants/**/*.test.ts',
      'test/machine/**/*.test.ts',
      'test/transitions/**/*.test.ts',
      'test/support/random-history.test.ts',
      'test/conformance/rules/*.test.ts',
      'test/testing/given.test.ts',
    ],
    setupFiles: ['mutation/setup.ts'],
    // Loading the sources takes longer than most tests; a mutant is loaded once for all of them.
    isolate: false,
    sequence: { sequencer: CheapestFirst },
    testTimeout: 20_000,
  },
})
