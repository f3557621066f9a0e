// What npm would publish. Reads dist.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path/posix'
import { expect, it, onTestFinished } from 'vitest'
import { isEmpty } from '../../scripts/published-types.mjs'
import { readFiles } from '../tidy/files.ts'
import { stringsOf } from '../tidy/syntax.ts'

interface Packed {
  readonly unpackedSize: number
  readonly files: readonly { readonly path: string }[]
}

// A list of packages, or an object of them in newer versions of npm.
const [packed] = Object.values(
  JSON.parse(
    execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=error'], {
      encoding: 'utf8',
    }),
  ) as object,
) as [Packed]
const files = packed.files.map(({ path }) => path).sort()
const built = files.filter((path) => path.startsWith('dist/'))
const declarations = built.filter((path) => path.endsWith('.d.ts'))

it('the package contains what the list says, and nothing else', async () => {
  // Compiled files follow the sources one by one (see below), so that their folders are enough.
  const list = files.map((path) =>
    path
      .replace(/^(dist\/.*?)[^/]+?(\.d\.ts|\.js)$/, '$1*$2')
      // Names of assets contain a hash of their content.
      .replace(/-[\w-]{10}\.css$/, '-*.css'),
  )
  await expect([...new Set(list.sort()), ''].join('\n')).toMatchFileSnapshot('contents.txt')
})

it('the package has at most 1100 files and 5.2 MB', () => {
  expect(files.length).toBeLessThanOrEqual(1100)
  expect(packed.unpackedSize).toBeLessThanOrEqual(5_200_000)
})

it('every document that a message or a help text names is published', () => {
  const named = readFiles(['src'], /\.ts$/)
    .flatMap((file) => stringsOf(file).map(({ text }) => text))
    .flatMap((text) => text.match(/docs\/[\w/-]+\.md/g) ?? [])
  expect(named).toContain('docs/reference/errors.md')
  expect(named.filter((path) => !files.includes(path))).toEqual([])
})

it('every source is published as JavaScript with its comments, where editors find it', () => {
  const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
    .map((path) => `dist/${path.replace(/ts$/, 'js')}`)
    // Types alone; their declarations are published if users can reach them.
    .filter((path) => !isEmpty(path))
  const modules = built.filter(
    (path) => path.endsWith('.js') && !path.startsWith('dist/dashboard/'),
  )
  expect(modules).toEqual(sources.sort())
  expect(readFileSync('dist/engine/define-job.js', 'utf8')).toContain('/** Defines a ')
})

it('every module that a published module loads is published', () => {
  const modules = built.filter((path) => path.endsWith('.js'))
  const missing = modules.flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(/(?:from|import\(?)\s*['"](\.[^'"]+\.js)['"]/g)]
      .map(([, target = '']) => join(dirname(path), target))
      .filter((target) => !modules.includes(target)),
  )
  expect(missing).toEqual([])
})

it('every declaration that a published declaration imports is published', () => {
  const missing = declarations.flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(/(?:from|import\()\s*['"](\.[^'"]+)\.(?:ts|js)['"]/g)]
      .map(([, target = '']) => join(dirname(path), `${target}.d.ts`))
      .filter((target) => !declarations.includes(target)),
  )
  expect(missing).toEqual([])
})

it('declarations agree with each other, and the examples compile with them', () => {
  // Inside the repository, so that `pawl` means this package by its own `exports`.
  const folder = mkdtempSync('.build/examples-')
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const config = {
    extends: '../../tsconfig.json',
    compilerOptions: { rootDir: '../..', paths: {}, skipLibCheck: false },
    include: ['../../examples', '../../dist/entries'],
    // Query builders have megabytes of declarations.
    exclude: ['../../examples/05-transactions'],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const { stdout } = spawnSync('node_modules/.bin/tsc', ['-p', folder, '--pretty', 'false'], {
    encoding: 'utf8',
  })
  // Declarations of other packages are their own affair.
  expect(stdout.split('\n').filter((line) => /^(dist|examples)\//.test(line))).toEqual([])
}, 120_000)
