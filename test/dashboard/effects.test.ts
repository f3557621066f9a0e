// Effects and stalled jobs on the dashboard: what waits for a person is found and sent on.
import { defineJob, typed } from 'pawl'
import { serveHttp } from 'pawl/http'
import { createTestPawl } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { browserOfFile, violationsOf, visit } from './bench.ts'
import { HOSTILE } from './hostile-texts.ts'

const browser = await browserOfFile()

/** Mail that is not delivered while the relay is down, and a job that only a person recovers. */
async function servingMail(names: readonly string[] = []) {
  const relay = { isDown: true, sent: [] as string[] }
  const order = defineJob({
    name: 'order',
    input: typed<{ to: string }>(),
    run: ({ input, commit }) => commit((tx) => tx.effect('mail', { to: input.to })),
    effects: {
      mail: {
        retry: { max: 1, delay: '1s' },
        deliver: ({ payload: { to } }: { payload: { to: string } }) => {
          if (relay.isDown) throw new Error(`The relay bounces ${to}`)
          relay.sent.push(to)
        },
      },
    },
  })
  const careful = defineJob({
    name: 'careful',
    recovery: 'operator',
    input: typed<null>(),
    run: () => 'done',
  })
  const test = await createTestPawl({ jobs: [order, careful] })
  onTestFinished(() => test.close())
  for (const to of ['ada@example.org', 'ben@example.org', ...names]) {
    await test.pawl.enqueue(order, { to })
  }
  await test.fastForward()
  const server = await serveHttp({ pawl: test.pawl })
  onTestFinished(() => server.close())
  return { test, server, relay, careful }
}

describe.runIf(browser)('what waits for a person', () => {
  const chromium = browser as NonNullable<typeof browser>

  it('parked effects are found from the overview and delivered again', async () => {
    const { test, server, relay } = await servingMail()
    const { page, faults, foreign } = await visit(chromium, server.url)
    await page.getByRole('link', { name: /2 parked effects/ }).click()
    await page.locator('main h1', { hasText: 'Effects' }).waitFor()
    await page.getByText('The relay bounces ada@example.org').waitFor()
    expect(await page.locator('tbody tr').count()).toBe(2)
    expect(await page.locator('.stack > .cli code').textContent()).toBe(
      'pawl effect list --state=parked',
    )

    // One is chosen; the other stays.
    relay.isDown = false
    const row = page.locator('tbody tr', { hasText: 'ben@example.org' })
    await row.getByRole('checkbox').check()
    await page.getByRole('button', { name: 'Deliver 1 again…' }).click()
    await page.locator('dialog .notice', { hasText: '1 effect of 1 would be due now.' }).waitFor()
    await page.getByLabel('Your name').fill('ada')
    await page.getByLabel('Reason').fill('the relay is back')
    await page.getByRole('button', { name: 'Deliver again' }).click()
    await page.getByText('Due now: 1 effect.').waitFor()
    await test.drain()
    expect(relay.sent).toEqual(['ben@example.org'])
    await page.getByRole('link', { name: 'Delivered' }).click()
    await page.locator('tbody tr', { hasText: 'delivered' }).waitFor()

    // All that match.
    await page.getByRole('link', { name: 'Parked', exact: true }).click()
    await page.getByRole('button', { name: 'Deliver all matching again…' }).click()
    expect(await page.locator('dialog .cli code').textContent()).toBe(
      'pawl effect retry --state=parked --limit 10000 --reason … --operator=ada',
    )
    await page.getByLabel('Reason').fill('the rest')
    await page.getByRole('button', { name: 'Deliver again' }).click()
    await page.getByText('Due now: 1 effect.').last().waitFor()
    await test.drain()
    expect(relay.sent).toEqual(['ben@example.org', 'ada@example.org'])
    await page.getByText('No parked effects').waitFor()
    expect([faults, foreign]).toEqual([[], []])
  })

  it('stalled jobs are filtered, and their recovery is approved', async () => {
    const { test, server, careful } = await servingMail()
    const { id } = await test.pawl.enqueue(careful, null)
    await test.store.claim({ worker: 'gone', limit: 1, leaseMs: 30_000, start: true })
    await test.advance('1m')
    await test.store.recover(10)
    await test.pawl.enqueue(careful, null, { delay: '1h' })
    const { page, faults } = await visit(chromium, server.url)
    await page.getByRole('link', { name: /1 stalled/ }).click()
    await page.getByText('pawl job list --stalled', { exact: true }).waitFor()
    await page.locator('tbody tr').first().waitFor()
    expect(await page.locator('tbody tr').count()).toBe(1)
    await page.getByLabel('Act on all matching jobs').selectOption('approve')
    await page.locator('dialog .notice', { hasText: '1 job of 1 would change' }).waitFor()
    await page.getByLabel('Your name').fill('ada')
    await page.getByLabel('Reason').fill('its worker is gone')
    await page.getByRole('button', { name: 'Approve recovery' }).click()
    await page.getByText('No job matches').waitFor()
    expect((await test.store.get(id))?.stalled).toBe(false)

    await page.goto(`${server.url}/jobs?stalled=perhaps`)
    await page.getByText('perhaps is not a choice').waitFor()
    expect(faults).toEqual([])
  })

  it.each(['light', 'dark'] as const)('has no serious barrier: %s', async (colorScheme) => {
    const { server } = await servingMail()
    const { page } = await visit(chromium, server.url, { colorScheme })
    for (const path of ['/effects', '/effects?state=delivered', '/jobs?stalled=yes']) {
      await page.goto(`${server.url}${path}`)
      await page.locator('main table, main .empty').first().waitFor()
      expect(await violationsOf(page), path).toEqual([])
    }
  })

  it('is shown as text if its payload or error is hostile, on a phone too', async () => {
    const { server } = await servingMail(HOSTILE)
    const { page, faults, foreign } = await visit(chromium, server.url)
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 844 })
      await page.goto(`${server.url}/effects`)
      await page.getByText('The relay bounces ada@example.org').waitFor()
      expect(await page.locator('tbody tr').count()).toBe(HOSTILE.length + 2)
      const root = 'document.documentElement'
      const over = await page.evaluate(`${root}.scrollWidth - ${root}.clientWidth`)
      expect(over, `at ${width}`).toBeLessThanOrEqual(0)
      expect(await page.evaluate('window.owned')).toBeUndefined()
    }
    for (const text of ['?', '<script>', '"><svg onload=window.owned=1>']) {
      const value = encodeURIComponent(text)
      await page.goto(`${server.url}/effects?state=${value}&type=${value}`)
      await page.getByText('No parked effects').waitFor()
      expect(await page.evaluate('window.owned')).toBeUndefined()
    }
    expect([faults, foreign]).toEqual([[], []])
  })
})
