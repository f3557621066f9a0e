// The inbox: a person answers what waits, and the job goes on.
import { approval, defineJob, defineSignal, typed } from 'pawl'
import { serveHttp } from 'pawl/http'
import { createTestPawl } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { fieldsOf, payloadOf } from '../../dashboard/inbox/form.ts'
import { browserOfFile, violationsOf, visit } from './bench.ts'
import { HOSTILE } from './hostile-texts.ts'

const browser = await browserOfFile()

const address = defineSignal({
  name: 'address',
  payload: typed<{ street: string; floor?: number; country: string; urgent: boolean }>(),
  jsonSchema: {
    type: 'object',
    required: ['street', 'country', 'urgent'],
    properties: {
      street: { type: 'string', title: 'Street' },
      floor: { type: 'integer', title: 'Floor' },
      country: { type: 'string', title: 'Country', enum: ['DE', 'AT'] },
      urgent: { type: 'boolean', title: 'Urgent' },
    },
  },
})
const free = defineSignal({ name: 'free', payload: typed<unknown>() })

const refund = defineJob({
  name: 'refund',
  input: typed<{ order: string }>(),
  signals: [approval],
  run: ({ waitForApproval }) => waitForApproval({ timeout: '7d' }),
})
const parcel = defineJob({
  name: 'parcel',
  signals: [address],
  run: ({ waitForSignal }) => waitForSignal(address),
})
const loose = defineJob({
  name: 'loose',
  signals: [free],
  run: ({ waitForSignal }) => waitForSignal(free),
})

async function open(jobs: readonly unknown[]) {
  const test = await createTestPawl({ jobs: jobs as never })
  onTestFinished(() => test.close())
  const server = await serveHttp({ pawl: test.pawl })
  onTestFinished(() => server.close())
  return { test, server, pawl: test.pawl }
}

