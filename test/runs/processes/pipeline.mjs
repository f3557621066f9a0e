// The child of the tests with processes: R4's pipeline on a small text, with a validation
// that fails once. It can be told to die by SIGKILL before or after its n-th append, and writes
// down each item that it does, as a witness outside of the run. It does so in several folders, one
// after the other.
import { appendFileSync } from 'node:fs'
import { defineRun, openFolderJournal, openRuns } from '../../../dist/entries/runs.js'

const { folders, act, kill, runId = 'story' } = JSON.parse(process.argv[2])
let folder = folders[0]
const tell = (said) => process.stdout.write(`${JSON.stringify(said)}\n`)
const did = (key) => appendFileSync(`${folder}/did.ndjson`, `${JSON.stringify({ act, key })}\n`)

let appends = 0
const dieIf = (moment, number) => {
  if (kill?.at === number && kill.moment === moment) process.kill(process.pid, 'SIGKILL')
}

/** A writer whose process may die around an append. */
function mortal(writer) {
  const append = writer.append.bind(writer)
  writer.append = async (...args) => {
    const number = ++appends
    dieIf('before', number)
    const events = await append(...args)
    dieIf('after', number)
    return events
  }
  return writer
}

/** A journal whose process may die. */
async function openMortal() {
  const journal = await openFolderJournal({ path: `${folder}/runs` })
  const [create, open] = [journal.create.bind(journal), journal.open.bind(journal)]
  journal.create = async (...args) => {
    const number = ++appends
    dieIf('before', number)
    const writer = await create(...args)
    dieIf('after', number)
    return mortal(writer)
  }
  journal.open = async (...args) => mortal(await open(...args))
  return journal
}

const SECTIONS = ['intro', 'outro', 'usage']

const story = defineRun({
  name: 'story',
  nodes: {
    CREATED: async (run) => {
      await run.artifact('source').write('intro usage outro')
      return 'CLONED_INPUTS'
    },
    CLONED_INPUTS: async (run) => {
      await work(run, 'ingest', async () => (await run.artifact('source').text()).split(' '))
      return 'INGESTED'
    },
    INGESTED: async (run) => {
      await work(run, 'facts', () => run.artifact('facts').writeJson({ sections: SECTIONS.length }))
      return 'FACTS_READY'
    },
    FACTS_READY: async (run) => {
      await work(run, 'plan', async () => {
        await run.artifact('facts').json()
        await run.artifact('plan').writeJson(SECTIONS)
      })
      await run.issue.open('NoReviewer', { severity: 'warning', message: 'nobody reviews this' })
      return 'PLAN_READY'
    },
    PLAN_READY: async () => 'DRAFTING',
    DRAFTING: async (run) => {
      const sections = await run.artifact('plan').json()
      const options = { key: (name) => `draft ${name}`, code: 'v1', concurrency: 2 }
      await run.each(sections, options, async (name) => {
        did(`draft ${name}`)
        await run.artifact('plan').json()
        await run.artifact(`draft/${name}`).write(`# ${name}`)
      })
      for (const name of sections) await run.section(name).set('drafted')
      return 'DRAFT_READY'
    },
    DRAFT_READY: async () => 'LINKING',
    LINKING: async (run) => {
      await work(run, 'link', async () => {
        const drafts = []
        for (const name of SECTIONS) drafts.push(await run.artifact(`draft/${name}`).text())
        await run.artifact('book').write(drafts.join('\n'))
      })
      return 'VALIDATING'
    },
    VALIDATING: async (run) => {
      const ok = (await run.artifact('book').text()).includes('The end.')
      await run.validation(ok)
      return ok ? 'READY_FOR_PR' : 'FIXING'
    },
    FIXING: async (run) => {
      await work(run, 'fix', async () => {
        const book = run.artifact('book')
        await book.write(`${await book.text()}\nThe end.`)
      })
      return 'VALIDATING'
    },
    READY_FOR_PR: async (run) => {
      await run.issue.resolve('NoReviewer')
      await work(run, 'pr', (item) => ({ branch: item.effectKey }))
      await run.linkCommit('c'.repeat(40))
      return 'PR_OPENED'
    },
    PR_OPENED: async () => 'DONE',
  },
})

function work(run, key, act) {
  return run.work(key, {}, (item) => {
    did(key)
    return act(item)
  })
}

/** Never comes back: for whoever must find the run held. */
const sleepy = defineRun({
  name: 'sleepy',
  nodes: {
    ...Object.fromEntries([...story.nodes]),
    CREATED: async (run) => {
      tell({ held: true })
      await new Promise((resolve) => run.signal.addEventListener('abort', resolve))
      run.signal.throwIfAborted()
      return 'CLONED_INPUTS'
    },
  },
})

async function live() {
  const runs = await openRuns({ journal: await openMortal(), runs: [story, sleepy] })
  try {
    const handle =
      act === 'resume'
        ? await runs.resume(runId)
        : await runs.start(act === 'hold' ? sleepy : story, { runId })
    const { kind, run } = await handle.result()
    tell({ folder, kind, appends, state: run.run_state })
  } catch (error) {
    tell({ folder, code: error.code, message: error.message })
  }
  await runs.close()
}

for (folder of folders) await live()
