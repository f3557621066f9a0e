// Artifacts are not read again on resume while their files look as they did when they were right.
import { readFileSync, realpathSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join, normalize } from 'node:path'
import { openFolderJournal, type RunContext, type RunOutcome, type Runs } from 'pawl/runs'
import { SeededRandom, SimulatedFiles, testEnvironment } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import type { FileHandle } from '../../src/core/ports.ts'
import { systemFiles } from '../../src/environment/files.ts'
import { AUTHOR, factsOf } from '../contract/journal/bench.ts'
import { freshFolder, freshRuns, releaseOf } from './bench.ts'

const LOOKS = '.looks.json'
const LONG_AGO = new Date('2020-01-01T00:00:00Z')

/** A run that has written one artifact and was stopped after it, as often as it is resumed. */
class Stopped {
  readonly folder = freshFolder()
  /** The files of the run that were opened, by their names. */
  readonly opened: string[] = []
  /** Those of them that were opened for nothing else. */
  readonly readOnly: string[] = []
  readonly made: string[] = []
  readonly #definition = releaseOf({
    build: async (run: RunContext) => {
      await run.work('plan', {}, async () => {
        this.made.push('plan')
        await run.artifact('plan.md').write('a plan')
      })
    },
    testing: () => {
      throw new Error('not today')
    },
  })

  async start(): Promise<void> {
    const runs = await this.#runs()
    await (await runs.start(this.#definition, { runId: 'r1' })).result()
    await runs.close()
    // Otherwise it would have changed within a tick of the look at it.
    utimesSync(this.content, LONG_AGO, LONG_AGO)
  }

  async resume(options: { paranoid?: boolean } = {}): Promise<RunOutcome> {
    const runs = await this.#runs()
    this.opened.length = 0
    this.readOnly.length = 0
    const outcome = await (await runs.resume('r1', options)).result()
    await runs.close()
    return outcome
  }

  path(name: string): string {
    return join(this.folder, 'r1', name)
  }

  get content(): string {
    const log = readFileSync(this.path('events.ndjson'), 'utf8')
    const line = log.split('\n').find((each) => each.includes('"name":"plan.md"')) as string
    return this.path(JSON.parse(line).data.path)
  }

  /** Whether the content was read by the last resumption. */
  get wasRead(): boolean {
    return this.opened.includes(this.content)
  }

  async #runs(): Promise<Runs> {
    const open = (path: string, mode: 'read') => {
      // Through a folder that is open; by the name that it has.
      const named = path.replace(/^\/proc\/self\/fd\/\d+/, (folder) => realpathSync(folder))
      this.opened.push(normalize(named))
      if (mode === 'read') this.readOnly.push(normalize(named))
      return systemFiles.open(path, mode)
    }
    const files = { ...systemFiles, open } as typeof systemFiles
    const journal = await openFolderJournal({ path: this.folder, files })
    return freshRuns({ journal, runs: [this.#definition] })
  }
}

async function stopped(): Promise<Stopped> {
  const run = new Stopped()
  await run.start()
  return run
}

describe('on resume, the content of an artifact', () => {
  it('is read once, and not again while its file is unchanged', async () => {
    const run = await stopped()
    await run.resume()
    expect(run.wasRead).toBe(true)
    await run.resume()
    expect(run.wasRead).toBe(false)
    expect(run.made).toEqual(['plan'])
  })

  it('is read again with paranoid', async () => {
    const run = await stopped()
    await run.resume()
    await run.resume({ paranoid: true })
    expect(run.wasRead).toBe(true)
  })

  it('that is unchanged leaves the cache unchanged', async () => {
    const run = await stopped()
    await run.resume()
    const { ino } = statSync(run.path(LOOKS))
    await run.resume({ paranoid: true })
    expect(statSync(run.path(LOOKS)).ino).toBe(ino)
  })

  it('that was changed is detected, and made again', async () => {
    const run = await stopped()
    await run.resume()
    writeFileSync(run.content, 'A PLAN')
    await run.resume()
    expect(run.made).toEqual(['plan', 'plan'])
    expect(readFileSync(run.content, 'utf8')).toBe('a plan')
  })

  it('that is missing is detected, and made again', async () => {
    const run = await stopped()
    await run.resume()
    rmSync(run.content)
    await run.resume()
    expect(run.made).toEqual(['plan', 'plan'])
  })

  it('is read again if its file changed shortly before the last check', async () => {
    const run = await stopped()
    const now = new Date()
    utimesSync(run.content, now, now)
    await run.resume()
    await run.resume()
    expect(run.wasRead).toBe(true)
  })

  it('that was changed with the same size and times is found with paranoid', async () => {
    const run = await stopped()
    await run.resume()
    writeFileSync(run.content, 'A PLAN')
    utimesSync(run.content, LONG_AGO, LONG_AGO)
    await run.resume()
    expect(run.made).toEqual(['plan'])
    await run.resume({ paranoid: true })
    expect(run.made).toEqual(['plan', 'plan'])
  })
})

describe('the cache of sizes and times', () => {
  const damages: Readonly<Record<string, (path: string) => void>> = {
    'is gone': (path) => rmSync(path),
    'is empty': (path) => writeFileSync(path, ''),
    'was cut short': (path) => writeFileSync(path, readFileSync(path).subarray(0, 20)),
    'is no object': (path) => writeFileSync(path, 'null'),
    'holds something else': (path) => writeFileSync(path, '{"looks":{"a":1},"version":1}'),
    'has another version': (path) =>
      writeFileSync(path, readFileSync(path, 'utf8').replace('"version":1', '"version":2')),
  }
  for (const [what, damage] of Object.entries(damages)) {
    it(`is made again if it ${what}`, async () => {
      const run = await stopped()
      await run.resume()
      const before = readFileSync(run.path(LOOKS), 'utf8')
      damage(run.path(LOOKS))
      await run.resume()
      expect(run.wasRead).toBe(true)
      expect(run.made).toEqual(['plan'])
      expect(readFileSync(run.path(LOOKS), 'utf8')).toBe(before)
    })
  }

  it('is not written again if nothing changed', async () => {
    const run = await stopped()
    await run.resume()
    const { ino } = statSync(run.path(LOOKS))
    await run.resume()
    expect(statSync(run.path(LOOKS)).ino).toBe(ino)
  })

  it('is no part of the run: verifying reads every content', async () => {
    const run = await stopped()
    await run.resume()
    writeFileSync(run.content, 'A PLAN')
    utimesSync(run.content, LONG_AGO, LONG_AGO)
    const journal = await openFolderJournal({ path: run.folder })
    expect(await journal.verify('r1')).toMatchObject([{ kind: 'artifact' }])
    await journal.close()
  })
})

describe('a resumption', () => {
  it('reads the log once', async () => {
    const run = await stopped()
    await run.resume()
    const log = run.path('events.ndjson')
    expect(run.opened.filter((path) => path === log)).toHaveLength(2)
    expect(run.readOnly.filter((path) => path === log)).toHaveLength(1)
  })

  it('lets the event loop turn while it looks at many artifacts', async () => {
    const environment = testEnvironment()
    const files = new SimulatedFiles(new SeededRandom(1))
    // Every look takes a while; nothing here waits for more than a promise.
    const info = (path: string) => {
      environment.advance(1)
      return files.info(path)
    }
    const slow = new Proxy(files, {
      get: (target, name) => {
        if (name === 'info') return info
        const own = target[name as keyof SimulatedFiles]
        return typeof own === 'function' ? own.bind(target) : own
      },
    })
    const journal = await openFolderJournal({
      path: 'runs',
      environment,
      files: slow,
      locks: files,
    })
    const created = factsOf(null, { kind: 'create' })
    const writer = await journal.create('run-1', created, AUTHOR)
    const artifacts: Record<string, { sha256: string }> = {}
    for (let n = 0; n < 40; n++) {
      artifacts[`a${n}`] = await writer.writeArtifact(`a${n}`, Buffer.from(`${n}`))
    }
    let turned = false
    setImmediate(() => {
      turned = true
    })
    expect(await writer.findDamaged(artifacts)).toEqual([])
    expect(turned).toBe(true)
    await journal.close()
  })
})

describe('a file of this machine', () => {
  it('that is closed twice closes no other', async () => {
    const folder = freshFolder()
    for (const name of ['a', 'b']) writeFileSync(join(folder, name), name)
    const first = (await systemFiles.open(join(folder, 'a'), 'read')) as FileHandle
    await first.close()
    // The system gives the number of the first to the next that is opened.
    const next = (await systemFiles.open(join(folder, 'b'), 'read')) as FileHandle
    await first.close()
    expect(Buffer.from(await next.read(0, 10)).toString()).toBe('b')
    await expect(first.read(0, 1)).rejects.toThrow()
    await next.close()
  })
})
