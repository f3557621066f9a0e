// Makes a checkout ready to run: dependencies installed, dist and .build current. Both halves keep
// a stamp, the hash of everything they were made from, inside what they made. The stamp is written
// last, so an interrupted install or build has none and is done again.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildDashboard } from './build-dashboard.mjs'
import { run } from './process.mjs'
import { leaveOutInnerTypes } from './published-types.mjs'

const outputs = [
  {
    name: 'dist',
    config: 'tsconfig.build.json',
    inputs: ['src', 'scripts/published-types.mjs'],
  },
  {
    // Inside of dist, hence made again whenever that is.
    name: 'dist/dashboard',
    config: 'dashboard/tsconfig.json',
    inputs: ['dashboard', 'src/core', 'src/audit', 'src/doctor', 'scripts/build-dashboard.mjs'],
    make: buildDashboard,
  },
  {
    name: '.build/programs',
    config: 'tsconfig.programs.json',
    // Programs are compiled against dist, hence made again whenever it is.
    inputs: [
      ...['src', 'tsconfig.build.json', 'examples', 'scripts', 'sim', 'bench', 'chaos', 'model'],
      ...['mutation', 'test/support', 'test/processes/children.ts', 'test/crash/common.mjs'],
    ],
  },
]

/** A preparation that failed, with what the failing command printed. */
export class PrepareError extends Error {}

/** Installs the dependencies exactly as locked, unless the installed ones already are. */
export async function install() {
  requireNode(20, 19)
  const stamp = 'node_modules/.stamp'
  const wanted = hash([
    readFileSync('package-lock.json'),
    JSON.stringify(dependencyFields()),
    // The tools are native programs, so a checkout moved to another machine needs other ones.
    `${process.platform} ${process.arch}`,
  ])
  if (read(stamp) === wanted) return

  process.stderr.write('Installing dependencies…\n')
  const { ok, stdout, stderr } = await run('npm', [
    'ci',
    '--include=dev',
    '--no-audit',
    '--no-fund',
    // A quiet `npm --silent start` must not hide why the install failed.
    '--loglevel=error',
  ])
  if (!ok) throw new PrepareError(stdout + stderr)
  writeFileSync(stamp, wanted)
}

/** Compiles the package and the repository's programs, unless their sources are unchanged. */
export async function build() {
  for (const { name, config, inputs, make = compile } of outputs) {
    const stamp = join(name, '.stamp')
    const wanted = hashOfFiles([
      ...inputs,
      config,
      'tsconfig.json',
      'package.json',
      'package-lock.json',
    ])
    if (read(stamp) === wanted) continue

    process.stderr.write(`Building ${name}…\n`)
    // What a removed source once became must not linger and be imported or published.
    rmSync(name, { recursive: true, force: true })
    await make(name, config)
    writeFileSync(stamp, wanted)
  }
}

async function compile(name, config) {
  const { ok, stdout, stderr } = await run('tsc', ['--project', config])
  if (!ok) throw new PrepareError(stdout + stderr)
  if (name === 'dist') leaveOutInnerTypes()
}

/** Runs a preparation for a command that cannot go on without it. */
export async function prepareOrExit() {
  try {
    await install()
    await build()
  } catch (error) {
    if (!(error instanceof PrepareError)) throw error
    process.stderr.write(error.message)
    process.exit(1)
  }
}

/** Says plainly what is wrong, where an older Node would fail somewhere inside a tool. */
function requireNode(major, minor) {
  const [ownMajor, ownMinor] = process.versions.node.split('.').map(Number)
  if (ownMajor > major || (ownMajor === major && ownMinor >= minor)) return
  throw new PrepareError(`Node ${major}.${minor} or newer is needed; this is ${process.version}.\n`)
}

/** What package.json says about dependencies; its other fields do not call for an install. */
function dependencyFields() {
  const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
  return Object.entries(manifest).filter(([field]) =>
    /dependencies|overrides|workspaces/i.test(field),
  )
}

function hashOfFiles(paths) {
  return hash(paths.flatMap(filesUnder).flatMap((path) => [path, readFileSync(path)]))
}

function filesUnder(path) {
  if (!existsSync(path)) return []
  if (statSync(path).isFile()) return [path]
  // Tests beside their sources are not built, so a change to them is no reason to build.
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}

function hash(parts) {
  const sum = createHash('sha256')
  for (const part of parts) sum.update(String(part.length)).update('\0').update(part)
  return sum.digest('hex')
}

function read(path) {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}
