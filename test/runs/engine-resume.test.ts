// Resuming: what changed is done again, and only that; what is in the way is told.
import { readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Journal,
  openFolderJournal,
  type RunContext,
  type RunDefinition,
  type Runs,
} from 'pawl/runs'
import { describe, expect, it } from 'vitest'
import { freshFolder, freshRuns, outcomeOf, releaseOf, storyOf } from './bench.ts'

/** A pipeline over files: each is counted, the counts are added up, and the sum is announced. */
class Counting {
  readonly files = freshFolder()
  readonly done: string[] = []
  #changes = 0
  /** Where a node throws, so that the run stands still there. */
  stopIn: 'built' | 'testing' | undefined
  definition: RunDefinition = this.define((text) => text.split(' ').length)

  constructor(texts: Readonly<Record<string, string>>) {
    for (const [name, text] of Object.entries(texts)) this.put(name, text)
  }

  put(name: string, text: string): void {
    const path = join(this.files, name)
    writeFileSync(path, text)
    // Long ago, so that its time can be trusted.
    utimesSync(path, 1_000_000, 1_000_000 + this.#changes++)
  }

  define(count: (text: string) => number, code?: string): RunDefinition {
    const { done } = this
    const options = code === undefined ? {} : { code }
    return releaseOf({
      build: async (run) => {
        const names = await run.inputFolder('in', { path: this.files, extensions: ['.txt'] })
        const each = { ...options, key: (name: string) => `count ${name}` }
        await run.each(names, each, async (name) => {
          done.push(`count ${name}`)
          const words = count(await run.artifact(name).text())
          await run.artifact(`count/${name}`).writeJson({ words })
        })
      },
      built: async (run) => {
        await run.work('sum', {}, async () => {
          done.push('sum')
          let sum = 0
          for (const name of await run.artifact('in').json<string[]>()) {
            sum += (await run.artifact(`count/${name}`).json<{ words: number }>()).words
          }
          await run.artifact('sum').writeJson(sum)
        })
        this.#stop('built')
      },
      testing: async (run) => {
        await run.work('announce', {}, async () => {
          done.push('announce')
          return `There are ${await run.artifact('sum').json()} words.`
        })
        this.#stop('testing')
      },
    })
  }

  /** Works until the node of that state has been done, and stands still there. */
  async until(state: 'built' | 'testing', options = {}): Promise<Runs> {
    this.stopIn = state
    const runs = await freshRuns({ runs: [this.definition], ...options })
    const outcome = await outcomeOf(runs, this.definition)
    expect(outcome).toMatchObject({ kind: 'stopped', run: { run_state: state } })
    this.stopIn = undefined
    this.done.length = 0
    return runs
  }

  #stop(state: string): void {
    if (this.stopIn === state) throw new Error('stop here')
  }
}

const two = { 'a.txt': 'one two three', 'b.txt': 'four' }

async function resumed(runs: Runs, options = {}) {
  return (await runs.resume('r1', options)).result()
}

