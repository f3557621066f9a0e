/**
 * Makes a copy of this package without its commit boundary, to show what the boundary prevents. The
 * package itself has no switch that turns the boundary off: the copy is made from the built files,
 * and four statements in it are replaced.
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

/** Replaces the answer of a rejected commit by success. */
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
    find: 'const after = changes.answer(begun, committed, workerIn(trace), result);',
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
    find: 'const after = changes.answer(read, committed, workerIn(trace), result);',
    put: accepted('read.job'),
  },
]

/** What the engine loads: the optional drivers that are installed, and the reader of cron. */
const PACKAGES = ['@photostructure/sqlite', 'pg', 'croner'] as const

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
      throw new Error(
        `${file} must contain this statement once, not ${parts.length - 1} times: ${find}`,
      )
    }
    const call = find.replace(/^const \w+ = /, '').replace(/;$/, '')
    await writeFile(path, parts.join(put.replace('$', () => call)))
  }
  await linkPackages(join(folder, 'node_modules'), dist)
  return pathToFileURL(`${target}/`)
}

/** Makes packages that are installed for `dist` visible to the copy. */
async function linkPackages(modules: string, dist: string): Promise<void> {
  const roots = createRequire(join(dist, 'index.js')).resolve.paths('pg') ?? []
  for (const name of PACKAGES) {
    const found = roots.map((root) => join(root, name)).find((path) => existsSync(path))
    if (found === undefined) continue
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(found, join(modules, name), 'junction')
  }
}
