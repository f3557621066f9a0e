// The fix loop of runs that are interrupted and whose inputs change: which attempts count, when
// their budget begins anew, and that a validation is kept for as long as it holds.
import { copyFileSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  defineRun,
  defineRunMachine,
  openFolderJournal,
  type RunContext,
  type RunDefinition,
  type Runs,
} from 'pawl/runs'
import { describe, expect, it } from 'vitest'
import { eventsOf, freshFolder, freshRuns, journalsNamed, outcomeOf, storyOf } from './bench.ts'

const journals = journalsNamed('fix_loop')

/** R4's pipeline: a page is drafted, and is mended for as long as it holds an "x". */
class Mending {
  readonly page = join(freshFolder(), 'page.md')
  stopIn: 'READY_FOR_PR' | undefined
  /** Called by the node that mends, before its work. */
  onFixing: (run: RunContext) => void = () => {}
  readonly definition: RunDefinition = this.#define()
  #writes = 0

  put(text: string): void {
    writeFileSync(this.page, text)
    utimesSync(this.page, 1_000_000, 1_000_000 + this.#writes++)
  }

  #define(): RunDefinition {
    const draft = (run: RunContext) => run.artifact('draft')
    return defineRun({
      name: 'mending',
      nodes: {
        CREATED: async (run) => {
          await run.inputFile('page', this.page)
          return 'CLONED_INPUTS'
        },
        CLONED_INPUTS: async () => 'INGESTED',
        INGESTED: async () => 'FACTS_READY',
        FACTS_READY: async () => 'PLAN_READY',
        PLAN_READY: async () => 'DRAFTING',
        DRAFTING: async (run) => {
          await run.work('draft', {}, async () =>
            draft(run).write(await run.artifact('page').text()),
          )
          return 'DRAFT_READY'
        },
        DRAFT_READY: async () => 'LINKING',
        LINKING: async () => 'VALIDATING',
        VALIDATING: async (run) => {
          const ok = !(await draft(run).text()).includes('x')
          await run.validation(ok)
          return ok ? 'READY_FOR_PR' : 'FIXING'
        },
        FIXING: async (run) => {
          this.onFixing(run)
          const text = await draft(run).text()
          await run.work('mend', { inputs: { text } }, () =>
            draft(run).write(text.replace('x', 'y')),
          )
          return 'VALIDATING'
        },
        READY_FOR_PR: async () => {
          if (this.stopIn === 'READY_FOR_PR') throw new Error('stop here')
          return 'PR_OPENED'
        },
        PR_OPENED: async () => 'DONE',
      },
    })
  }
}

const resumed = async (runs: Runs) => (await runs.resume('r1')).result()

describe.each(journals)('the fix loop of a run in %s', (_name, open) => {
  it('counts no attempt if the process stops before the work of the fix ran', async () => {
    const mending = new Mending()
    mending.put('x')
    const runs = await freshRuns({ journal: await open(), runs: [mending.definition] })
    const stop = new AbortController()
    mending.onFixing = () => stop.abort()
    const { signal } = stop
    const handle = await runs.start(mending.definition, { runId: 'r1', signal })
    expect(await handle.result()).toMatchObject({ kind: 'stopped' })
    for (let i = 0; i < 5; i++) {
      const again = new AbortController()
      mending.onFixing = () => again.abort()
      const outcome = await (await runs.resume('r1', { signal: again.signal })).result()
      expect(outcome).toMatchObject({ kind: 'stopped', run: { fix_attempts: 0 } })
    }
    mending.onFixing = () => {}
    expect(await resumed(runs)).toMatchObject({ kind: 'done', run: { fix_attempts: 1 } })
    expect(await runs.verify('r1')).toEqual([])
  }, 60_000)

  it('gets all attempts back whenever an input changes', async () => {
    const mending = new Mending()
    mending.put('x')
    const runs = await freshRuns({ journal: await open(), runs: [mending.definition] })
    mending.stopIn = 'READY_FOR_PR'
    expect(await outcomeOf(runs, mending.definition)).toMatchObject({ kind: 'stopped' })
    for (let edit = 1; edit <= 5; edit++) {
      mending.put(`edit ${edit}: x x`)
      const outcome = await resumed(runs)
      expect(outcome).toMatchObject({ kind: 'stopped', run: { fix_attempts: 2 } })
    }
    mending.stopIn = undefined
    expect(await resumed(runs)).toMatchObject({ kind: 'done', run: { fix_attempts: 2 } })
    const resets = (await eventsOf(runs)).filter(({ type }) => type === 'FIX_ATTEMPTS_RESET')
    expect(resets.map(({ data }) => data)).toEqual([
      { spent: 1, because: 'page' },
      ...Array.from({ length: 4 }, () => ({ spent: 2, because: 'page' })),
    ])
    expect(await runs.verify('r1')).toEqual([])
  }, 60_000)

  it('still ends a run whose fixes do not help', async () => {
    const mending = new Mending()
    mending.put('x x x x')
    const runs = await freshRuns({ journal: await open(), runs: [mending.definition] })
    expect(await outcomeOf(runs, mending.definition)).toMatchObject({
      kind: 'failed',
      run: { fix_attempts: 3 },
      reason: 'max_fix_attempts exceeded',
    })
  })
})

