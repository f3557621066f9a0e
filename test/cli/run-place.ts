// A folder with a kind of run, `docs`: it stands still in DRAFTING until there is a file named ink.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Place } from './pawl.ts'

const FILE = `
import { existsSync } from 'node:fs'
import { defineRun } from 'pawl/runs'
const to = (state) => async () => state
export const docs = defineRun({
  name: 'docs',
  nodes: {
    CREATED: to('CLONED_INPUTS'), CLONED_INPUTS: to('INGESTED'), INGESTED: to('FACTS_READY'),
    FACTS_READY: to('PLAN_READY'), PLAN_READY: to('DRAFTING'),
    DRAFTING: async (run) => {
      await run.work('draft', { inputs: { of: run.input } }, () => 'text')
      if (run.input?.sleeps) {
        const { signal } = run
        await new Promise((_, stop) => signal.addEventListener('abort', () => stop(signal.reason)))
      }
      if (!existsSync('ink')) throw new Error('there is no ink')
      return 'DRAFT_READY'
    },
    DRAFT_READY: to('LINKING'), LINKING: to('VALIDATING'),
    VALIDATING: async (run) => { await run.validation(true); return 'READY_FOR_PR' },
    FIXING: to('VALIDATING'), READY_FOR_PR: to('PR_OPENED'), PR_OPENED: to('DONE'),
  },
})
`

/** The folder, with a configuration that names the kind of run. */
export function runPlace(store?: string): Place {
  const own = new Place(store)
  writeFileSync(join(own.folder, 'runs.ts'), FILE)
  writeFileSync(join(own.folder, 'pawl.config.json'), '{"runs":"./runs.ts","runFolder":"./runs"}')
  return own
}
