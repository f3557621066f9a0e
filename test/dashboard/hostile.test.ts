// Names, payloads and errors of hostile people, on every page: nothing executes, nothing is asked
// of another host, and the policy of the page has nothing to refuse.
import { defineJob, defineSchedule, typed } from 'pawl'
import { describe, expect, it } from 'vitest'
import { gateName } from '../../src/core/limits/keys.ts'
import { thorough } from '../support/extent.ts'
import { browserOfFile, serving, visit } from './bench.ts'
import { HOSTILE } from './hostile-texts.ts'

const browser = await browserOfFile()

describe.runIf(browser)('hostile texts', () => {
  const chromium = browser as NonNullable<typeof browser>

  it('are shown as texts on every page', async () => {
    const used = HOSTILE.filter((_, i) => i % thorough(3, 1) === 0)
    // The name of the type, its queue, the tag, the key, the input and the error are the text.
    const types = used.map((text) =>
      defineJob({
        name: text,
        queue: text,
        input: typed<Record<string, string>>(),
        retry: { max: 0 },
        run: () => {
          throw new Error(text, { cause: new Error(text) })
        },
      }),
    )
    const schedules = types.map((job) =>
      defineSchedule({ name: job.name, job, input: {}, every: '1h' }),
    )
    const { pawl, server } = await serving({ jobs: types, schedules })
    const operator = pawl.operator({ name: 'eve', reason: HOSTILE.join(' ') })
    for (const text of used) await operator.setLimit(gateName('queue', text), { concurrency: 5 })
    const ids: string[] = []
    for (const type of types) {
      const input = JSON.parse(`{${JSON.stringify(type.name)}:${JSON.stringify(type.name)}}`)
      const options = { tags: [type.name], key: `k ${type.name}` }
      ids.push((await pawl.enqueue(type, input, options)).id)
    }
    const worker = await pawl.work()
    await expect
      .poll(async () => (await pawl.store.counts()).lanes.parked, { timeout: 20_000 })
      .toBe(used.length)

    const { page, faults, foreign } = await visit(chromium, server.url)
    const owned = () => page.evaluate('window.owned')
    const look = async (path: string, seen: string) => {
      await page.goto(`${server.url}${path}`)
      await page.getByText(seen).first().waitFor()
      expect(await owned(), path).toBeUndefined()
    }
    await look('/', 'Where jobs are')
    await look('/jobs', 'quarantined')
    // Neither many nor long names make the page wider than the window, on a phone either.
    for (const [path, seen] of [
      ['/', 'Where jobs are'],
      ['/queues', 'pawl queue list'],
      ['/limits', 'pawl limit list'],
      ['/schedules', 'pawl schedule list'],
      ['/workers', 'pawl worker list'],
    ] as const) {
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 844 })
        await look(path, seen)
        const root = 'document.documentElement'
        const over = await page.evaluate(`${root}.scrollWidth - ${root}.clientWidth`)
        expect(over, `${path} at ${width}`).toBeLessThanOrEqual(0)
      }
    }
    await page.setViewportSize({ width: 1280, height: 844 })
    for (const [i, id] of ids.entries()) {
      const text = used[i] ?? ''
      await look(`/jobs/${id}?tab=errors`, 'caused by')
      expect(await page.locator('.thrown h3').first().textContent()).toContain(text)
      await look(`/jobs?queue=${encodeURIComponent(text)}`, 'quarantined')
      await look(
        `/jobs?error=${encodeURIComponent(text)}&after=${encodeURIComponent(text)}`,
        'Jobs',
      )
      await look(`/audit?operator=${encodeURIComponent(text)}`, 'No fact matches')
      await look(`/audit?jobId=${id}`, 'create')
      const name = encodeURIComponent(text)
      await look(`/queues/${name}`, 'Where its jobs are')
      await look(`/limits/${encodeURIComponent(gateName('queue', text))}`, 'Set…')
      await look(`/schedules/${name}`, 'What it makes')
      await look(`/${encodeURIComponent(text)}`, 'There is no such page')
    }
    expect([faults, foreign]).toEqual([[], []])
    await worker.stop()
  }, 300_000)
})
