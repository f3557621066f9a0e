// The configuration file: where it is found, what it may contain, and what is printed of it.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig, type PawlConfig } from 'pawl/config'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { findConfig } from '../../src/cli/config-file.ts'
import { Place, said } from './pawl.ts'

const JOBS = `
import { defineJob } from 'pawl'
export const hello = defineJob({ name: 'hello', run: ({ input }) => 'hi ' + (input as string) })
`
const CONFIG = (more = '') => `
import { defineConfig } from 'pawl/config'
export default defineConfig({ jobs: './jobs.ts', ${more} })
`

function placeWith(files: Readonly<Record<string, string>>): Place {
  const place = new Place()
  for (const [name, text] of Object.entries(files)) writeFileSync(join(place.folder, name), text)
  return place
}

describe('a configuration file', () => {
  const forms: [string, string][] = [
    ['pawl.config.ts', `${CONFIG('operator: "of the file" as string')}`],
    ['pawl.config.mts', `${CONFIG('operator: "of the file" as string')}`],
    ['pawl.config.js', CONFIG('operator: "of the file"')],
    ['pawl.config.mjs', CONFIG('operator: "of the file"')],
    ['pawl.config.json', '{"jobs": ["./jobs.ts"], "operator": "of the file"}'],
  ]

  it.each(forms)('%s is used by every command below its folder', async (name, text) => {
    const place = placeWith({ [name]: text, 'jobs.ts': JOBS })
    const below = join(place.folder, 'packages', 'app')
    mkdirSync(below, { recursive: true })
    const env = { PAWL_STORE: '', PAWL_OPERATOR: '' }
    const at = { cwd: below, env }
    const enqueued = await place.run(['job', 'enqueue', 'hello', '"ada"', '--json'], at)
    expect(enqueued.stderr).toBe('')
    const { id } = JSON.parse(enqueued.stdout) as { id: string }
    const worked = await place.run(['work', '--once', '--verbose'], at)
    expect(worked).toMatchObject({ code: 0, stdout: expect.stringContaining(`${id} hello`) })
    const path = join(place.folder, name)
    expect(worked.stderr).toContain(`config: ${path}\n`)
    expect(worked.stderr).toContain(`jobs: ${join(place.folder, 'jobs.ts')} (from ${path})\n`)
    // The default store is in the folder of the file, not in the current one.
    const store = `store: sqlite:${join(place.folder, '.pawl', 'jobs.db')} (from the default)`
    expect(worked.stderr).toContain(store)
    const cancelled = await place.run(['job', 'copy', id, '--reason', 'x', '--verbose'], at)
    expect(cancelled.stderr).toContain(`operator: of the file (from ${path})`)
  })

  it('sets the worker; a flag and the environment outrank it', async () => {
    const place = placeWith({
      'jobs.ts': JOBS,
      'pawl.config.mjs': CONFIG(`work: { concurrency: 3, queues: ['mail'], lease: '5s' },
        retention: { succeeded: '30d' }`),
    })
    const path = join(place.folder, 'pawl.config.mjs')
    const says = async (args: string[], env: Record<string, string> = {}) =>
      (await place.run(['work', '--once', '--verbose', ...args], { env })).stderr
    const own = await says([])
    expect(own).toContain(`concurrency: 3 (from ${path})`)
    expect(own).toContain(`queues: mail (from ${path})`)
    expect(own).toContain(`lease: 5s (from ${path})`)
    expect(own).toContain('drain: not set (from the default)')
    expect(own).toContain(`retention: {"succeeded":"30d"} (from ${path})`)
    expect(await says([], { PAWL_CONCURRENCY: '4' })).toContain('concurrency: 4 (from PAWL_CON')
    const flag = await says(['--concurrency', '5'], { PAWL_CONCURRENCY: '4' })
    expect(flag).toContain('concurrency: 5 (from --concurrency)')
    const wrong = await place.run(['work', '--once'], { env: { PAWL_CONCURRENCY: 'many' } })
    expect(wrong.code).toBe(2)
    expect(wrong.stderr).toContain('PAWL_CONCURRENCY must be a whole number')
    // The same words mean other things in other commands.
    const limit = ['limit', 'set', 'queue/mail', '--concurrency', '0', '--reason', 'x']
    expect(await place.run(limit)).toMatchObject({ code: 0 })
    const status = await place.json('retention', 'status')
    expect(JSON.stringify(status)).toContain('2592000000')
  })

  it('sets the server', async () => {
    const text = CONFIG("serve: { port: 0, basePath: '/pawl' }")
    const place = placeWith({ 'jobs.ts': JOBS, 'pawl.config.ts': text })
    const child = place.start(['serve'])
    expect(await said(child.stdout, /\n/)).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/pawl\n$/)
    child.kill('SIGTERM')
  })

  it('never shows the password of the store', async () => {
    const store = 'postgres://ada:s3cret@127.0.0.1:1/none'
    const place = placeWith({ 'jobs.ts': JOBS, 'pawl.config.ts': CONFIG(`store: '${store}'`) })
    const env = { PAWL_STORE: '' }
    for (const args of [
      ['job', 'list', '--verbose'],
      ['db', 'status', '--verbose', '--json'],
    ]) {
      const { stdout, stderr } = await place.run(args, { env })
      expect(stderr).toContain('ada:***@127.0.0.1')
      expect(stdout + stderr).not.toContain('s3cret')
    }
  })
})

