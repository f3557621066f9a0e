// The engine of runs on journals in stores: the same run, on SQLite and on PostgreSQL.
import { openStoreJournal, type RunContext } from 'pawl/runs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freshRuns, outcomeOf, releaseOf, storesNamed } from './bench.ts'

const stores = storesNamed('engine_runs')

describe.each(stores)('a run in %s', (_name, open) => {
  it('stops, is refused to other processes while it is held, and is resumed by one', async () => {
    const store = await open()
    onTestFinished(() => store.close())
    const done: string[] = []
    let isBroken = true
    const build = async (run: RunContext) => {
      await run.each(['a', 'b'], { key: (value) => value }, async (value) => {
        done.push(value)
        await run.artifact(`out/${value}`).write(value)
        return value
      })
      if (isBroken) throw new Error('stop here')
    }
    const definition = releaseOf({ build })
    const here = await freshRuns({ journal: openStoreJournal({ store }), runs: [definition] })
    expect(await outcomeOf(here, definition)).toMatchObject({ kind: 'stopped' })
    isBroken = false

    const there = await freshRuns({ journal: openStoreJournal({ store }), runs: [definition] })
    expect((await there.explain('r1')).items).toMatchObject([
      { key: 'a', verdict: 'skip' },
      { key: 'b', verdict: 'skip' },
    ])
    expect(await (await there.resume('r1')).result()).toMatchObject({ kind: 'done' })
    expect(done).toEqual(['a', 'b'])
    expect(await here.verify('r1')).toEqual([])

    const sleep = (run: RunContext) =>
      new Promise((_, stop) => {
        run.signal.addEventListener('abort', () => stop(run.signal.reason))
      })
    const sleepy = { ...releaseOf({ build: sleep }), name: 'sleepy' }
    const handle = await here.start(sleepy, { runId: 'r2' })
    await expect(there.resume('r2')).rejects.toMatchObject({ code: 'E_RUN_HELD' })
    expect(await there.cancel('r2', 'no more')).toBe('requested')
    expect(await handle.result()).toMatchObject({ kind: 'cancelled', reason: 'no more' })
  }, 60_000)
})
