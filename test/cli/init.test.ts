// `pawl init`: what it detects, what it writes, and what it leaves alone.
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { detect, hasSqlite } from '../../src/cli/init/detect.ts'
import { filesOf, RECIPES } from '../../src/cli/init/templates.ts'
import { freshFolder } from '../processes/folder.ts'
import { typeErrors } from '../support/snippets.ts'
import { Place } from './pawl.ts'

interface Said {
  readonly language: string
  readonly packageManager: string
  readonly framework?: string
  readonly dryRun: boolean
  readonly changes: readonly { what: string; name: string; action: string; why?: string }[]
  readonly next: readonly string[]
}

function folderWith(files: Readonly<Record<string, string>>): Place {
  const place = new Place()
  for (const [name, text] of Object.entries(files)) writeFileSync(join(place.folder, name), text)
  return place
}

const read = ({ folder }: Place, name: string) => readFileSync(join(folder, name), 'utf8')
const PACKAGE = (fields: object) => JSON.stringify(fields)

describe('pawl init', () => {
  it('makes a project of an empty folder, whose job runs', async () => {
    const place = new Place()
    const said = await place.ok('init', '--yes')
    expect(readdirSync(place.folder).sort()).toEqual([
      ...['jobs', 'package.json', 'pawl.config.js', 'worker.js'],
    ])
    expect(said).toContain('created pawl.config.js\n')
    expect(said).toContain('Retention is off')
    expect(said).toContain('npx pawl dev')
    expect(JSON.parse(read(place, 'package.json'))).toMatchObject({
      ...{ private: true, type: 'module' },
      scripts: { 'pawl:dev': 'pawl dev', 'pawl:worker': 'node worker.js' },
    })
    const env = { PAWL_STORE: '' }
    const enqueued = await place.run(['job', 'enqueue', 'hello', '{"name":"Ann"}'], { env })
    expect(enqueued).toMatchObject({ code: 0, stderr: '' })
    const worked = await place.run(['work', '--once'], { env })
    expect(worked.stdout).toContain(`${enqueued.stdout.trim()} hello succeeded in attempt 1\n`)
    expect(read(place, '.pawl/.gitignore')).toBe('*\n')
  })

  it('changes nothing that exists, and says what it skipped', async () => {
    const own = '{\n\t"name": "mine",\n\t"scripts": {\n\t\t"pawl:dev": "echo own"\n\t}\n}\n'
    const place = folderWith({ 'package.json': own, 'pawl.config.json': '{"jobs": []}' })
    mkdirSync(join(place.folder, 'jobs'))
    writeFileSync(join(place.folder, 'jobs', 'hello.mjs'), '// mine')
    const said = await place.ok('init', '--yes')
    expect(said).toContain('skipped pawl.config.mjs: pawl.config.json exists\n')
    expect(said).toContain('skipped jobs/hello.mjs: it exists\n')
    expect(said).toContain('skipped script pawl:dev: it exists\n')
    expect(said).toContain('created script pawl:worker\n')
    expect(said).toContain(`add './jobs/hello.mjs' to its "jobs"`)
    expect(read(place, 'jobs/hello.mjs')).toBe('// mine')
    expect(read(place, 'pawl.config.json')).toBe('{"jobs": []}')
    // The indentation and the order of the fields stay.
    const scripts = '\t\t"pawl:dev": "echo own",\n\t\t"pawl:worker": "node worker.mjs"\n'
    expect(read(place, 'package.json')).toBe(
      `{\n\t"name": "mine",\n\t"scripts": {\n${scripts}\t}\n}\n`,
    )
    const before = read(place, 'package.json')
    const again = await place.ok('init', '--yes')
    expect(again).not.toContain('created')
    expect(read(place, 'package.json')).toBe(before)
  })

  it('writes nothing in a dry run', async () => {
    const place = new Place()
    const [said] = await place.json<Said>('init', '--dry-run')
    expect(said?.dryRun).toBe(true)
    expect(said?.changes.map(({ name, action }) => `${action} ${name}`)).toEqual([
      ...['create package.json', 'create pawl.config.js', 'create jobs/hello.js'],
      ...['create worker.js', 'create script pawl:dev', 'create script pawl:worker'].map((text) =>
        text.replace('script ', ''),
      ),
    ])
    expect(readdirSync(place.folder)).toEqual([])
  })

  it('does not follow a link that leads nowhere', async () => {
    const place = new Place()
    symlinkSync('/nowhere/at/all', join(place.folder, 'worker.js'))
    const { code, stderr } = await place.run(['init', '--yes'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('worker.js cannot be written')])
  })

  const refused: [string, string][] = [
    ['{', 'is not a JSON object'],
    ['[]', 'is not a JSON object'],
    [`"${'x'.repeat(1024 * 1024)}"`, 'has more than'],
  ]
  it.each(refused)('refuses a package.json that begins with %.5s', async (text, why) => {
    const place = folderWith({ 'package.json': text })
    const { code, stderr } = await place.run(['init', '--yes'])
    expect([code, stderr]).toEqual([2, expect.stringContaining(why)])
    expect(readdirSync(place.folder)).toEqual(['package.json'])
  })
})

