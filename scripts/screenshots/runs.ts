/** Runs for pictures of the dashboard: done, with stale work, stopped, and cancelled. */
import { setTimeout as pause } from 'node:timers/promises'
import { typed } from 'pawl'
import { defineRun, openRuns, openStoreJournal, type Runs } from 'pawl/runs'
import type { TestPawl } from 'pawl/testing'

const PAGES = ['ratchets', 'pawls', 'winches', 'escapements', 'governors', 'clutches', 'bearings']

interface Input {
  readonly edition: number
}

/** What the pictures need: a run that stops, and a page that has changed. */
const control = { stopsIn: '', words: 211 }

async function stopIn(state: string): Promise<void> {
  if (control.stopsIn === state) throw new Error('The process was stopped')
}

/** Each page is read, drafted, linked and checked, as in R4's pipeline. */
const handbook = defineRun({
  name: 'handbook',
  input: typed<Input>(),
  nodes: {
    CREATED: async (run) => {
      await run.artifact('pages').writeJson(PAGES)
      return 'CLONED_INPUTS'
    },
    CLONED_INPUTS: async (run) => {
      await run.each(PAGES, { key: (page) => `read ${page}`, concurrency: 3 }, async (page) => {
        await pause(8 + page.length * 3)
        await run.artifact(`read/${page}`).writeJson({ page, words: page.length * control.words })
      })
      return 'INGESTED'
    },
    INGESTED: async (run) => {
      await stopIn('INGESTED')
      await run.work('extract facts', {}, async () => {
        for (const page of PAGES) await run.artifact(`read/${page}`).json()
        await pause(30)
        await run.artifact('facts').writeJson({ terms: PAGES.length, edition: run.input.edition })
      })
      return 'FACTS_READY'
    },
    FACTS_READY: async (run) => {
      await run.work('plan', {}, async () => {
        await run.artifact('facts').json()
        await pause(12)
        await run.artifact('plan').writeJson(PAGES)
      })
      return 'PLAN_READY'
    },
    PLAN_READY: async () => 'DRAFTING',
    DRAFTING: async (run) => {
      await run.each(PAGES, { key: (page) => `draft ${page}`, concurrency: 3 }, async (page) => {
        await run.artifact(`read/${page}`).json()
        await pause(25 + page.length * 6)
        await run.artifact(`draft/${page}.md`).write(`# ${page}\n\nEdition ${run.input.edition}\n`)
      })
      await stopIn('DRAFTING')
      return 'DRAFT_READY'
    },
    DRAFT_READY: async () => 'LINKING',
    LINKING: async (run) => {
      await run.each(PAGES, { key: (page) => `link ${page}` }, async (page) => {
        const text = await run.artifact(`draft/${page}.md`).text()
        await pause(10)
        await run.artifact(`site/${page}.md`).write(`${text}\nSee also [[pawls]].\n`)
      })
      return 'VALIDATING'
    },
    VALIDATING: async (run) => {
      const ok = await run.work('check links', {}, async () => {
        const text = await run.artifact('site/winches.md').text()
        await pause(20)
        return text.includes('mended')
      })
      if (!ok) {
        const message = 'winches links to a page that does not exist: brakes'
        await run.issue.open('broken link: winches', { severity: 'error', message })
      }
      await run.validation(ok)
      await stopIn('VALIDATING')
      return ok ? 'READY_FOR_PR' : 'FIXING'
    },
    FIXING: async (run) => {
      await run.work('mend winches', {}, async () => {
        const page = run.artifact('site/winches.md')
        await page.write(`${await page.text()}\nmended\n`)
      })
      await run.issue.resolve('broken link: winches')
      return 'VALIDATING'
    },
    READY_FOR_PR: async () => 'PR_OPENED',
    PR_OPENED: async () => 'DONE',
  },
})

/** The runs of the store. The caller closes them. */
export async function makeRuns({ store, pawl, environment }: TestPawl): Promise<Runs> {
  const journal = openStoreJournal({ store })
  const runs = await openRuns({ journal, pawl, runs: [handbook] })
  const until = async (runId: string, edition: number, stopsIn: string) => {
    control.stopsIn = stopsIn
    const handle = await runs.start(handbook, { runId, input: { edition } })
    await handle.result().catch(() => undefined)
  }
  await until('handbook-1', 1, '')
  await until('handbook-2', 2, 'VALIDATING')
  await until('handbook-3', 3, 'DRAFTING')
  await until('handbook-4', 4, 'DRAFTING')
  // A page has changed: what was made of it is stale until the run goes on.
  Object.assign(control, { stopsIn: 'INGESTED', words: 223 })
  const again = await runs.resume('handbook-2', { force: ['read winches'] })
  await again.result().catch(() => undefined)
  await runs.cancel('handbook-4', 'The fourth edition is not needed (by ada)')
  // Runs are made in real time, the jobs in virtual time.
  environment.clock.advance(Math.max(0, Date.now() - environment.clock.now()))
  return runs
}
