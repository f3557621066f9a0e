// Runs on the dashboard: a person's walk, barriers, and names and contents of hostile people.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { typed } from 'pawl'
import { defineRun, defineRunMachine, openRuns } from 'pawl/runs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { thorough } from '../support/extent.ts'
import { browserOfFile, serving, violationsOf, visit } from './bench.ts'
import { HOSTILE } from './hostile-texts.ts'

const browser = await browserOfFile()

interface Input {
  readonly folder: string
  readonly extra?: readonly string[]
}

/** Counts the words of texts. It fails while the texts contain `broken`. */
const counting = defineRun({
  name: 'counting',
  input: typed<Input>(),
  nodes: {
    CREATED: async (run) => {
      await run.inputFolder('texts', { path: run.input.folder, extensions: ['.txt'] })
      return 'CLONED_INPUTS'
    },
    CLONED_INPUTS: async (run) => {
      const names = await run.artifact('texts').json<string[]>()
      await run.each(names, { key: (name) => `count ${name}` }, async (name) => {
        const text = await run.artifact(name).text()
        await run.artifact(`words/${name}`).writeJson({ words: text.split(' ').length })
      })
      return 'INGESTED'
    },
    INGESTED: async (run) => {
      const names = await run.artifact('texts').json<string[]>()
      await run.work('add up', {}, async () => {
        let sum = 0
        for (const name of names) {
          if ((await run.artifact(name).text()).includes('broken')) throw new Error('it is broken')
          sum += (await run.artifact(`words/${name}`).json<{ words: number }>()).words
        }
        await run.artifact('sum').writeJson({ sum })
      })
      for (const text of run.input.extra ?? []) {
        await run.work(text, {}, async () => {
          await run.artifact(`x ${text}`).write(text)
        })
        await run.issue.open(text, { severity: 'warning', message: text })
      }
      return 'FACTS_READY'
    },
    FACTS_READY: async () => 'PLAN_READY',
    PLAN_READY: async () => 'DRAFTING',
    DRAFTING: async () => 'DRAFT_READY',
    DRAFT_READY: async () => 'LINKING',
    LINKING: async () => 'VALIDATING',
    VALIDATING: async (run) => {
      await run.validation(true)
      return 'READY_FOR_PR'
    },
    READY_FOR_PR: async () => 'PR_OPENED',
    PR_OPENED: async () => 'DONE',
    FIXING: async () => 'VALIDATING',
  },
})

/** A machine of its own, with the name of a lifecycle. */
const reviewing = defineRun({
  name: 'reviewing',
  machine: defineRunMachine({
    machine: {
      name: 'standard',
      version: 1,
      initial: 'WRITTEN',
      sameState: 'refuse',
      states: {
        WRITTEN: { meaning: 'Written.', stable: true },
        REVIEWED: { meaning: 'Reviewed.', stable: true },
        PUBLISHED: { meaning: 'Published.', terminal: true },
        FAILED: { meaning: 'Failed.', terminal: true },
        CANCELLED: { meaning: 'Cancelled.', terminal: true },
      },
      edges: [
        { from: 'WRITTEN', to: 'REVIEWED', on: ['review'] },
        { from: 'REVIEWED', to: 'WRITTEN', on: ['reject'] },
        { from: 'REVIEWED', to: 'PUBLISHED', on: ['publish'] },
        { from: 'WRITTEN', to: 'PUBLISHED', on: ['publish'] },
        { from: 'WRITTEN', to: 'FAILED', on: ['fail'] },
        { from: 'REVIEWED', to: 'FAILED', on: ['fail'] },
        { from: 'WRITTEN', to: 'CANCELLED', on: ['cancel'] },
        { from: 'REVIEWED', to: 'CANCELLED', on: ['cancel'] },
      ],
    },
    failed: 'FAILED',
    cancelled: 'CANCELLED',
  }),
  input: typed<null>(),
  nodes: { WRITTEN: async () => 'REVIEWED', REVIEWED: async () => 'PUBLISHED' },
})