describe('pawl init detects', () => {
  const said = async (files: Readonly<Record<string, string>>, args: string[] = []) => {
    const [found] = await folderWith(files).json<Said>('init', '--dry-run', ...args)
    return found as Said
  }
  const filesIn = ({ changes }: Said) =>
    changes.filter(({ what }) => what === 'file').map(({ name }) => name)

  it('TypeScript by tsconfig.json or a dependency, and the kind of modules', async () => {
    const typed = PACKAGE({ type: 'module', devDependencies: { typescript: '*' } })
    expect(filesIn(await said({ 'package.json': typed }))).toContain('jobs/hello.ts')
    const common = await said({ 'package.json': '{}', 'tsconfig.json': '{}' })
    expect(common.language).toBe('typescript')
    expect(filesIn(common)).toEqual(['pawl.config.mts', 'jobs/hello.mts', 'worker.mts'])
    expect(filesIn(await said({ 'package.json': '{}' }))).toContain('worker.mjs')
    const forced = await said({ 'package.json': typed }, ['--language', 'javascript'])
    expect(filesIn(forced)).toContain('worker.js')
  })

  const managers: [string, Record<string, string>, string, string][] = [
    ['pnpm', { 'pnpm-lock.yaml': '' }, 'pnpm add', 'pnpm exec pawl dev'],
    ['yarn', { 'yarn.lock': '' }, 'yarn add', 'yarn pawl dev'],
    ['bun', { 'bun.lock': '' }, 'bun add', 'bunx pawl dev'],
    ['npm', { 'package-lock.json': '{}' }, 'npm install', 'npx pawl dev'],
    ['yarn', { 'package.json': PACKAGE({ packageManager: 'yarn@4.0.0' }) }, 'yarn add', 'yarn'],
  ]
  it.each(managers)('%s', async (manager, files, install, run) => {
    const found = await said(files)
    expect(found.packageManager).toBe(manager)
    expect(found.next[0]).toMatch(new RegExp(`^${install} pawl`))
    expect(found.next[1]).toMatch(new RegExp(`^${run}`))
  })

  const frameworks: [string, string][] = [
    ['next', 'Next.js'],
    ['@nestjs/core', 'Nest'],
    ['fastify', 'Fastify'],
    ['express', 'Express'],
    ['hono', 'Hono'],
  ]
  it.each(frameworks)('%s, and prints how to mount the API', async (dependency, name) => {
    const place = folderWith({ 'package.json': PACKAGE({ dependencies: { [dependency]: '*' } }) })
    const said = await place.ok('init', '--dry-run')
    expect(said).toContain(`To serve the HTTP API from ${name}, which this command does not change`)
    const [, lines] = Object.values(RECIPES).find(([title]) => title === name) ?? ['', []]
    for (const line of lines) expect(said).toContain(`  ${line}\n`)
  })

  it('which versions of Node need a driver', () => {
    const needs = ['20.19.0', '22.12.9', '22.13.0', '24.0.0', '26.1.0'].map(hasSqlite)
    expect(needs).toEqual([false, false, true, true, true])
  })
})

it('the TypeScript that pawl init writes compiles', { timeout: 60_000 }, () => {
  const folder = freshFolder()
  writeFileSync(join(folder, 'package.json'), PACKAGE({ type: 'module' }))
  const project = detect(folder, {}, 'typescript')
  const snippets = filesOf(project).map(({ path, text }) => ({
    ...{ file: path, line: 1 },
    // The worker imports the job, which the check of snippets does not have beside it.
    code: text.replace(
      /import \{ hello \} from .*/,
      "import { defineJob } from 'pawl'\nconst hello = defineJob({ name: 'hello', run: () => 1 })",
    ),
  }))
  expect(snippets).toHaveLength(3)
  expect(typeErrors(snippets, join(freshFolder(), 'snippets'))).toEqual([])
  expect(filesOf(project)[2]?.text).toContain("from './jobs/hello.js'")
})
