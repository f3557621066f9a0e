// How appends become writes: those that are made together share one, and one who appends alone
// neither waits for others nor keeps them from getting on.
import { openFolderJournal, type RunFact } from 'pawl/runs'
import { SeededRandom, SimulatedFiles, testEnvironment } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { AUTHOR, factsOf } from '../contract/journal/bench.ts'
import { freshFolder } from './bench.ts'

const section = (n: number): RunFact => ({
  type: 'SECTION_STATE_CHANGED',
  data: { section: `section-${n}`, from_state: null, to_state: 'drafted' },
})

const created = () => factsOf(null, { kind: 'create' })

async function simulated() {
  const environment = testEnvironment()
  const files = new SimulatedFiles(new SeededRandom(1))
  const journal = await openFolderJournal({ path: 'runs', environment, files, locks: files })
  return { environment, files, writer: await journal.create('run-1', created(), AUTHOR) }
}

describe('appends to a log in a folder', () => {
  it('that are made at once share one write and one sync', async () => {
    const { files, writer } = await simulated()
    const before = files.operations
    await Promise.all(Array.from({ length: 100 }, (_, n) => writer.append([section(n)], AUTHOR)))
    expect(files.operations - before).toBe(2)
    expect(writer.run.last_seq).toBe(101)
  })

  it('that follow the answer to a shared write share the next one', async () => {
    const { files, writer } = await simulated()
    const before = files.operations
    const appendTwice = async (n: number) => {
      await writer.append([section(n)], AUTHOR)
      // Not all get on equally fast.
      for (let hop = 0; hop < n; hop++) await Promise.resolve()
      await writer.append([section(n)], AUTHOR)
    }
    await Promise.all(Array.from({ length: 20 }, (_, n) => appendTwice(n)))
    expect(files.operations - before).toBe(4)
  })

  it('that are made one after the other let the event loop turn', async () => {
    const { environment, writer } = await simulated()
    let turned = false
    setImmediate(() => {
      turned = true
    })
    // Nothing else here waits for more than a promise, and no snapshot is due.
    for (let n = 0; n < 10; n++) {
      await writer.append([section(n)], AUTHOR)
      environment.advance(1)
    }
    expect(turned).toBe(true)
  })

  it('stay whole if a write is too large for this thread', async () => {
    const path = freshFolder()
    await using journal = await openFolderJournal({ path })
    const writer = await journal.create('run-1', created(), AUTHOR)
    const facts = Array.from({ length: 2000 }, (_, n) => section(n))
    await writer.append(facts, AUTHOR)
    const reader = await journal.read('run-1')
    expect((await reader.replay()).run).toEqual(writer.run)
    expect(writer.run.last_seq).toBe(2001)
  })
})

describe('the snapshot of a log in a folder', () => {
  it('follows the log less often the longer it is', async () => {
    const { files, writer } = await simulated()
    const written = async (events: number) => {
      const before = files.operations
      for (let n = 0; n < events; n++) await writer.append([section(n)], AUTHOR)
      // An append takes two operations; the rest is snapshots.
      return files.operations - before - 2 * events
    }
    const first = await written(600)
    expect(first).toBeGreaterThan(0)
    await writer.append(
      Array.from({ length: 5000 }, (_, n) => section(n)),
      AUTHOR,
    )
    expect(await written(600)).toBe(0)
  })
})
