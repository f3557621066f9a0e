// The frame of every command: help, settings, errors, exit codes and output.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseLine } from '../../src/cli/program.ts'
import { ended, linesOf, Place, PROGRAM } from './pawl.ts'

interface ErrorLine {
  readonly error: {
    readonly code: string
    readonly message: string
    readonly hint: string
    readonly document: string
  }
}

const ID = '00000000-0000-7000-8000-000000000001'

interface Tree {
  readonly commands: readonly { name: string; examples: readonly [string, string][] }[]
}

describe('help', () => {
  it('is what pawl alone prints, with every noun and the exit codes', async () => {
    const { code, stdout, stderr } = await new Place().run([])
    expect([code, stderr]).toEqual([0, ''])
    for (const word of ['demo', 'work', 'job', 'queue', 'worker', 'machine', 'db', 'Exit codes']) {
      expect(stdout).toContain(word)
    }
  })

  it('of every command has examples, and every example names options that exist', async () => {
    const [tree] = linesOf<Tree>(await new Place().ok('help', '--json'))
    expect(tree?.commands.length).toBeGreaterThan(20)
    for (const { name, examples } of tree?.commands ?? []) {
      let help = ''
      const print = (text: string) => {
        help += text
      }
      const words = name.split(' ')
      await parseLine([...words, '--help'], { print, version: '' })
      expect(examples.length, name).toBeGreaterThan(0)
      expect(help).toContain(`Usage: pawl ${name}`)
      for (const [line] of examples) {
        expect(help).toContain(line)
        expect(line).toContain(`pawl ${name}`)
        const own = line.slice(line.indexOf('pawl')).split('|')[0] ?? ''
        for (const [flag] of own.matchAll(/--[a-z-]+/g)) expect(help, line).toContain(flag)
      }
    }
  })

  it('can be asked for as a word', async () => {
    const place = new Place()
    expect(await place.ok('help', 'job', 'list')).toBe(await place.ok('job', 'list', '--help'))
    expect(await place.ok('--version')).toBe(
      `${(JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }).version}\n`,
    )
  })
})

