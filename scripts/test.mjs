// `npm test`: every check of the repository that takes minutes, in a fresh clone as well. What
// repeats tests at length is `npm run prove`; test/support/extent.ts says which tests are where.
import { drawSeed, readArguments, runSteps, vitest } from './checks.mjs'

const program = (name) => `.build/programs/scripts/${name}.js`
const seed = drawSeed(process.env.PAWL_TEST_SEED)
const env = { PAWL_TEST_SEED: seed }
const rules = vitest('rules', ['--project', 'rules', '--coverage'], env)
const projects = ['together', 'alone', 'whole machine']
const tests = vitest(
  'tests',
  projects.flatMap((name) => ['--project', name]),
  env,
)
const reports = [rules, tests].flatMap(({ report }) => ['--report', report])

const steps = [
  { name: 'types', command: ['tsc', '--noEmit'] },
  { name: 'types-dashboard', command: ['tsc', '--noEmit', '--project', 'dashboard'] },
  { name: 'lint', command: ['biome', 'check', '--error-on-warnings'] },
  { name: 'dead-code', command: ['knip', '--no-progress', '--no-config-hints'] },
  { name: 'package', command: ['node', 'scripts/check-package.mjs'], build: 'needed' },
  { name: 'docs', command: ['node', program('generate-docs'), '--check'], build: 'needed' },
  // Pure functions, without the database of the other tests, and the coverage of the core by them.
  rules,
  tests,
  // After the tests, whose reports say which of them were skipped on this machine.
  {
    name: 'requirements',
    command: ['node', program('check-requirements'), '--json', ...reports],
    build: 'needed',
    summary: ({ open }) => ({ openRequirements: open }),
  },
]

const usage = `Usage: npm test -- [--json] [--only <step>]…
Steps: ${steps.map(({ name }) => name).join(', ')}
`

await runSteps(steps, { ...readArguments(usage, steps), seed })
