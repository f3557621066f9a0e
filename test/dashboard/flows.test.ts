// Flows on the dashboard: a person's walk, barriers, large flows, and names of hostile people.
import { defineJob } from 'pawl'
import { describe, expect, it } from 'vitest'
import { thorough } from '../support/extent.ts'
import { group, makeFlow, reporting } from '../support/made-flows.ts'
import { browserOfFile, serving, violationsOf, visit } from './bench.ts'
import { HOSTILE } from './hostile-texts.ts'

const browser = await browserOfFile()

describe.runIf(browser)('flows', () => {
  const chromium = browser as NonNullable<typeof browser>

  it('show what failed, are redriven, and their dependents go on', async () => {
    const { jobs, nodes, repair } = reporting()
    const { pawl, server } = await serving({ jobs })
    const { page, faults, foreign } = await visit(chromium, `${server.url}/flows`)
    await page.getByText('No flows yet').waitFor()
    const { id, jobs: ids } = await makeFlow(pawl, nodes, { key: 'report-11' })
    const worker = await pawl.work()

    // The list says which flow needs a person.
    await page.locator('tbody .state', { hasText: 'attention' }).waitFor()
    await page.getByText('2 of 4').waitFor()
    expect(await violationsOf(page)).toEqual([])
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.locator('.top .state', { hasText: 'attention' }).waitFor()
    expect(new URL(page.url()).pathname).toBe(`/flows/${id}`)

    // The graph: the invoice is parked, and holds up the report.
    const box = (label: string | RegExp) => page.locator('.graph.flow').getByLabel(label)
    await box('invoice #2: parked, on the critical path').waitFor()
    await box('report #3: waits, on the critical path').waitFor()
    await box(/^render #0: succeeded in/).waitFor()
    expect(await page.locator('.graph.flow .edge.critical').count()).toBe(1)
    await page.getByText('It waits for invoice #2, which is parked.').waitFor()
    expect(await violationsOf(page)).toEqual([])

    // Back in time: nothing had run.
    await page.locator('main').focus()
    await page.keyboard.press('Home')
    await page.getByText(/^Its 4 jobs, as they were at/).waitFor()
    await box(/^report #3: waits/).waitFor()
    await expect.poll(() => box(/succeeded/).count()).toBe(0)
    expect(new URL(page.url()).searchParams.get('at')).toMatch(/^\d+$/)
    await page.keyboard.press('.')
    await box('invoice #2: parked, on the critical path').waitFor()

    // The chain of waits on the page of the job.
    await box('report #3: waits, on the critical path').click()
    await page.getByRole('heading', { name: 'What it belongs to' }).waitFor()
    const linked = page.getByLabel('What it belongs to')
    await linked.getByRole('link', { name: 'invoice #2' }).waitFor()
    expect(await violationsOf(page)).toEqual([])
    await linked.getByRole('link', { name: 'report-11' }).click()

    // Redrive: the dependents go on by themselves.
    repair()
    await page.getByRole('button', { name: 'Redrive…' }).click()
    await page.locator('dialog .notice', { hasText: '1 job would change.' }).waitFor()
    await page.getByLabel('Your name').fill('ada')
    await page.getByLabel('Reason, recorded in the ledger').fill('INC-7')
    expect(await page.locator('dialog .cli code').textContent()).toBe(
      `pawl flow redrive ${id} --reason=INC-7 --operator=ada`,
    )
    await page.getByRole('button', { name: 'Redrive', exact: true }).click()
    await page.locator('.top .state', { hasText: 'done' }).waitFor()
    await box(/^report #3: succeeded in/).waitFor()
    expect((await pawl.store.get(ids[3] ?? ''))?.outcome).toBe('succeeded')
    const facts = await pawl.store.facts(ids[2] ?? '')
    expect(facts.find(({ trigger }) => trigger === 'redrive')).toMatchObject({
      operator: 'ada',
      note: 'INC-7',
    })
    await worker.stop()
    expect([faults, foreign]).toEqual([[], []])
  }, 120_000)

  it('fold many members into one box, and are cancelled, in the dark on a phone', async () => {
    const { jobs, render, report } = reporting()
    const { pawl, server } = await serving({ jobs })
    const members = Array.from({ length: thorough(500, 10_000) }, () => ({ job: render }))
    const callback = { job: report, after: [group('members', 'members')] }
    const { id } = await makeFlow(pawl, [callback, ...members], { kind: 'batch' })
    const { page, faults } = await visit(chromium, `${server.url}/flows/${id}`, {
      viewport: { width: 390, height: 844 },
      colorScheme: 'dark',
    })
    await page.locator('.graph.flow a').nth(1).waitFor()
    expect(await page.locator('.graph.flow a').count()).toBe(2)
    const root = 'document.documentElement'
    const over = await page.evaluate(`${root}.scrollWidth - ${root}.clientWidth`)
    expect(over).toBeLessThanOrEqual(0)
    expect(await violationsOf(page)).toEqual([])
    await page.getByRole('button', { name: 'Cancel…' }).click()
    await page.getByText('jobs would change.').waitFor()
    await page.getByLabel('Reason, recorded in the ledger').fill('not wanted')
    await page.getByRole('button', { name: 'Cancel', exact: true }).click()
    await page.locator('.top .state', { hasText: 'done' }).waitFor({ timeout: 60_000 })
    const progress = await pawl.store.flows.progress(id)
    expect(progress).toMatchObject({ members: members.length, cancelled: members.length })
    expect(faults).toEqual([])
  }, 120_000)

  it('show hostile names as texts', async () => {
    const used = HOSTILE.filter((_, i) => i % thorough(3, 1) === 0)
    const types = used.map((name) => defineJob({ name, queue: 'x', run: async () => null }))
    const { pawl, server } = await serving({ jobs: types })
    const [first, ...others] = types.map((job) => ({ job }))
    const last = { job: types[0] as never, after: [group(HOSTILE[0] ?? '', [[0, 1]])] }
    const nodes = [first as never, ...others, last]
    const { id, jobs: ids } = await makeFlow(pawl, nodes, { key: HOSTILE[1] ?? '' })
    const { page, faults, foreign } = await visit(chromium, `${server.url}/flows`)
    await page
      .getByText(HOSTILE[1] ?? '')
      .first()
      .waitFor()
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 844 })
      for (const path of [`/flows/${id}`, '/flows', `/jobs/${ids.at(-1)}`]) {
        await page.goto(`${server.url}${path}`)
        await page
          .getByText(HOSTILE[1] ?? '')
          .first()
          .waitFor()
        const root = 'document.documentElement'
        const over = await page.evaluate(`${root}.scrollWidth - ${root}.clientWidth`)
        expect(over, `${path} at ${width}`).toBeLessThanOrEqual(0)
        expect(await page.evaluate('window.owned')).toBeUndefined()
      }
    }
    await page.goto(`${server.url}/flows/${encodeURIComponent(HOSTILE[0] ?? '')}`)
    await page.getByText('There is no such flow').waitFor()
    expect([faults, foreign]).toEqual([[], []])
  }, 120_000)
})