describe('a configuration file is refused with E_CONFIG_INVALID', () => {
  const refused: [string, Record<string, string>, RegExp][] = [
    ['without a default export', { 'pawl.config.ts': 'export const a = 1' }, /no default export/],
    ['with a syntax error', { 'pawl.config.ts': 'export default {' }, /cannot be loaded/],
    ['that throws', { 'pawl.config.mjs': 'throw new Error("no \\u001b[31m")' }, /no \\x1b\[31m/],
    [
      'beside another one',
      { 'pawl.config.ts': CONFIG(), 'pawl.config.json': '{}' },
      /is not the only one: there is .*pawl\.config\.json/,
    ],
    [
      'with an unknown field',
      { 'pawl.config.ts': CONFIG('opertor: "ada"') },
      /"opertor" is not known; known fields: .*\n.*Did you mean "operator"\?/,
    ],
    [
      'with hidden characters in a field',
      { 'pawl.config.json': '{"a\\u001b[31m": 1}' },
      /"a\\x1b\[31m" is not known/,
    ],
  ]

  it.each(refused)('%s', async (_, files, why) => {
    const { code, stderr } = await placeWith(files).run(['machine', 'list'])
    expect(stderr).toMatch(why)
    expect(stderr).toContain('E_CONFIG_INVALID')
    expect(code).toBe(2)
  })

  it.skipIf(process.getuid?.() !== 0)('that another user wrote in a parent folder', async () => {
    const { chownSync } = await import('node:fs')
    const place = placeWith({ 'pawl.config.mjs': CONFIG(), 'jobs.ts': JOBS })
    const path = join(place.folder, 'pawl.config.mjs')
    chownSync(path, 12_345, 12_345)
    chmodSync(path, 0o644)
    const below = join(place.folder, 'below')
    mkdirSync(below)
    const { code, stderr } = await place.run(['machine', 'list'], { cwd: below })
    expect([code, stderr]).toEqual([2, expect.stringMatching(/belongs to another user.*not run/)])
    expect((await place.run(['machine', 'list', '--config', path], { cwd: below })).code).toBe(0)
    expect((await place.run(['machine', 'list'])).code).toBe(0)
  })
})

describe('the search for a configuration file', () => {
  it('ends at the root of a repository', () => {
    const { folder } = placeWith({ 'pawl.config.json': '{}' })
    const inner = join(folder, 'repository', 'src')
    mkdirSync(inner, { recursive: true })
    expect(findConfig(inner)).toBe(join(folder, 'pawl.config.json'))
    mkdirSync(join(folder, 'repository', '.git'))
    expect(findConfig(inner)).toBeUndefined()
  })
})

it('defineConfig returns its argument and refuses unknown fields by type', () => {
  const config = { store: 'sqlite:./jobs.db', work: { concurrency: 4 } }
  expect(defineConfig(config)).toBe(config)
  expectTypeOf(defineConfig).parameter(0).toEqualTypeOf<PawlConfig>()
  // @ts-expect-error A misspelt field does not compile.
  defineConfig({ stroe: 'sqlite:./jobs.db' })
})
