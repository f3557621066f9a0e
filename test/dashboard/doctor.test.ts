// Planted damage on the page of the doctor: find it, plan, apply, and the store is clean.
import { defineJob } from 'pawl'
import { serveHttp } from 'pawl/http'
import { createTestPawl } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { browserOfFile, violationsOf, visit } from './bench.ts'

const browser = await browserOfFile()

describe.runIf(browser)('the page of the doctor', () => {
  const chromium = browser as NonNullable<typeof browser>

  it('finds planted damage, plans, applies, and is clean', async () => {
    const greet = defineJob({ name: 'greet', run: () => 'hello' })
    const test = await createTestPawl({ jobs: [greet] })
    const server = await serveHttp({ pawl: test.pawl })
    onTestFinished(async () => {
      await server.close()
      await test.close()
    })
    const { id } = await test.pawl.enqueue(greet, {})
    const { page, faults } = await visit(chromium, `${server.url}/doctor`)
    await page.getByRole('button', { name: 'Check everything' }).click()
    await page.locator('.top .state', { hasText: 'healthy' }).waitFor()
    const held = page.getByRole('row', { name: /^P9 / })
    await held.getByText('holds').waitFor()

    await test.query(`UPDATE pawl_jobs SET priority = 77 WHERE id = '${id}'`)
    await page.getByRole('button', { name: 'Check everything' }).click()
    await page.locator('.top .state', { hasText: 'damaged' }).waitFor()
    await held.getByText('broken').waitFor()
    await page
      .getByRole('cell', { name: new RegExp(id) })
      .first()
      .waitFor()
    await page.getByRole('button', { name: 'Plan a repair' }).click()
    await page.getByRole('cell', { name: 'priority, seq' }).waitFor()
    expect(await violationsOf(page)).toEqual([])
    expect((await test.store.get(id))?.priority).toBe(77)

    await page.getByRole('button', { name: 'Apply 1 repair…' }).click()
    await page.getByLabel('Your name').fill('ada')
    await page.getByLabel('Reason').fill('INC-9')
    await page.getByRole('button', { name: 'Apply', exact: true }).click()
    await page.getByText('The store is healthy.').waitFor()
    await page.locator('.top .state', { hasText: 'healthy' }).waitFor()
    await held.getByText('holds').waitFor()
    expect((await test.store.get(id))?.priority).not.toBe(77)
    await page.goto(`${server.url}/audit?trigger=repair`)
    await page.getByRole('cell', { name: 'ada' }).waitFor()
    expect(faults).toEqual([])
  })
})
