// What npm would publish. Reads dist.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path/posix'
import { expect, it, onTestFinished } from 'vitest'

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
  const list = files.map((path) => path.replace(/^(dist\/.*?)[^/]+?(\.d\.ts|\.js)$/, '$1*$2'))
  await expect([...new Set(list.sort()), ''].join('\n')).toMatchFileSnapshot('contents.txt')
})

it('the package has at most 700 files and 4 MB', () => {
  expect(files.length).toBeLessThanOrEqual(700)
  expect(packed.unpackedSize).toBeLessThanOrEqual(4_000_000)
})

it('every source is published as JavaScript with its comments, where editors find it', () => {
  const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
    .map((path) => `dist/${path.replace(/ts$/, 'js')}`)
  expect(built.filter((path) => path.endsWith('.js'))).toEqual(sources.sort())
  expect(readFileSync('dist/engine/define-job.js', 'utf8')).toContain('/** Defines a ')
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
