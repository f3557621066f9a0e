// An item that somebody forces is done again, also where the process dies before it gets there.
import {
  type Journal,
  openFolderJournal,
  openRuns,
  openStoreJournal,
  type RunContext,
  type RunDefinition,
  type Runs,
} from 'pawl/runs'
import { type FileCrash, SeededRandom, SimulatedFiles, testEnvironment } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  eventsOf,
  freshFolder,
  freshRuns,
  outcomeOf,
  releaseOf,
  storesNamed,
  storyOf,
} from './bench.ts'

/** An item that was made, and a node after it that stops the run for as long as it is told to. */
class Making {
  done = 0
  stopIn: 'build' | 'built' | undefined = 'built'
  readonly key: string
  readonly definition: RunDefinition

  constructor(key = 'make') {
    this.key = key
    this.definition = releaseOf({
      build: async (run) => {
        this.#stop('build')
        await run.work(key, {}, () => this.#make(run))
      },
      built: () => this.#stop('built'),
    })
  }

  #stop(where: string): void {
    if (this.stopIn === where) throw new Error('stop here')
  }

  async #make(run: RunContext): Promise<void> {
    this.done++
    await run.artifact('made').write('the same each time')
  }
}

async function because(runs: Runs): Promise<string> {
  const [item] = (await runs.explain('r1')).items
  return `${item?.verdict}, ${item?.because}`
}

async function startsOf(runs: Runs): Promise<string[]> {
  const events = await eventsOf(runs)
  return events.flatMap((event) => (event.type === 'WORK_ITEM_STARTED' ? [event.data.because] : []))
}

async function resumeOf(runs: Runs, force: readonly string[] = []) {
  return (await runs.resume('r1', { force })).result()
}

const stores = storesNamed('forced_runs')
const journals: [string, () => Promise<Journal>][] = [
  ['a folder', () => openFolderJournal({ path: freshFolder() })],
  ...stores.map(([name, open]): [string, () => Promise<Journal>] => [
    name,
    async () => {
      const store = await open()
      onTestFinished(() => store.close())
      return openStoreJournal({ store })
    },
  ]),
]

describe.each(journals)('a forced item, in %s', (_name, open) => {
  it('stays forced until it starts, over several resumes, and runs once', async () => {
    const making = new Making()
    const runs = await freshRuns({ journal: await open(), runs: [making.definition] })
    await outcomeOf(runs, making.definition)
    expect(await because(runs)).toBe('skip, fresh')
    making.stopIn = 'build'
    expect(await resumeOf(runs, ['make'])).toMatchObject({ kind: 'stopped' })
    expect(await because(runs)).toBe('run, forced')
    expect(await resumeOf(runs)).toMatchObject({ kind: 'stopped' })
    expect(await because(runs)).toBe('run, forced')
    making.stopIn = 'built'
    await resumeOf(runs)
    expect(await because(runs)).toBe('skip, fresh')
    making.stopIn = undefined
    expect(await resumeOf(runs)).toMatchObject({ kind: 'done' })
    expect(making.done).toBe(2)
    expect(await startsOf(runs)).toEqual(['new', 'forced'])
    const { run } = await runs.show('r1')
    expect(run.issues).toMatchObject({ 'Forced:make': { status: 'resolved', severity: 'warning' } })
  }, 60_000)
})

describe('a forced item', () => {
  it('is recorded before the rewind, and resolved when it starts', async () => {
    const making = new Making()
    const runs = await freshRuns({ runs: [making.definition] })
    await outcomeOf(runs, making.definition)
    const before = (await storyOf(runs)).length
    making.stopIn = undefined
    await resumeOf(runs, ['make'])
    // A write that is cut short leaves the first of its lines: these must stand by themselves.
    expect((await storyOf(runs)).slice(before, before + 4)).toEqual([
      'ISSUE_OPENED Forced:make',
      'RESUME_REWIND build',
      'WORK_ITEM_STARTED make',
      'ISSUE_RESOLVED Forced:make',
    ])
  })

  it('may have a key too long for the name of an issue', async () => {
    const making = new Making('k'.repeat(255))
    const runs = await freshRuns({ runs: [making.definition] })
    await outcomeOf(runs, making.definition)
    making.stopIn = 'build'
    await resumeOf(runs, [making.key])
    expect(await because(runs)).toBe('run, forced')
    making.stopIn = undefined
    expect(await resumeOf(runs)).toMatchObject({ kind: 'done' })
    expect(making.done).toBe(2)
  })

  it('is kept if the process dies after the resume was acknowledged', async () => {
    const reached = new Set<string>()
    for (const kind of ['process', 'power'] as const) {
      for (let at = 0, isOver = false; !isOver && at < 1000; at++) {
        const end = await playDeath(kind, at)
        reached.add(end.reached)
        isOver = end.isOver
      }
    }
    // Deaths before and after each of the steps were among them.
    expect([...reached].sort()).toEqual(['finished', 'forced', 'started', 'untouched'])
  }, 120_000)
})

/** A process that dies before an operation of a resumption that forces an item. */
async function playDeath(kind: FileCrash, at: number) {
  const environment = testEnvironment({ seed: at })
  let files = new SimulatedFiles(new SeededRandom(at))
  const making = new Making()
  const open = async () => {
    const journal = await openFolderJournal({ path: 'runs', environment, files, locks: files })
    return openRuns({ journal, environment, runs: [making.definition] })
  }
  const before = await open()
  await outcomeOf(before, making.definition)
  files.dieAt(files.operations + at)
  let wasAcknowledged = false
  let isOver = false
  try {
    const handle = await before.resume('r1', { force: ['make'] })
    wasAcknowledged = true
    await handle.result()
    isOver = true
  } catch (error) {
    expect(String((error as Error).message)).toMatch(/machine has stopped/)
  }
  files = files.crash(kind)
  await using after = await open()
  const { run } = await after.show('r1')
  const { status, attempts } = run.work_items.make as { status: string; attempts: number }
  const isForced = run.issues['Forced:make']?.status === 'open'
  const reached = attempts > 1 ? status : isForced ? 'forced' : 'untouched'
  if (wasAcknowledged) expect(reached).not.toBe('untouched')
  if (reached === 'forced') expect(await because(after)).toBe('run, forced')
  making.done = 0
  making.stopIn = undefined
  expect(await resumeOf(after)).toMatchObject({ kind: 'done' })
  expect(making.done).toBe(reached === 'forced' || reached === 'started' ? 1 : 0)
  return { reached, isOver }
}