describe('a wrong command line ends with exit code 2 and says why', () => {
  const wrong: [string[], RegExp][] = [
    [['nothing'], /Unknown command 'nothing'/],
    [['job'], /needs a subcommand/],
    [['job', 'lst'], /job list|list/],
    [['job', 'list', '--nothing'], /Unknown option '--nothing'/],
    [['job', 'list', '--lane', 'fast'], /Allowed choices/],
    [['job', 'list', '--limit', 'many'], /--limit must be a whole number/],
    [['job', 'list', '--limit', '0'], /--limit must be/],
    [['job', 'list', '--created-after', 'yesterday'], /--created-after must be a date/],
    [['job', 'show'], /Missing required argument 'id'/],
    [['job', 'show', ID, ID], /Too many arguments/],
    [['job', 'cancel', ID], /A reason is required/],
    [['job', 'cancel', ID, '--reason', ' '], /--reason must not be empty/],
    [['job', 'cancel', '--reason', 'x'], /No job is selected/],
    [['job', 'cancel', ID, '--all', '--reason', 'x'], /cannot be used together/],
    [['job', 'cancel', ID, '--limit', '3', '--reason', 'x'], /--limit works only with conditions/],
    [['job', 'force', ID, '--reason', 'x'], /--to is missing/],
    [['job', 'prioritise', ID, '--to', '1.5', '--reason', 'x'], /--to must be a whole number/],
    [['job', 'reschedule', ID, '--reason', 'x'], /due time is missing/],
    [['job', 'reschedule', ID, '--in', 'soon', '--reason', 'x'], /--in must be a duration/],
    [['job', 'enqueue', 'mail', '{to: ada}'], /not JSON/],
    [['job', 'enqueue', 'mail', '{"n":12345678901234567890}'], /cannot represent the number/],
    [['job', 'enqueue', 'mail', '--input-file', 'missing.json'], /cannot be read/],
    [['job', 'enqueue', 'mail', '--id', 'mine'], /must be a UUID/],
    [['job', 'enqueue', 'ma\nil'], /control characters/],
    [['job', 'enqueue', 'mail', '--delay', '1m', '--at', '2026-01-01'], /together/],
    [['machine', 'show', 'run', '--dot', '--mermaid'], /cannot be used together/],
    [['work'], /no job types to run/],
    [['job', 'list', '--store', 'mysql://x'], /is not the name of a store/],
  ]

  it.each(wrong)('%j', async (args, why) => {
    const { code, stdout, stderr } = await new Place().run(args)
    expect(stderr).toMatch(why)
    expect(stderr).toMatch(/^error: [^\n]+\n {2}what to do: [^\n]+\n {2}code: E_\w+, see docs\//)
    expect([code, stdout]).toEqual([2, ''])
  })
})

describe('an error', () => {
  it('is one JSON object on stderr with --json, and stdout stays empty', async () => {
    const place = new Place()
    await place.ok('db', 'migrate')
    const { code, stdout, stderr } = await place.run(['job', 'show', ID, '--json'])
    const [line] = linesOf<ErrorLine>(stderr)
    expect([code, stdout]).toEqual([4, ''])
    expect(line?.error).toMatchObject({
      ...{ code: 'E_JOB_NOT_FOUND', message: `Job ${ID} was not found` },
      ...{ hint: expect.stringContaining('Check the id'), document: 'docs/reference/errors.md' },
    })
  })

  it('of a store that does not exist is exit code 4, and makes none', async () => {
    const place = new Place()
    for (const args of [
      ['job', 'list'],
      ['queue', 'list'],
      ['worker', 'list'],
      ['job', 'tail'],
    ]) {
      const { code, stderr } = await place.run(args)
      expect([code, stderr]).toEqual([4, expect.stringContaining('E_STORE_MISSING')])
    }
    expect((await place.run(['db', 'status'])).code).toBe(3)
    expect(() => readFileSync(place.path)).toThrow('ENOENT')
  })

  it('of a file that is no store leaves the file as it is', async () => {
    const place = new Place()
    writeFileSync(place.path, 'precious words\n'.repeat(100))
    for (const args of [
      ['job', 'list'],
      ['db', 'status'],
      ['db', 'migrate'],
    ]) {
      const { code, stderr } = await place.run(args)
      expect([code, stderr]).toEqual([1, expect.stringContaining('E_STORE_UNUSABLE')])
    }
    expect(readFileSync(place.path, 'utf8')).toBe('precious words\n'.repeat(100))
  })

  it('of a folder that does not exist says so', async () => {
    const place = new Place('sqlite:./nowhere/jobs.db')
    const { code, stderr } = await place.run(['db', 'migrate'])
    expect([code, stderr]).toEqual([1, expect.stringMatching(/folder exists.*E_STORE_UNUSABLE/s)])
  })

  it('of a server that cannot be reached says so, without its password', async () => {
    const place = new Place('postgres://ada:s3cret@127.0.0.1:1/none')
    const { code, stderr } = await place.run(['job', 'list', '--verbose'])
    expect([code, stderr]).toEqual([1, expect.stringContaining('E_STORE_UNAVAILABLE')])
    expect(stderr).toContain('ada:***@127.0.0.1')
    expect(stderr).not.toContain('s3cret')
  })
})

describe('settings', () => {
  it('come from the flag, then the environment, then the file, then the default', async () => {
    const place = new Place()
    const { folder } = place
    mkdirSync(join(folder, 'conf'))
    const config = join(folder, 'conf', 'own.json')
    writeFileSync(config, JSON.stringify({ store: 'sqlite:./file.db', operator: 'file' }))
    const winner = async (args: string[], env: Record<string, string>) => {
      const { stderr } = await place.run(['job', 'list', '--verbose', ...args], { env })
      return /store: (.*)/.exec(stderr)?.[1]
    }
    const env = { PAWL_STORE: 'sqlite:env.db', PAWL_CONFIG: config }
    const flag = ['--store', 'sqlite:flag.db']
    expect(await winner(flag, env)).toBe('sqlite:flag.db (from --store)')
    expect(await winner([], env)).toBe('sqlite:env.db (from PAWL_STORE)')
    const file = `sqlite:${join(folder, 'conf', 'file.db')} (from ${config})`
    expect(await winner([], { ...env, PAWL_STORE: '' })).toBe(file)
    expect(await winner(['--config', 'conf/own.json'], { PAWL_STORE: '' })).toBe(file)
    expect(await winner([], { PAWL_STORE: '' })).toBe('sqlite:.pawl/jobs.db (from the default)')
    writeFileSync(join(folder, 'pawl.config.json'), '{"store":"sqlite:/tmp/nowhere/x.db"}')
    const path = join(folder, 'pawl.config.json')
    expect(await winner([], { PAWL_STORE: '' })).toBe(`sqlite:/tmp/nowhere/x.db (from ${path})`)
  })

  it('name the operator in the same way', async () => {
    const place = new Place()
    const [job] = await place.json<{ id: string }>('job', 'enqueue', 'mail')
    const winner = async (args: string[], env: Record<string, string>) => {
      const line = ['job', 'cancel', job?.id ?? '', '--reason', 'x', '--verbose', ...args]
      const { stderr } = await place.run(line, { env })
      return /operator: (.*)/.exec(stderr)?.[1]
    }
    const config = join(place.folder, 'pawl.config.json')
    writeFileSync(config, '{"operator":"file"}')
    expect(await winner(['--operator', 'bob'], {})).toBe('bob (from --operator)')
    expect(await winner([], {})).toBe('ada (from PAWL_OPERATOR)')
    expect(await winner([], { PAWL_OPERATOR: '' })).toBe(`file (from ${config})`)
    writeFileSync(config, '{}')
    expect(await winner([], { PAWL_OPERATOR: '' })).toMatch(/^\S+ \(from the user of the system\)$/)
  })

  const bad: [string, RegExp][] = [
    ['{"store": 7}', /"store" must be a string, not a number/],
    ['{"store": " "}', /"store" must not be empty/],
    ['{"stroe": "sqlite:x"}', /"stroe" is not known; .*\n.*Did you mean "store"\?/],
    ['{"jobs": [1]}', /"jobs" must be a path or a list of paths: one must be a string/],
    ['{"runsIn": "cloud"}', /"runsIn" must be 'folder' or 'store', not "cloud"/],
    ['{"work": {"concurency": 3}}', /"work.concurency" is not known; .*\n.*"concurrency"/],
    ['{"work": 3}', /"work" must be/],
    ['{"serve": {"port": 70000}}', /"serve.port" must be a whole number from 0 to 65535/],
    ['{"retention": {"succeeded": "soon"}}', /"retention.succeeded" must be a time/],
    ['{"__proto__": {"store": "x"}, "constructor": 1}', /is not known/],
    ['[]', /must be an object, not an array/],
    ['{', /not JSON/],
    ['', /not JSON/],
  ]

  it.each(bad)('in a file that holds %j are refused with exit code 2', async (text, why) => {
    const place = new Place()
    writeFileSync(join(place.folder, 'pawl.config.json'), text)
    const { code, stderr } = await place.run(['machine', 'list'])
    expect([code, stderr]).toEqual([2, expect.stringMatching(why)])
    expect(stderr).toContain('E_CONFIG_INVALID')
  })

  it('in a file that was named and is missing are refused', async () => {
    const { code, stderr } = await new Place().run(['machine', 'list', '--config', 'mine.json'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('cannot be read (ENOENT)')])
  })
})

describe('output', () => {
  it('whose reader has gone away is no error', async () => {
    const place = new Place()
    await place.ok('db', 'migrate')
    const shell = `node ${PROGRAM} machine show run --json | head -c 10; echo " \${PIPESTATUS[0]}"`
    const { stdout } = spawnSync('bash', ['-c', shell], { encoding: 'utf8', cwd: place.folder })
    expect(stdout).toBe('{"name":"r 0\n')
    const child = place.start(['job', 'tail'])
    const over = ended(child)
    child.stdout.destroy()
    let isOver = false
    void over.then(() => {
      isOver = true
    })
    // Before its first line it does not notice that its reader has gone.
    while (!isOver) await place.ok('job', 'enqueue', 'mail')
    expect((await over).code).toBe(0)
  })
})
