/**
 * A copy of this package whose commit boundary is removed, for demonstrations of what the boundary
 * prevents. The package itself has no switch that turns the boundary off: the copy is made from the
 * built files, in a folder of the caller's, and four statements in it are replaced.
 *
 * In the copy `commit` neither checks the fence nor looks for an earlier COMMITTED fact, before the
 * user's function and after it. Everything else (claims, leases, recovery, the ledger and its
 * constraints) is the code of the package. The second commit of a job therefore applies its writes
 * and leaves no fact: the ledger's unique index would refuse the fact.
 *
 * Each replaced text must occur exactly once, so a change of the commit verbs that no longer fits
 * fails the demonstration and test/failure-modes/fm-001.test.ts.
 */
import { existsSync } from 'node:fs'
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

interface Replacement {
  readonly file: string
  readonly find: string
  readonly put: string
}

/** The answer of a commit that was refused, replaced by success. */
const accepted = (job: string) =>
  `const asked = $; const after = asked.kind === 'done' ? asked : { kind: 'done', job: ${job} };`

const REPLACEMENTS: readonly Replacement[] = [
  {
    file: 'stores/sqlite/commit.js',
    find: 'const decision = decide(lifecycle, job, commitCommand(held), context);',
    put: "const decision = { kind: 'done' };",
  },
  {
    file: 'stores/sqlite/commit.js',
    find: 'const after = changes.answer(begun, committed, WORKER, result);',
    put: accepted('begun.job'),
  },
  {
    file: 'stores/postgres/commit.js',
    find:
      'const before = decide(read.lifecycle, read.job, command, ' +
      'contextOf(environment, WORKER, start));',
    put: "const before = { kind: 'done' };",
  },
  {
    file: 'stores/postgres/commit.js',
    find: 'const after = changes.answer(read, committed, WORKER, result);',
    put: accepted('read.job'),
  },
]

/** The optional drivers, which the copy loads from where the package finds them. */
const DRIVERS = ['@photostructure/sqlite', 'pg'] as const

/**
 * Copies the built package into `folder` (which is created), without its commit boundary. Returns
 * the URL of the copy's `dist`, with a slash at the end. `dist` is the folder of the built package.
 */
export async function copyUnfenced(
  folder: string,
  dist = fileURLToPath(new URL('../..', import.meta.url)),
): Promise<URL> {
  const target = join(folder, 'dist')
  const isCode = (path: string) => !path.endsWith('.d.ts')
  await cp(dist, target, { recursive: true, filter: isCode })
  await cp(join(dist, '..', 'package.json'), join(folder, 'package.json'))
  await cp(join(dist, '..', 'specs'), join(folder, 'specs'), { recursive: true })
  for (const { file, find, put } of REPLACEMENTS) {
    const path = join(target, file)
    const parts = (await readFile(path, 'utf8')).split(find)
    if (parts.length !== 2) {
      throw new Error(`${file} has ${parts.length - 1} times the statement to remove: ${find}`)
    }
    const call = find.replace(/^const \w+ = /, '').replace(/;$/, '')
    await writeFile(path, parts.join(put.replace('$', () => call)))
  }
  await linkDrivers(join(folder, 'node_modules'), dist)
  return pathToFileURL(`${target}/`)
}

/** Makes the drivers that are installed for `dist` visible to the copy. */
async function linkDrivers(modules: string, dist: string): Promise<void> {
  const roots = createRequire(join(dist, 'index.js')).resolve.paths('pg') ?? []
  for (const name of DRIVERS) {
    const found = roots.map((root) => join(root, name)).find((path) => existsSync(path))
    if (found === undefined) continue
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(found, join(modules, name), 'junction')
  }
}
