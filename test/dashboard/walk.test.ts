// A person's walk through the dashboard, in a real browser.
import { defineJob, defineLimit, defineSchedule, typed } from 'pawl'
import { createToken } from 'pawl/http'
import { describe, expect, it } from 'vitest'
import { browserOfFile, serving, violationsOf, visit } from './bench.ts'

const browser = await browserOfFile()

function shop() {
  const state = { isBroken: true }
  const charge = defineJob({
    name: 'charge',
    queue: 'billing',
    input: typed<{ order: string; cents: number }>(),
    retry: { max: 0 },
    run: () => {
      if (!state.isBroken) return { paid: true }
      throw new Error('The card was declined', { cause: new Error('insufficient funds') })
    },
  })
  return { state, charge }
}

/** A job type with one job at a time for each tenant, whose handlers wait until released. */
function tenants() {
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const tenant = defineLimit({ name: 'tenant', concurrency: 1, keyed: true })
  const sync = defineJob({
    name: 'sync',
    queue: 'import',
    input: typed<{ tenant: string; page: number }>(),
    concurrency: [{ limit: tenant, key: (input) => input.tenant }],
    run: () => released,
  })
  return { sync, release: () => release() }
}

describe.runIf(browser)('a person', () => {
  const chromium = browser as NonNullable<typeof browser>

  it('finds a failed job, reads why, redrives it and sees it succeed', async () => {
    const { state, charge } = shop()
    const { pawl, server } = await serving({ jobs: [charge] })
    const worker = await pawl.work()
    const { id } = await pawl.enqueue(charge, { order: 'o-7', cents: 9_007_199_254_740_991 })
    await expect.poll(async () => (await pawl.store.get(id))?.state).toBe('quarantined')

    const { page, faults, foreign } = await visit(chromium, server.url)
    await page.getByRole('link', { name: /1\s*parked/ }).click()
    await page.getByRole('link', { name: 'charge' }).click()
    await page.getByText('The card was declined').first().waitFor()
    await page.getByRole('tab', { name: 'Errors 1' }).click()
    await page.getByText('Error: insufficient funds', { exact: true }).waitFor()
    await page.getByRole('tab', { name: 'Input' }).click()
    await page.getByText('9007199254740991').waitFor()

    state.isBroken = false
    await page.getByRole('button', { name: 'Redrive…' }).click()
    await page.getByText('1 job of 1 would change').waitFor()
    await page.getByLabel('Your name').fill('ada')
    await page.getByLabel('Reason').fill('INC-7: the card works again')
    const line = `pawl job redrive ${id} --reason='INC-7: the card works again' --operator=ada`
    expect(await page.locator('dialog .cli code').textContent()).toBe(line)
    await page.getByRole('button', { name: 'Redrive', exact: true }).click()
    await page.locator('.top .state', { hasText: 'succeeded' }).waitFor()
    await page.getByRole('tab', { name: /Ledger/ }).click()
    await page.getByRole('cell', { name: /INC-7/ }).waitFor()
    const redriven = (await pawl.store.facts(id)).find(({ trigger }) => trigger === 'redrive')
    expect([redriven?.operator, redriven?.note]).toEqual(['ada', 'INC-7: the card works again'])
    expect([faults, foreign]).toEqual([[], []])
    await worker.stop()
  })

  it('goes back in time with the keys, and the address has the position', async () => {
    const { charge } = shop()
    const { pawl, server } = await serving({ jobs: [charge] })
    const worker = await pawl.work()
    const { id } = await pawl.enqueue(charge, { order: 'o-7', cents: 1 })
    await expect.poll(async () => (await pawl.store.get(id))?.state).toBe('quarantined')
    await worker.stop()
    const { page, faults } = await visit(chromium, `${server.url}/jobs/${id}`)
    await page.getByText(/Its life: \d facts/).waitFor()
    await page.keyboard.press('Home')
    await page.getByText(/Its life, as of fact 1 of/).waitFor()
    expect(new URL(page.url()).searchParams.get('at')).toBe('1')
    expect(await page.locator('.graph .now').textContent()).toContain('queued')
    await page.keyboard.press('ArrowRight')
    expect(await page.locator('.graph .now').textContent()).toContain('running')
    await page.reload()
    await page.getByText(/Its life, as of fact 2 of/).waitFor()
    await page.keyboard.press('.')
    await page.getByText(/Its life: \d facts/).waitFor()
    expect(await page.locator('.graph .now').textContent()).toContain('quarantined')
    expect(faults).toEqual([])
  })

  it('raises a limit, and blocked jobs move', async () => {
    const { sync, release } = tenants()
    const { pawl, server } = await serving({ jobs: [sync] })
    const worker = await pawl.work({ concurrency: 4 })
    for (let page = 0; page < 3; page++) await pawl.enqueue(sync, { tenant: 'acme', page })
    const lanes = async () => (await pawl.store.counts()).lanes
    await expect.poll(async () => (await lanes()).blocked).toBe(2)

    const { page, faults, foreign } = await visit(chromium, server.url)
    await page.getByRole('link', { name: /2\s*blocked/ }).click()
    await page.getByRole('link', { name: 'tenant acme' }).click()
    await page.getByText('2 jobs blocked').waitFor()
    const holder = page.getByRole('region', { name: 'Holders', exact: true }).getByRole('link')
    await expect.poll(() => holder.filter({ hasText: 'sync' }).count()).toBe(1)
    await page.getByRole('button', { name: 'Set…' }).click()
    await page.getByLabel('How many jobs may run at once').fill('3')
    await page.getByText('2 of 2 blocked jobs would become ready').waitFor()
    await page.getByLabel('Your name').fill('ada')
    await page.getByLabel('Reason').fill('INC-9')
    const line = 'pawl limit set tenant --key=acme --concurrency=3 --reason=INC-9 --operator=ada'
    expect(await page.locator('dialog .cli code').textContent()).toBe(line)
    await page.getByRole('button', { name: 'Set the limit' }).click()
    await page.getByText('blocks nothing').waitFor()
    await expect.poll(() => holder.filter({ hasText: 'sync' }).count()).toBe(3)
    await page.getByRole('cell', { name: 'set to 3' }).waitFor()
    expect((await lanes()).held).toBe(3)

    await page.getByRole('button', { name: 'Reset…' }).click()
    await page.getByLabel('Reason').fill('INC-9 is over')
    await page.getByRole('button', { name: 'Reset the limit' }).click()
    await page.getByRole('cell', { name: 'reset to the code' }).waitFor()
    release()
    await worker.stop()
    expect([faults, foreign]).toEqual([[], []])
  })

  it('pauses a schedule, runs it by hand, and sees who did it', async () => {
    const { charge } = shop()
    const nightly = defineSchedule({
      ...{ name: 'nightly', job: charge, input: { order: 'o-1', cents: 1 } },
      ...{ cron: '30 2 * * *', timezone: 'Europe/Berlin' },
    })
    const { pawl, server } = await serving({ jobs: [charge], schedules: [nightly] })
    const { page, faults } = await visit(chromium, `${server.url}/schedules`)
    await page.getByRole('link', { name: 'nightly' }).click()
    await page.getByRole('button', { name: 'Pause…' }).click()
    await page.getByLabel('Your name').fill('ada')
    await page.getByLabel('Reason').fill('INC-3')
    const line = 'pawl schedule pause nightly --reason=INC-3 --operator=ada'
    expect(await page.locator('dialog .cli code').textContent()).toBe(line)
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    await page.locator('.top .state', { hasText: 'paused' }).waitFor()
    const [paused] = (await pawl.store.schedules.list({ limit: 1 })).items
    expect([paused?.pausedBy, paused?.pauseNote]).toEqual(['ada', 'INC-3'])

    await page.getByRole('button', { name: 'Run now…' }).click()
    await page.getByLabel('Reason').fill('by hand')
    await page.getByRole('button', { name: 'Run now', exact: true }).click()
    await page.getByRole('cell', { name: 'run now' }).waitFor()
    expect((await pawl.store.counts()).lanes.ready).toBe(1)
    expect(faults).toEqual([])
  })

  it('pauses a queue that no worker serves, and resumes it', async () => {
    const { charge } = shop()
    const { pawl, server } = await serving({ jobs: [charge] })
    await pawl.enqueue(charge, { order: 'o-7', cents: 1 })
    const { page, faults } = await visit(chromium, `${server.url}/queues`)
    await page.locator('td .state', { hasText: 'no live worker' }).waitFor()
    for (const [verb, seen] of [
      ['Pause', 'paused by ada'],
      ['Resume', 'no live worker'],
    ] as const) {
      await page.getByRole('button', { name: `${verb} billing` }).click()
      await page.getByLabel('Your name').fill('ada')
      await page.getByLabel('Reason').fill('INC-4')
      await page.getByRole('button', { name: verb, exact: true }).click()
      await page.locator('td .state', { hasText: seen }).waitFor()
    }
    await page.getByRole('link', { name: 'billing' }).click()
    await expect.poll(() => page.getByRole('cell', { name: 'INC-4' }).count()).toBe(2)
    expect(faults).toEqual([])
  })

  it('sees no actions with the role read, and the server refuses them', async () => {
    const { charge } = shop()
    const { pawl, server } = await serving(
      { jobs: [charge] },
      { host: '0.0.0.0', authorize: () => undefined },
    )
    const { token } = await createToken(pawl, { name: 'eve', roles: ['read'], createdBy: 'test' })
    const { id } = await pawl.enqueue(charge, { order: 'o-7', cents: 1 })
    const url = server.url.replace('0.0.0.0', '127.0.0.1')
    const { page, faults } = await visit(chromium, `${url}/jobs/${id}`)
    await page.getByLabel('Token').fill(token)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.locator('.top .state', { hasText: 'queued' }).waitFor()
    expect(await page.locator('.top .right button').count()).toBe(0)
    const status = await page.evaluate(
      ([address = '', bearer]) =>
        fetch(address, {
          method: 'POST',
          headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
          body: JSON.stringify({ reason: 'x' }),
        }).then((response) => response.status),
      [`${url}/api/v1/jobs/${id}/cancel`, token],
    )
    expect(status).toBe(403)
    expect(faults).toEqual([])
  })

  it('pauses updates, and then the page asks for nothing', async () => {
    const { charge } = shop()
    const { pawl, server } = await serving({ jobs: [charge] })
    const { page } = await visit(chromium, `${server.url}/jobs`)
    await page.getByText('No jobs yet').waitFor()
    await page.getByText('live', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Pause updates' }).click()
    await page.getByText('paused', { exact: true }).waitFor()
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    await pawl.enqueue(charge, { order: 'o-7', cents: 1 })
    // Longer than the pauses between the requests of a page that is not paused.
    await page.waitForTimeout(6000)
    expect(asked).toEqual([])
    await page.getByRole('button', { name: 'Resume updates' }).click()
    await page.getByRole('link', { name: 'charge' }).waitFor()
  })

  it('learns the next step from each page without content', async () => {
    const { server } = await serving({ jobs: [] })
    const { page } = await visit(chromium, server.url)
    for (const [path, line] of [
      ['/queues', 'pawl job enqueue'],
      ['/limits', 'pawl limit set'],
      ['/schedules', 'defineSchedule'],
      ['/workers', 'pawl work'],
    ] as const) {
      await page.goto(`${server.url}${path}`)
      await page.locator('.empty .cli', { hasText: line }).waitFor()
      expect(await violationsOf(page), path).toEqual([])
    }
  })

  it.each(['light', 'dark'] as const)(
    'meets no serious barrier on any page: %s',
    async (theme) => {
      const { charge } = shop()
      const { sync, release } = tenants()
      const hourly = defineSchedule({
        ...{ name: 'hourly', job: charge, input: { order: 'o-1', cents: 1 }, every: '1h' },
      })
      const { pawl, server } = await serving({ jobs: [charge, sync], schedules: [hourly] })
      const worker = await pawl.work()
      const { id } = await pawl.enqueue(charge, { order: 'o-7', cents: 1 })
      await expect.poll(async () => (await pawl.store.get(id))?.state).toBe('quarantined')
      for (let i = 0; i < 3; i++) await pawl.enqueue(sync, { tenant: 'acme', page: i })
      await expect.poll(async () => (await pawl.store.counts()).lanes.blocked).toBe(2)
      await pawl.operator({ name: 'ada', reason: 'INC-4' }).pauseQueue('billing')
      const { page } = await visit(chromium, server.url, { colorScheme: theme })
      const paths = [
        '/',
        '/jobs',
        `/jobs/${id}`,
        `/jobs/${id}?at=2&tab=errors`,
        '/queues',
        '/queues/billing',
        '/limits',
        '/limits/tenant',
        '/limits/tenant?key=acme',
        '/schedules',
        '/schedules/hourly',
        '/workers',
        '/machines',
        '/doctor',
        '/runs',
        '/audit',
        '/audit?trigger=claim&from=1h',
      ]
      for (const path of [...paths, '/jobs?state=x', '/nothing']) {
        await page.goto(`${server.url}${path}`)
        await page.locator('main h1, main h3').first().waitFor()
        await page.locator('.graph, table, .empty, [role=alert]').first().waitFor()
        expect(await violationsOf(page), path).toEqual([])
      }
      await page.goto(`${server.url}/jobs/${id}`)
      await page.getByRole('button', { name: 'Redrive…' }).click()
      await page.getByText('would change').waitFor()
      expect(await violationsOf(page), 'dialog').toEqual([])
      release()
      await worker.stop()
    },
    300_000,
  )
})
