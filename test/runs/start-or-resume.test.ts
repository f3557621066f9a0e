// Starting a run or resuming it by the same call, runs of machines that nobody here knows, and
// options that do not exist.
import { typed } from 'pawl'
import {
  defineRun,
  openFolderJournal,
  openRuns,
  openStoreJournal,
  type RunContext,
  type RunsOptions,
} from 'pawl/runs'
import { describe, expect, it } from 'vitest'
import { freshFolder, freshRuns, journalsNamed, outcomeOf, release, releaseOf } from './bench.ts'

const stuck = releaseOf({
  testing: () => {
    throw new Error('stop here')
  },
})
const SHA = 'a'.repeat(40)

describe.each(journalsNamed('start_or_resume'))('a run in %s', (_name, open) => {
  it('is started by the first call and resumed by the others, until it is done', async () => {
    let isBroken = true
    const done: string[] = []
    const definition = releaseOf({
      build: (run: RunContext) => run.work('plan', {}, () => void done.push('plan')),
      testing: () => {
        if (isBroken) throw new Error('stop here')
      },
    })
    const runs = await freshRuns({ journal: await open() })
    const call = async () => (await runs.startOrResume(definition, { runId: 'r1' })).result()
    expect(await call()).toMatchObject({ kind: 'stopped' })
    expect(await call()).toMatchObject({ kind: 'stopped' })
    isBroken = false
    expect(await call()).toMatchObject({ kind: 'done' })
    expect(await call()).toMatchObject({ kind: 'done' })
    expect(done).toEqual(['plan'])
  })

  it('is not resumed with another definition or input', async () => {
    const other = { ...stuck, name: 'other' }
    const withInput = defineRun({
      name: 'with-input',
      machine: release,
      input: typed<{ a: number }>(),
      nodes: {
        build: async () => 'built',
        built: async () => 'testing',
        testing: async () => 'shipped',
      },
    })
    const runs = await freshRuns({ journal: await open(), runs: [stuck, withInput] })
    await outcomeOf(runs, stuck)
    const code = 'E_RUN_DIFFERS'
    await expect(runs.startOrResume(other, { runId: 'r1' })).rejects.toMatchObject({ code })
    await (await runs.start(withInput, { runId: 'r2', input: { a: 1 } })).result()
    const again = runs.startOrResume(withInput, { runId: 'r2', input: { a: 2 } })
    await expect(again).rejects.toMatchObject({ code })
    const same = await runs.startOrResume(withInput, { runId: 'r2', input: { a: 1 } })
    expect(await same.result()).toMatchObject({ kind: 'done' })
  })

  it('is cancelled, linked and explained without its definition', async () => {
    const journal = await open()
    const runs = await freshRuns({ journal, runs: [stuck] })
    await outcomeOf(runs, stuck)
    const elsewhere = await freshRuns({ journal })
    expect(await elsewhere.explain('r1')).toMatchObject({ state: 'testing', continuesIn: 'built' })
    await elsewhere.linkCommit('r1', SHA)
    expect(await elsewhere.cancel('r1', 'not needed')).toBe('cancelled')
    expect((await elsewhere.show('r1')).run).toMatchObject({ run_state: 'stopped', commits: [SHA] })
    expect(await elsewhere.verify('r1')).toEqual([])
  })
})

describe('an option that does not exist', () => {
  it('is refused by every call, with its name', async () => {
    const folder = freshFolder()
    const bogus = { bogus: 1 } as object
    const defined = { code: 'E_DEFINITION_INVALID', message: expect.stringContaining('"bogus"') }
    await expect(openRuns({ folder, ...bogus } as RunsOptions)).rejects.toMatchObject(defined)
    await expect(openFolderJournal({ path: folder, ...bogus })).rejects.toMatchObject(defined)
    expect(() => openStoreJournal({ store: { runs: {} as never }, ...bogus })).toThrow('"bogus"')
    const nodes = { build: async () => 'built' } as never
    expect(() => defineRun({ name: 'a', machine: release, nodes, ...bogus })).toThrow('"bogus"')
    const runs = await freshRuns({ folder, runs: [stuck] })
    const called = { code: 'E_COMMAND_INVALID', message: expect.stringContaining('"bogus"') }
    await expect(runs.start(stuck, { ...bogus })).rejects.toMatchObject(called)
    expect(await runs.list()).toEqual([])
    await outcomeOf(runs, stuck)
    await expect(runs.resume('r1', { ...bogus })).rejects.toMatchObject(called)
    await expect(runs.explain('r1', { ...bogus })).rejects.toMatchObject(called)
    await expect(runs.list({ ...bogus })).rejects.toMatchObject(called)
    const both = runs.startOrResume(stuck, { runId: 'r1', ...bogus })
    await expect(both).rejects.toMatchObject(called)
    const force = 'plan' as unknown as string[]
    await expect(runs.resume('r1', { force })).rejects.toThrow('"force" must be an array')
  })
})