describe('a run that is resumed', () => {
  it('does not repeat finished work', async () => {
    const counting = new Counting(two)
    const runs = await counting.until('testing')
    const outcome = await resumed(runs)
    expect(outcome).toMatchObject({ kind: 'done' })
    expect(counting.done).toEqual([])
    expect(await storyOf(runs)).toContain('RESUME_REWIND built')
  })

  it('repeats what depends on a changed input, and nothing else', async () => {
    const counting = new Counting(two)
    const runs = await counting.until('testing')
    counting.put('b.txt', 'four five')
    const outcome = await resumed(runs)
    expect(outcome).toMatchObject({ kind: 'done' })
    expect(counting.done).toEqual(['count in/b.txt', 'sum', 'announce'])
    const { run } = outcome
    expect(Object.values(run.artifacts_index).filter((one) => one.stale_because !== null)).toEqual(
      [],
    )
    expect(await storyOf(runs)).toContain('RESUME_REWIND build')
    expect(await runs.verify('r1')).toEqual([])
  })

  it('does not repeat items whose inputs come out the same, unless strict', async () => {
    for (const strict of [false, true]) {
      const counting = new Counting(two)
      const runs = await counting.until('testing')
      counting.put('b.txt', 'five')
      const outcome = await resumed(runs, { strict })
      expect(outcome).toMatchObject({ kind: 'done' })
      const expected = ['count in/b.txt', ...(strict ? ['sum', 'announce'] : [])]
      expect([strict, counting.done]).toEqual([strict, expected])
      const revalidated = (await storyOf(runs)).filter((line) => /REVALIDATED/.test(line))
      expect(revalidated.length > 0).toBe(!strict)
      const { artifacts_index } = outcome.run
      expect(Object.values(artifacts_index).every((one) => one.stale_because === null)).toBe(true)
    }
  })

  it('detects files that are added and removed', async () => {
    const counting = new Counting(two)
    const runs = await counting.until('testing')
    counting.put('c.txt', 'x y')
    rmSync(join(counting.files, 'b.txt'))
    const outcome = await resumed(runs)
    expect(outcome).toMatchObject({ kind: 'done' })
    expect(counting.done).toEqual(['count in/c.txt', 'sum', 'announce'])
  })

  it('rewinds to the last stable state before the stale work, and no further', async () => {
    const counting = new Counting(two)
    const runs = await counting.until('testing')
    await expect(resumed(runs, { force: ['sum'] })).resolves.toMatchObject({ kind: 'done' })
    const story = await storyOf(runs)
    expect(story.filter((line) => line.startsWith('RESUME_REWIND'))).toEqual([
      'RESUME_REWIND built',
    ])
    expect(counting.done).toEqual(['sum'])
  })

  it('repeats forced items, and what changes because of them', async () => {
    const counting = new Counting(two)
    const runs = await counting.until('testing')
    await resumed(runs, { force: ['count in/a.txt'] })
    expect(counting.done).toEqual(['count in/a.txt'])
    const { run } = await runs.show('r1')
    expect(run.work_items['count in/a.txt']).toMatchObject({ attempts: 2 })
  })

  it('is unchanged if a forced item does not exist', async () => {
    const counting = new Counting(two)
    const runs = await counting.until('built')
    const before = await storyOf(runs)
    await expect(resumed(runs, { force: ['summ'] })).rejects.toMatchObject({
      code: 'E_WORK_UNKNOWN',
      details: { keys: ['summ'] },
    })
    expect(await storyOf(runs)).toEqual(before)
    expect(await resumed(runs)).toMatchObject({ kind: 'done' })
  })

  it('makes an artifact again whose content was changed on the disk', async () => {
    const folder = freshFolder()
    const counting = new Counting(two)
    const runs = await counting.until('testing', { folder })
    const artifacts = join(folder, 'r1', 'artifacts')
    const [sum] = readdirSync(artifacts).filter((name) => name.startsWith('sum.'))
    writeFileSync(join(artifacts, sum as string), '999')
    const explained = await runs.explain('r1')
    expect(explained.damaged).toEqual(['sum'])
    expect(explained.items.find(({ key }) => key === 'sum')).toMatchObject({
      verdict: 'run',
      because: 'damaged',
      artifact: 'sum',
    })
    const outcome = await resumed(runs)
    expect(outcome).toMatchObject({ kind: 'done' })
    // It comes out as before, so what depends on it is not done again.
    expect(counting.done).toEqual(['sum'])
    expect(outcome.run.issues['ArtifactDamaged:sum']).toMatchObject({ status: 'resolved' })
    expect(await runs.verify('r1')).toEqual([])
  })

  it('copies an input file again if the copy is missing', async () => {
    const folder = freshFolder()
    const counting = new Counting(two)
    const runs = await counting.until('testing', { folder })
    const artifacts = join(folder, 'r1', 'artifacts')
    for (const name of readdirSync(artifacts)) {
      if (name.startsWith('in%2fa') || name.startsWith('in.')) rmSync(join(artifacts, name))
    }
    expect(await resumed(runs)).toMatchObject({ kind: 'done' })
    expect(counting.done).toEqual([])
    expect(await runs.verify('r1')).toEqual([])
  })
})

describe('a resumption that is cut short', () => {
  /** A journal whose next append keeps only its first facts, as a crash may leave it. */
  async function cutAfter(folder: string, kept: number): Promise<Journal> {
    const journal = await openFolderJournal({ path: folder })
    const open = journal.open.bind(journal)
    journal.open = async (...args) => {
      const writer = await open(...args)
      const append = writer.append.bind(writer)
      writer.append = async (facts, author) => {
        await append(facts.slice(0, kept), author)
        throw new Error('the process is gone')
      }
      return writer
    }
    return journal
  }

  it('at any point is completed by the next one', async () => {
    for (let kept = 0; kept <= 8; kept++) {
      const folder = freshFolder()
      const counting = new Counting(two)
      await (await counting.until('testing', { folder })).close()
      // Nothing but the node that takes the folder will ask for the item of the new file.
      counting.put('c.txt', 'six')
      const journal = await cutAfter(folder, kept)
      const cut = await freshRuns({ journal, runs: [counting.definition] })
      await expect(cut.resume('r1')).rejects.toThrow('the process is gone')
      await cut.close()
      const runs = await freshRuns({ folder, runs: [counting.definition] })
      expect(await resumed(runs)).toMatchObject({ kind: 'done' })
      const expected = ['count in/c.txt', 'sum', 'announce']
      expect([kept, counting.done]).toEqual([kept, expected])
      const { run } = await runs.show('r1')
      const stale = Object.values(run.artifacts_index).filter((one) => one.stale_because !== null)
      expect([kept, stale]).toEqual([kept, []])
    }
  }, 60_000)
})

