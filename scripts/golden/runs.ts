/** The runs of a golden store: one that ended, one that stands still, one that was cancelled. */
import { defineRun, defineRunMachine, type Journal, openRuns, type RunContext } from 'pawl/runs'

const machine = defineRunMachine({
  machine: {
    name: 'golden-release',
    version: 1,
    initial: 'build',
    sameState: 'refuse',
    states: {
      build: { meaning: 'It is built.' },
      built: { meaning: 'It can be tested.', stable: true },
      testing: { meaning: 'It is tested.', transitional: true },
      shipped: { meaning: 'Out.', terminal: true },
      broken: { meaning: 'Not out.', terminal: true },
      stopped: { meaning: 'Not wanted.', terminal: true },
    },
    edges: [
      { from: 'build', to: 'built', on: ['build'] },
      { from: 'built', to: 'testing', on: ['test'] },
      { from: 'testing', to: 'shipped', on: ['ship'] },
      { from: 'build', to: 'broken', on: ['fail'] },
      { from: 'built', to: 'broken', on: ['fail'] },
      { from: 'testing', to: 'broken', on: ['fail'] },
      { from: 'build', to: 'stopped', on: ['cancel'] },
      { from: 'built', to: 'stopped', on: ['cancel'] },
      { from: 'testing', to: 'stopped', on: ['cancel'] },
    ],
  },
  failed: 'broken',
  cancelled: 'stopped',
})

/** The run; `isBroken` makes it stand still in its transitional state. */
export function releaseRun(isBroken: boolean, done: string[] = []) {
  return defineRun({
    name: 'golden-release',
    machine,
    nodes: {
      build: async (run: RunContext) => {
        await run.each(['a', 'b', 'c'], { key: (value) => value }, async (value) => {
          done.push(value)
          await run.artifact(`out/${value}`).write(`content of ${value}`)
          return value
        })
        return 'built'
      },
      built: async () => 'testing',
      testing: async (run: RunContext) => {
        await run.work('check', { inputs: {} }, async () => {
          done.push('check')
          return 'ok'
        })
        if (isBroken) throw new Error('stop here')
        return 'shipped'
      },
    },
  })
}

/** Plays the runs in the place that `open` returns; afterwards no process holds them. */
export async function playRuns(
  open: () => { folder: string } | { journal: Journal },
): Promise<void> {
  const broken = releaseRun(true)
  const whole = releaseRun(false)
  {
    await using runs = await openRuns({ ...open(), runs: [whole], worker: 'golden' })
    await (await runs.start(whole, { runId: 'golden-done' })).result()
  }
  await using runs = await openRuns({ ...open(), runs: [broken], worker: 'golden' })
  await (await runs.start(broken, { runId: 'golden-standing' })).result()
  await (await runs.start(broken, { runId: 'golden-cancelled' })).result()
  await runs.cancel('golden-cancelled', 'not wanted any more')
}
