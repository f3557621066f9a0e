// Runs: resuming one in which everything is done already, against reading and hashing the contents
// of all its artifacts; once where their files look as they did, and once by somebody who is
// paranoid, and has each of them read. Rates are work items per second.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { defineRun, defineRunMachine, openRuns } from 'pawl/runs'
import { compare, inFolder, type Result, timed } from './measure.ts'

const RUN = 'run-1'
const ROUNDS = 5
const AT_ONCE = 100

/** Work, and then a stop, so that the run can be resumed again and again. */
const machine = defineRunMachine({
  machine: {
    name: 'bench',
    version: 1,
    initial: 'begun',
    sameState: 'refuse',
    states: {
      begun: { meaning: 'It waits.', stable: true },
      working: { meaning: 'It works.', transitional: true },
      done: { meaning: 'Out.', terminal: true },
      failed: { meaning: 'Broken.', terminal: true },
      cancelled: { meaning: 'Not wanted.', terminal: true },
    },
    edges: [
      { from: 'begun', to: 'working', on: ['work'] },
      { from: 'working', to: 'done', on: ['end'] },
      { from: 'begun', to: 'failed', on: ['fail'] },
      { from: 'working', to: 'failed', on: ['fail'] },
      { from: 'begun', to: 'cancelled', on: ['cancel'] },
      { from: 'working', to: 'cancelled', on: ['cancel'] },
    ],
  },
  failed: 'failed',
  cancelled: 'cancelled',
})

/** Measures a run with so many finished items, each with an artifact of so many KiB, both ways. */
export function benchResume(name: string, items: number, kib: number): Promise<Result[]> {
  const content = 'x'.repeat(kib * 1024)
  let done = 0
  const definition = defineRun({
    name: 'bench',
    machine,
    nodes: {
      begun: async () => 'working' as const,
      working: async (run) => {
        const keys = Array.from({ length: items }, (_, i) => `item-${i}`)
        await run.each(keys, { key: (key) => key, concurrency: AT_ONCE }, async (key) => {
          done++
          await run.artifact(`${key}.txt`).write(`${key} ${content}`)
        })
        throw new Error('to be resumed')
      },
    },
  })
  return inFolder(async (folder) => {
    await using runs = await openRuns({ folder, runs: [definition] })
    await (await runs.start(definition, { runId: RUN })).result()
    const contents = join(folder, RUN, 'artifacts')
    const long = new Date(Date.now() - 60_000)
    for (const file of readdirSync(contents)) utimesSync(join(contents, file), long, long)
    const rate = (ms: number) => (items / ms) * 1000
    const results: Result[] = []
    for (const paranoid of [false, true]) {
      results.push(
        await compare(
          paranoid ? `${name}, paranoid` : name,
          ROUNDS,
          async () =>
            rate(
              await timed(async () => {
                await (await runs.resume(RUN, { paranoid })).result()
              }),
            ),
          async () => rate(await timed(() => hashAll(contents))),
        ),
      )
    }
    if (done !== items) throw new Error(`${done} items were done`)
    return results
  })
}

function hashAll(folder: string): void {
  for (const file of readdirSync(folder)) {
    createHash('sha256')
      .update(readFileSync(join(folder, file)))
      .digest('hex')
  }
}
