// `pawl/define` as it is published: what it loads, and where it can be used.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'

/** What a module loads at run time, directly or not: files of dist, and other modules by name. */
function loadedBy(path: string, found = new Set<string>()): Set<string> {
  if (found.has(path)) return found
  found.add(path)
  const text = readFileSync(path, 'utf8')
  const loads =
    /(?:^|\n)(?:import|export)\s(?:[^'"]*?\sfrom\s+)?['"]([^'"]+)['"]|import\(([^)]*)\)/g
  for (const [, target = '?'] of text.replaceAll(/\/\*[\s\S]*?\*\//g, '').matchAll(loads)) {
    if (target.startsWith('.')) loadedBy(join(dirname(path), target), found)
    else found.add(target)
  }
  return found
}

it('loads nothing of Node, no other package, no store and no worker', () => {
  const loaded = [...loadedBy('dist/entries/define.js')]
  expect(loaded.filter((path) => !path.startsWith('dist/'))).toEqual([])
  const isOther = (path: string) => /^dist\/(stores|environment|doctor|cli|runs)/.test(path)
  expect(loaded.filter(isOther)).toEqual([])
  expect(loaded.length).toBeLessThan(50)
  // The same walk finds them where they are.
  expect([...loadedBy('dist/index.js')].some((path) => path.startsWith('node:'))).toBe(true)
})

it('works without globals of Node', () => {
  const code = `
    delete globalThis.Buffer; delete globalThis.process; delete globalThis.setImmediate
    const { defineJob, typed, encodeValue, decodeValue } = await import('pawl/define')
    const job = defineJob({ name: 'resize', queue: 'images', input: typed() })
    const text = encodeValue({ at: new Date(0), bytes: new Uint8Array([1, 2]) })
    if (decodeValue(text).at.getTime() !== 0) throw new Error('changed')
    console.log(job.name, job.queue, text)`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
  })
  expect(stderr).not.toMatch(/Error/)
  expect(stdout).toContain('resize images {"at":{"@pawl:date"')
})

it('compiles in a browser project, without the types of Node', () => {
  const folder = mkdtempSync('.build/define-')
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const compilerOptions = {
    ...{ module: 'esnext', moduleResolution: 'bundler', target: 'es2022', strict: true },
    ...{ lib: ['es2022', 'esnext.disposable', 'dom'], types: [], noEmit: true },
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
  writeFileSync(
    join(folder, 'page.ts'),
    `import { defineJob, encodeValue, type InputOf, typed } from 'pawl/define'
     const schema = typed<{ at: Date }>()
     export const job = defineJob({ name: 'resize', input: schema })
     const input: InputOf<typeof schema> = { at: new Date() }
     export const body: string = encodeValue(input)`,
  )
  const { stdout } = spawnSync('node_modules/.bin/tsc', ['-p', folder, '--pretty', 'false'], {
    encoding: 'utf8',
  })
  expect(stdout).toBe('')
}, 120_000)

it('and the other entries load from CommonJS, and have types there with module nodenext', () => {
  const folder = mkdtempSync('.build/cjs-')
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const compilerOptions = { module: 'nodenext', target: 'es2022', strict: true, skipLibCheck: true }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
  writeFileSync(
    join(folder, 'main.cts'),
    `import { defineJob, typed } from 'pawl'
     import { defineJob as same } from 'pawl/define'
     const job = defineJob({ name: 'resize', input: typed<{ at: Date }>() })
     console.log(job.name, same === defineJob)`,
  )
  const { stdout: problems } = spawnSync('node_modules/.bin/tsc', ['-p', folder], {
    encoding: 'utf8',
  })
  expect(problems).toBe('')
  const { stdout } = spawnSync(process.execPath, [join(folder, 'main.cjs')], { encoding: 'utf8' })
  expect(stdout).toBe('resize true\n')
}, 120_000)