const checked = defineRunMachine({
  machine: {
    name: 'checked',
    version: 1,
    initial: 'check',
    sameState: 'refuse',
    states: {
      check: { meaning: 'It is checked.', transitional: true },
      mend: { meaning: 'It is mended.', transitional: true },
      passed: { meaning: 'It passed.', stable: true },
      packing: { meaning: 'It is packed.', transitional: true },
      packed: { meaning: 'It is packed.', stable: true },
      sending: { meaning: 'It is sent.', transitional: true },
      sent: { meaning: 'Gone.', terminal: true },
      broken: { meaning: 'Not sent.', terminal: true },
      stopped: { meaning: 'Not wanted.', terminal: true },
    },
    edges: [
      { from: 'check', to: 'passed', on: ['pass'] },
      { from: 'check', to: 'mend', on: ['mend'] },
      { from: 'mend', to: 'check', on: ['check'] },
      { from: 'passed', to: 'packing', on: ['pack'] },
      { from: 'packing', to: 'packed', on: ['packed'] },
      { from: 'packed', to: 'sending', on: ['send'] },
      { from: 'sending', to: 'sent', on: ['sent'] },
      ...(['check', 'mend', 'passed', 'packing', 'packed', 'sending'] as const).flatMap(
        (from) =>
          [
            { from, to: 'broken', on: ['fail'] },
            { from, to: 'stopped', on: ['cancel'] },
          ] as const,
      ),
    ],
  },
  failed: 'broken',
  cancelled: 'stopped',
  fixLoop: { validating: 'check', fixing: 'mend', passed: 'passed' },
})

describe.each(journals)('the validation of a run in %s', (_name, open) => {
  it('is kept by a resumption that goes back to a state after it', async () => {
    let isBroken = true
    const definition = defineRun({
      name: 'checked',
      machine: checked,
      nodes: {
        check: async (run) => {
          await run.validation(true)
          return 'passed'
        },
        mend: async () => 'check',
        passed: async () => 'packing',
        packing: async () => 'packed',
        packed: async () => 'sending',
        sending: async () => {
          if (isBroken) throw new Error('stop here')
          return 'sent'
        },
      },
    })
    const runs = await freshRuns({ journal: await open(), runs: [definition] })
    const { run } = await outcomeOf(runs, definition)
    expect(run).toMatchObject({ run_state: 'sending', validation: { ok: true } })
    const { validation } = run
    isBroken = false
    expect(await resumed(runs)).toMatchObject({ kind: 'done', run: { validation } })
    expect(await storyOf(runs)).toContain('RESUME_REWIND packed')
    expect(await runs.verify('r1')).toEqual([])
  }, 60_000)
})

describe('a log from before fixes were counted by their work', () => {
  it('folds to the snapshot that was written then, byte for byte', async () => {
    const folder = freshFolder()
    const logs = new URL('logs/', import.meta.url)
    const snapshot = readFileSync(new URL('fixes-counted-on-entry.snapshot', logs))
    mkdirSync(join(folder, 'old-1'))
    copyFileSync(
      new URL('fixes-counted-on-entry.ndjson', logs),
      join(folder, 'old-1', 'events.ndjson'),
    )
    await using journal = await openFolderJournal({ path: folder })
    const author = { trace_id: 't', span_id: 's', actor: 'a' }
    await (await journal.open('old-1', author)).close()
    expect(readFileSync(join(folder, 'old-1', 'snapshot.json'))).toEqual(snapshot)
  })
})