async function servingRuns() {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-runs-page-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const texts = mkdtempSync(join(folder, 'texts-'))
  const write = (name: string, text: string) => writeFileSync(join(texts, name), text)
  const runs = await openRuns({ folder: join(folder, 'runs'), runs: [counting, reviewing] })
  onTestFinished(() => runs.close())
  const { server } = await serving({}, { runs })
  return { runs, server, texts, write }
}

describe.runIf(browser)('runs', () => {
  const chromium = browser as NonNullable<typeof browser>

  it('are started, read back in time, and resumed with only the stale part redone', async () => {
    const { runs, server, texts, write } = await servingRuns()
    write('a.txt', 'one two three')
    write('b.txt', 'broken')
    const { page, faults, foreign } = await visit(chromium, `${server.url}/runs`)
    await page.getByText('No runs here').waitFor()

    await page.getByRole('button', { name: 'Start a run…' }).click()
    await page.getByLabel('Input as JSON').fill('{')
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    await page.getByText('The input is not JSON').waitFor()
    await page.getByLabel('Input as JSON').fill(JSON.stringify({ folder: texts }))
    await page.getByLabel('Id', { exact: true }).fill('words-1')
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    await page.getByRole('link', { name: 'Open the run' }).click()
    await page.locator('.top .state', { hasText: 'INGESTED' }).waitFor()
    await page.getByText('NodeFailed').first().waitFor()

    // Back in time: the graph, the items and the address show the same moment.
    await page.keyboard.press('Home')
    await page.getByText('Its way, as of event 1 of').waitFor()
    await page.locator('.graph .now', { hasText: 'CREATED' }).waitFor()
    expect(new URL(page.url()).searchParams.get('at')).toBe('1')
    await page.getByText('No work items yet').waitFor()
    await page.keyboard.press('.')
    await page.locator('.graph .now', { hasText: 'INGESTED' }).waitFor()
    await page.getByRole('tab', { name: /^Events/ }).click()
    await page.getByLabel('Events of this type').selectOption('WORK_ITEM_FAILED')
    await page.getByRole('cell', { name: /add up: Error: it is broken/ }).waitFor()
    expect(await page.locator('tbody tr').count()).toBe(1)

    // One text changes. Only what depends on it runs again.
    write('b.txt', 'four five')
    await page.getByRole('tab', { name: 'What a resume would do' }).click()
    await page.getByText('It continues in').waitFor()
    await page.getByRole('button', { name: 'Resume…' }).click()
    await page.locator('dialog .notice', { hasText: 'items run again' }).waitFor()
    expect(await page.locator('dialog .cli code').textContent()).toBe('pawl run resume words-1')
    await page.getByRole('button', { name: 'Resume', exact: true }).click()
    await page.locator('.top .state', { hasText: 'DONE' }).waitFor()
    const { run } = await runs.show('words-1')
    expect(run.work_items['count texts/a.txt']?.attempts).toBe(1)
    expect(run.work_items['count texts/b.txt']?.attempts).toBe(2)
    await page.getByRole('tab', { name: /^Artifacts/ }).click()
    await page.getByRole('button', { name: 'sum', exact: true }).click()
    await page.locator('.content pre', { hasText: '"sum": 5' }).waitFor()
    expect([faults, foreign]).toEqual([[], []])
  })

  it('show what is stale, and on which way it became so', async () => {
    const { runs, server, texts, write } = await servingRuns()
    write('a.txt', 'one two three')
    write('b.txt', 'broken')
    await (await runs.start(counting, { runId: 'words-1', input: { folder: texts } })).result()
    write('b.txt', 'four five')
    await (await runs.resume('words-1')).result()
    let stale = 0
    for await (const { type, seq } of runs.events('words-1')) {
      if (type === 'ARTIFACT_STALE') stale = seq
    }
    const { page, faults } = await visit(
      chromium,
      `${server.url}/runs/words-1?at=${stale}&tab=graph`,
    )
    const box = (label: string) => page.getByLabel(label, { exact: true })
    const why = page.locator('.reasons li')
    await box('words/texts/b.txt: stale because of texts/b.txt').waitFor()
    await box('words/texts/a.txt: fresh').waitFor()
    expect(await why.first().textContent()).toBe(
      'stalewords/texts/b.txt, because texts/b.txt has changed, by way of count texts/b.txt.',
    )
    expect(await page.locator('.parts .edge.changed').count()).toBe(1)

    // The chosen one shows its way and its content; the rest can be left out.
    await box('words/texts/b.txt: stale because of texts/b.txt').click()
    await page.locator('.content pre', { hasText: '"words": 1' }).waitFor()
    expect(await page.locator('.parts .edge.lit').count()).toBe(2)
    await page.getByLabel('Only around the chosen one').check()
    await box('words/texts/a.txt: fresh').waitFor({ state: 'detached' })
    expect(new URL(page.url()).searchParams.get('artifact')).toBe('words/texts/b.txt')

    // Now, nothing is stale.
    await page.goto(`${server.url}/runs/words-1?tab=graph`)
    await page.getByText('0 stale artifacts').waitFor()
    expect(await why.count()).toBe(0)
    expect(faults).toEqual([])
  })

  it('are rewound to an event: only what ran after it runs again', async () => {
    const { runs, server, texts, write } = await servingRuns()
    write('a.txt', 'one two three')
    write('b.txt', 'broken')
    await (await runs.start(counting, { runId: 'words-1', input: { folder: texts } })).result()
    let before = 0
    for await (const { type, seq, data } of runs.events('words-1')) {
      if (type === 'WORK_ITEM_STARTED' && data.key === 'add up') before = seq - 1
    }
    write('b.txt', 'mended')
    const { page, faults } = await visit(chromium, `${server.url}/runs/words-1?at=1`)
    await page.getByRole('button', { name: 'Rewind to #1…' }).click()
    await page.getByText('3 work items ran after event 1').waitFor()
    await page.getByRole('button', { name: 'Close' }).click()
    await page.goto(`${server.url}/runs/words-1?at=${before}&tab=resume`)
    await page.getByText('It rewinds from INGESTED to').waitFor()
    await page.getByRole('button', { name: `Rewind to #${before}…` }).click()
    expect(await page.locator('dialog .cli code').textContent()).toBe(
      "pawl run resume words-1 --force='add up'",
    )
    await page.getByRole('button', { name: 'Rewind and resume' }).click()
    await page.getByText('The run is rewound and resumed.').waitFor()
    await expect.poll(async () => (await runs.show('words-1')).run.run_state).toBe('DONE')
    const { run } = await runs.show('words-1')
    expect(run.work_items['count texts/a.txt']?.attempts).toBe(1)
    expect(run.work_items['add up']?.attempts).toBe(2)
    const types: string[] = []
    for await (const { type } of runs.events('words-1')) types.push(type)
    expect(types).toContain('RESUME_REWIND')
    expect(faults).toEqual([])
  })

  it('are drawn on the page of machines with the machine of their definition', async () => {
    const { server } = await servingRuns()
    const { page, faults } = await visit(chromium, `${server.url}/machines`)
    // A lifecycle of jobs has the same name: both are listed, and each has its own states.
    const both = page.getByRole('link', { name: /^standard( v\d+)?$/ })
    await both.first().waitFor()
    expect(await both.count()).toBe(2)
    await both.last().click()
    await page.getByText('The machine of a run: 5 states, 8 edges').waitFor()
    await page.locator('.graph', { hasText: 'REVIEWED' }).waitFor()
    expect(await violationsOf(page)).toEqual([])
    await both.first().click()
    await page.locator('.graph', { hasText: 'quarantined' }).waitFor()
    expect(faults).toEqual([])
  })

  it('are forked at an event and cancelled with a reason', async () => {
    const { runs, server, texts, write } = await servingRuns()
    write('b.txt', 'broken')
    const { page, faults } = await visit(chromium, server.url)
    await (await runs.start(counting, { runId: 'words-1', input: { folder: texts } })).result()
    await page.goto(`${server.url}/runs/words-1?at=3`)
    await page.getByRole('button', { name: 'Fork at #3…' }).click()
    await page.getByLabel('Id of the new run').fill('words-2')
    expect(await page.locator('dialog .cli code').textContent()).toBe(
      'pawl run fork words-1 --at 3 --id=words-2',
    )
    await page.getByRole('button', { name: 'Fork', exact: true }).click()
    await page.getByRole('link', { name: 'Open the new run' }).click()
    await page.getByText('Its way: 3 events').waitFor()
    await page.getByRole('button', { name: 'Cancel…' }).click()
    await page.getByLabel('Your name').fill('ada')
    await page.getByLabel('Reason').fill('not needed')
    await page.getByRole('button', { name: 'Cancel the run' }).click()
    await page.locator('.top .state', { hasText: 'CANCELLED' }).waitFor()
    expect((await runs.show('words-2')).run.ended_because).toBe('not needed (by ada)')
    expect(faults).toEqual([])
  })

  it.each(['light', 'dark'] as const)('have no serious barrier: %s', async (colorScheme) => {
    const { runs, server, texts, write } = await servingRuns()
    write('a.txt', 'one')
    const input = { folder: texts, extra: ['chapter'] }
    await (await runs.start(counting, { runId: 'words-1', input })).result()
    const { page } = await visit(chromium, server.url, { colorScheme })
    const tabs = ['', '?at=9&tab=changes', '?tab=artifacts&artifact=sum', '?tab=items']
    const graphs = ['?tab=graph', '?tab=graph&artifact=sum&around=yes']
    const paths = [...tabs, ...graphs, '?tab=issues', '?tab=resume', '?tab=run'].map(
      (one) => `/words-1${one}`,
    )
    for (const path of ['', '/nothing', ...paths]) {
      await page.goto(`${server.url}/runs${path}`)
      await page.locator('main h1').first().waitFor()
      await page.locator('.graph, table, .empty').first().waitFor()
      await page.waitForTimeout(200)
      expect(await violationsOf(page), path).toEqual([])
    }
  })

  it('show names and contents of hostile people as texts', async () => {
    const { runs, server, texts, write } = await servingRuns()
    write('a.txt', 'one')
    const used = HOSTILE.filter((_, i) => i % thorough(3, 1) === 0)
    const input = { folder: texts, extra: used }
    const outcome = await (await runs.start(counting, { runId: 'words-1', input })).result()
    expect(outcome.kind).toBe('done')
    const { page, faults, foreign } = await visit(chromium, server.url)
    for (const tab of ['events', 'artifacts', 'graph', 'items', 'issues', 'resume', 'run']) {
      await page.goto(`${server.url}/runs/words-1?tab=${tab}`)
      await page.getByText('Its way').waitFor()
      await page.locator('[role=tabpanel] *').first().waitFor()
      expect(await page.evaluate('window.owned'), tab).toBeUndefined()
    }
    for (const text of used) {
      const name = encodeURIComponent(`x ${text}`)
      await page.goto(`${server.url}/runs/words-1?tab=artifacts&artifact=${name}`)
      await page.locator('.content pre').waitFor()
      // Brackets are indented, so that only the characters are compared.
      const shown = (await page.locator('.content pre').textContent()) ?? ''
      expect(shown.replaceAll(/\s/g, '')).toBe(text.replaceAll(/\s/g, ''))
      expect(await page.evaluate('window.owned'), text).toBeUndefined()
      await page.goto(`${server.url}/runs/words-1?tab=graph&artifact=${name}&around=yes`)
      await page.getByLabel(`x ${text}: fresh`, { exact: true }).waitFor()
      expect(await page.locator('.parts .now title').textContent()).toBe(`x ${text}\nfresh`)
      expect(await page.evaluate('window.owned'), text).toBeUndefined()
    }
    expect([faults, foreign]).toEqual([[], []])
  })
})