describe('an input file', () => {
  const probe = async (change: (counting: Counting) => void, options = {}) => {
    const counting = new Counting(two)
    const runs = await counting.until('built')
    change(counting)
    await resumed(runs, options)
    return counting.done
  }
  /** The same size and the same time, so that only a reader can tell. */
  const forge = (counting: Counting) => {
    const path = join(counting.files, 'b.txt')
    writeFileSync(path, 'a bc')
    utimesSync(path, 1_000_000, 1_000_001)
  }

  it('is not read again while size, time and inode are unchanged', async () => {
    expect(await probe(forge)).toEqual(['announce'])
  })

  it('is read again with paranoid', async () => {
    const done = await probe(forge, { paranoid: true })
    expect(done).toEqual(['count in/b.txt', 'sum', 'announce'])
  })

  it('that changed shortly before it was checked is always read again', async () => {
    const counting = new Counting(two)
    const path = join(counting.files, 'b.txt')
    const now = new Date()
    utimesSync(path, now, now)
    const runs = await counting.until('built')
    writeFileSync(path, 'a bc')
    utimesSync(path, now, now)
    await resumed(runs)
    expect(counting.done).toEqual(['count in/b.txt', 'sum', 'announce'])
  })

  it('that is a link or missing is refused with its path', async () => {
    for (const path of ['/nonexistent/a', '/proc/self/exe', '/']) {
      const runs = await freshRuns()
      const build = (run: RunContext) => run.inputFile('x', path)
      expect(await outcomeOf(runs, releaseOf({ build }))).toMatchObject({
        kind: 'stopped',
        error: { code: 'E_INPUT_FILE_INVALID', details: { path } },
      })
    }
  })
})

describe('explain', () => {
  it('shows for each item whether it will run, and why', async () => {
    const counting = new Counting(two)
    const runs = await counting.until('testing')
    const say = async (options = {}) => {
      const { items, rewinds, continuesIn } = await runs.explain('r1', options)
      const lines = items.map((item) => {
        const { key, verdict, because, artifact } = item
        return `${key}: ${verdict}, ${because}${artifact === null ? '' : ` (${artifact})`}`
      })
      return { lines, rewinds: rewinds.map(({ to, reason }) => `${to} ${reason}`), continuesIn }
    }
    expect(await say()).toEqual({
      lines: ['announce', 'count in/a.txt', 'count in/b.txt', 'sum'].map(
        (k) => `${k}: skip, fresh`,
      ),
      rewinds: ['built resume'],
      continuesIn: 'built',
    })
    counting.put('b.txt', 'four five')
    const before = await storyOf(runs)
    expect(await say({ force: ['count in/a.txt'] })).toEqual({
      lines: [
        'announce: check, upstream (in/b.txt)',
        'count in/a.txt: run, forced',
        'count in/b.txt: run, input_changed (in/b.txt)',
        'sum: check, upstream (in/b.txt)',
      ],
      rewinds: ['built resume', 'build stale'],
      continuesIn: 'build',
    })
    expect((await say({ strict: true })).lines).toContain('sum: run, upstream (in/b.txt)')
    expect(await storyOf(runs)).toEqual(before)
    expect(await runs.explain('r1')).toMatchObject({
      changedInputs: ['in/b.txt'],
      state: 'testing',
    })
  })

  it('shows items that were interrupted or failed, and runs that ended', async () => {
    const build = (run: RunContext) =>
      run.work('k', {}, () => {
        throw new Error('no')
      })
    const runs = await freshRuns()
    await outcomeOf(runs, releaseOf({ build }))
    expect((await runs.explain('r1')).items).toMatchObject([
      { key: 'k', state: 'build', status: 'failed', verdict: 'run', because: 'failed' },
    ])
    await outcomeOf(runs, releaseOf2(), 'r2')
    expect(await runs.explain('r2')).toMatchObject({ hasEnded: true, rewinds: [], items: [] })
  })
})

function releaseOf2(): RunDefinition {
  return { ...releaseOf({}), name: 'plain' }
}
