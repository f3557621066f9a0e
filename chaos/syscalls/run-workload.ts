/**
 * A small life of a run in a folder, in which every kind of write happens: it is made, works
 * through R4's states with items, artifacts, sections, issues and a validation that fails
 * once, and ends. It dies at one of its system calls, and is then taken up again by another
 * process.
 *
 * Its ids count, so that its files have the same names each time, and one item follows the other,
 * so that its calls have the same order. Each item that it does is witnessed outside of the run.
 *
 * Argument: JSON of `{ folder, act }`, where `act` is 1 for the first process.
 */
import { appendFileSync, writeSync } from 'node:fs'
import { PawlError } from 'pawl'
import {
  defineRun,
  type ItemContext,
  openFolderJournal,
  openRuns,
  type RunContext,
} from 'pawl/runs'
import { systemEnvironment } from 'pawl/sqlite'
import { RUN, type Witness, type Workload } from './run-story.ts'

const { folder, act } = JSON.parse(process.argv[2] ?? '{}') as Workload
let issued = 0
const ids = {
  next: () => `00000000-0000-7000-8${String(act).padStart(3, '0')}-${hexOf(++issued)}`,
}
const environment = { ...systemEnvironment(), ids }

const story = defineRun({
  name: 'story',
  nodes: {
    CREATED: async (run) => {
      await run.artifact('source').write('intro usage')
      return 'CLONED_INPUTS'
    },
    CLONED_INPUTS: async () => 'INGESTED',
    INGESTED: async (run) => {
      await work(run, 'facts', async () => {
        await run.artifact('facts').write((await run.artifact('source').text()).toUpperCase())
      })
      return 'FACTS_READY'
    },
    FACTS_READY: async (run) => {
      await run.issue.open('NoReviewer', { severity: 'warning', message: 'nobody reviews this' })
      return 'PLAN_READY'
    },
    PLAN_READY: async () => 'DRAFTING',
    DRAFTING: async (run) => {
      for (const name of ['intro', 'usage']) {
        await work(run, `draft ${name}`, async () => {
          await run.artifact('facts').text()
          await run.artifact(`draft/${name}`).write(`# ${name}`)
          return name.length
        })
        await run.section(name).set('drafted')
      }
      return 'DRAFT_READY'
    },
    DRAFT_READY: async () => 'LINKING',
    LINKING: async () => 'VALIDATING',
    VALIDATING: async (run) => {
      const ok = (await run.artifact('draft/usage').text()).includes('The end.')
      await run.validation(ok)
      return ok ? 'READY_FOR_PR' : 'FIXING'
    },
    FIXING: async (run) => {
      await work(run, 'fix', async () => {
        const draft = run.artifact('draft/usage')
        await draft.write(`${await draft.text()}\nThe end.`)
      })
      return 'VALIDATING'
    },
    READY_FOR_PR: async (run) => {
      await run.issue.resolve('NoReviewer')
      return 'PR_OPENED'
    },
    PR_OPENED: async () => 'DONE',
  },
})

const journal = await openFolderJournal({ path: `${folder}/runs`, environment })
const runs = await openRuns({ journal, environment, runs: [story], worker: 'worker' })
const handle = act === 1 ? await begin() : await runs.resume(RUN).catch(beginIfNew)
const { kind } = await handle.result()
await runs.close()
writeSync(1, `${JSON.stringify({ kind })}\n`)

function begin() {
  return runs.start(story, { runId: RUN })
}

/** A run that died before it was created was not acknowledged: it is started again. */
function beginIfNew(error: unknown) {
  const code = error instanceof PawlError ? error.code : undefined
  if (code === 'E_RUN_NOT_FOUND' || code === 'E_RUN_INCOMPLETE') return begin()
  throw error
}

function work(run: RunContext, key: string, does: (item: ItemContext) => Promise<unknown>) {
  return run.work(key, {}, (item) => {
    const witness: Witness = { act, key }
    appendFileSync(`${folder}/did.ndjson`, `${JSON.stringify(witness)}\n`)
    return does(item)
  })
}

function hexOf(number: number): string {
  return number.toString(16).padStart(12, '0')
}
