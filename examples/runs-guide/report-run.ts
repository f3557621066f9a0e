import { typed } from 'pawl'
import { defineRun, defineRunMachine } from 'pawl/runs'

const steps = defineRunMachine({
  machine: {
    name: 'report',
    version: 1,
    initial: 'reading',
    sameState: 'refuse',
    states: {
      reading: { meaning: 'The texts are read.' },
      read: { meaning: 'All texts are counted.', stable: true },
      writing: { meaning: 'The report is written.', transitional: true },
      done: { meaning: 'The report is complete.', terminal: true },
      failed: { meaning: 'It cannot be made.', terminal: true },
      cancelled: { meaning: 'It was cancelled.', terminal: true },
    },
    edges: [
      { from: 'reading', to: 'read', on: ['count'] },
      { from: 'read', to: 'writing', on: ['write'] },
      { from: 'writing', to: 'done', on: ['finish'] },
      { from: 'reading', to: 'failed', on: ['fail'] },
      { from: 'read', to: 'failed', on: ['fail'] },
      { from: 'writing', to: 'failed', on: ['fail'] },
      { from: 'reading', to: 'cancelled', on: ['cancel'] },
      { from: 'read', to: 'cancelled', on: ['cancel'] },
      { from: 'writing', to: 'cancelled', on: ['cancel'] },
    ],
  },
  failed: 'failed',
  cancelled: 'cancelled',
})

export const report = defineRun({
  name: 'report',
  machine: steps,
  input: typed<{ folder: string }>(),
  nodes: {
    reading: async (run) => {
      const texts = await run.inputFolder('texts', { path: run.input.folder, extensions: ['.txt'] })
      await run.each(texts, { key: (name) => `count ${name}`, concurrency: 4 }, async (name) => {
        const words = (await run.artifact(name).text()).split(/\s+/).filter(Boolean).length
        await run.artifact(`count/${name}`).writeJson({ name, words })
      })
      return 'read'
    },
    read: async () => 'writing',
    writing: async (run) => {
      const total = await run.work('write report', { code: 'v1' }, async () => {
        let sum = 0
        for (const name of await run.artifact('texts').json<string[]>()) {
          sum += (await run.artifact(`count/${name}`).json<{ words: number }>()).words
        }
        await run.artifact('report.md').write(`# Report\n\n${sum} words.\n`)
        return sum
      })
      if (total === 0) run.fail('there is nothing to report')
      return 'done'
    },
  },
})