describe.runIf(browser)('the inbox', () => {
  const chromium = browser as NonNullable<typeof browser>

  it('a person approves a job, and the job goes on', async () => {
    const { test, server, pawl } = await open([refund])
    const handle = await pawl.enqueue(refund, { order: 'o-1' }, { key: 'r-1' })
    await pawl.enqueue(refund, { order: 'o-2' })
    await test.drain()
    const { page, faults, foreign } = await visit(chromium, `${server.url}/inbox`)
    const row = page.locator('tbody tr', { hasText: 'r-1' })
    await row.getByRole('button', { name: 'Approve…' }).click()
    await page.locator('dialog .notice', { hasText: '1 job of 1 would change' }).waitFor()
    await page.getByLabel('Your name').fill('ada')
    await page.getByLabel('Reason').fill('the customer is right')
    expect(await page.locator('dialog .cli code').textContent()).toContain('pawl job approve')
    await page.getByRole('button', { name: 'Approve', exact: true }).click()
    await page.getByText('Approve: 1 job.').waitFor()
    await row.waitFor({ state: 'detached' })
    expect(await page.locator('tbody tr').count()).toBe(1)
    await test.drain()
    expect(await handle.result()).toMatchObject({
      output: { kind: 'approved', by: 'ada', note: 'the customer is right' },
    })
    await page.goto(`${server.url}/jobs/${handle.id}?tab=signals`)
    await page.getByText('received by #').waitFor()
    await page.getByText('the customer is right').first().waitFor()
    expect(await violationsOf(page)).toEqual([])
    await page.goto(`${server.url}/inbox`)
    await page.getByRole('button', { name: 'Reject…' }).click()
    await page.getByLabel('Reason').fill('no receipt')
    await page.getByRole('button', { name: 'Reject', exact: true }).click()
    await page.getByText('Nothing waits for you').waitFor()
    expect(await violationsOf(page)).toEqual([])
    expect([faults, foreign]).toEqual([[], []])
  }, 60_000)

  it('a signal is answered by a form of its schema, or as JSON', async () => {
    const { test, server, pawl } = await open([parcel, loose])
    const [shaped, any] = [await pawl.enqueue(parcel, null), await pawl.enqueue(loose, null)]
    await test.drain()
    const { page, faults } = await visit(chromium, `${server.url}/inbox`)
    await page
      .locator('tbody tr', { hasText: 'parcel' })
      .getByRole('button', { name: 'Answer…' })
      .click()
    const send = page.getByRole('button', { name: 'Send', exact: true })
    await page.getByLabel('Reason').fill('called the customer')
    expect(await send.isDisabled()).toBe(true)
    await page.getByLabel('Street').fill('Hauptstraße 1')
    await page.getByLabel('Floor').fill('two')
    await page.getByLabel('Country').selectOption('AT')
    await page.getByText('Floor must be a whole number.').waitFor()
    await page.getByLabel('Floor').fill('2')
    await page.getByLabel('Urgent').check()
    expect(await violationsOf(page)).toEqual([])
    await send.click()
    await page.getByText('The signal address is sent.').waitFor()
    await page
      .locator('tbody tr', { hasText: 'loose' })
      .getByRole('button', { name: 'Answer…' })
      .click()
    await page.getByLabel('Payload, as JSON').fill('{"a":')
    await page.getByText('The payload must be JSON.').waitFor()
    await page.getByLabel('Payload, as JSON').fill('{"a":[1]}')
    await page.getByLabel('Reason').fill('known')
    await send.click()
    await page.getByText('Nothing waits for you').waitFor()
    await test.drain()
    expect(await shaped.result()).toMatchObject({
      output: { payload: { street: 'Hauptstraße 1', floor: 2, country: 'AT', urgent: true } },
    })
    expect(await any.result()).toMatchObject({ output: { payload: { a: [1] } } })
    expect(faults).toEqual([])
  }, 60_000)

  it('hostile names, keys, inputs and schemas are shown as texts', async () => {
    const types = HOSTILE.map((text) => {
      const part = { type: 'string', title: text, description: text, enum: [text] }
      const jsonSchema = { type: 'object', properties: { [text]: part } }
      const signal = defineSignal({ name: text, payload: typed<unknown>(), jsonSchema })
      return defineJob({
        name: text,
        signals: [signal],
        run: async ({ waitForSignal }) => {
          await waitForSignal(signal)
        },
      })
    })
    const { test, server, pawl } = await open(types)
    for (const type of types) await pawl.enqueue(type, type.name, { key: `k ${type.name}` })
    await test.drain()
    const { page, faults, foreign } = await visit(chromium, `${server.url}/inbox`)
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 844 })
      await page.getByText(`${HOSTILE.length} jobs wait`).waitFor()
      const root = 'document.documentElement'
      const over = await page.evaluate(`${root}.scrollWidth - ${root}.clientWidth`)
      expect(over, `at ${width}`).toBeLessThanOrEqual(0)
    }
    for (let i = 0; i < HOSTILE.length; i++) {
      await page.getByRole('button', { name: 'Answer…' }).nth(i).click()
      await page.getByLabel('Reason').waitFor()
      await page.getByRole('button', { name: 'Close' }).click()
    }
    expect(await page.evaluate('window.owned')).toBeUndefined()
    expect([faults, foreign]).toEqual([[], []])
  }, 120_000)
})

it('a schema that is no flat object has no form, and a payload has only what was written', () => {
  const text = { type: 'string' }
  expect(fieldsOf(null)).toBeUndefined()
  expect(fieldsOf({ type: 'array', items: text })).toBeUndefined()
  expect(fieldsOf({ type: 'object', properties: { a: { type: 'object' } } })).toBeUndefined()
  expect(fieldsOf({ type: 'object', properties: { a: { enum: [1, 2] } } })).toBeUndefined()
  const fields = fieldsOf({
    type: 'object',
    required: ['a'],
    properties: { a: text, __proto__: text, constructor: text, n: { type: 'number' } },
  })
  expect(payloadOf(fields, {})).toEqual({ fault: 'a is missing.' })
  expect(JSON.stringify(payloadOf(fields, { a: 'x', constructor: 'y', n: '1.5' }))).toBe(
    '{"payload":{"a":"x","constructor":"y","n":1.5}}',
  )
  expect(payloadOf(fields, { a: 'x', n: 'NaN' })).toEqual({ fault: 'n must be a number.' })
  expect(payloadOf(undefined, { '': '' })).toEqual({ payload: null })
})
