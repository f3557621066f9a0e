/**
 * `npm run screenshots`: pictures of every page in both themes and three widths, in
 * `.build/screenshots`. `--only TEXT` takes the pages whose names contain it.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { serveHttp } from 'pawl/http'
import type { Browser } from 'playwright-core'
import { startBrowser } from '../browser.ts'
import { makeDemo } from './demo.ts'
import { makeRuns } from './runs.ts'
import { type Shot, shotsOf } from './shots.ts'

const FOLDER = '.build/screenshots'
const WIDTHS = [390, 1024, 1440]
const THEMES = ['light', 'dark'] as const

const { values } = parseArgs({
  options: { only: { type: 'string' }, quick: { type: 'boolean', default: false } },
})
const demo = await makeDemo(Date.now())
const { test } = demo
const runs = await makeRuns(test)
await demo.work()
const server = await serveHttp({ pawl: test.pawl, runs })
mkdirSync(FOLDER, { recursive: true })
const shots = (await shotsOf(test)).filter(({ name }) => name.includes(values.only ?? ''))
const browser = await startBrowser()
try {
  for (const width of values.quick ? [1440] : WIDTHS) {
    for (const theme of THEMES) await take(browser, server.url, { width, theme, shots })
  }
} finally {
  await browser.close()
  await server.close()
  await runs.close()
  await demo.close()
}

interface Taken {
  readonly width: number
  readonly theme: (typeof THEMES)[number]
  readonly shots: readonly Shot[]
}

async function take(browser: Browser, url: string, { width, theme, shots }: Taken): Promise<void> {
  const context = await browser.newContext({
    viewport: { width, height: width < 500 ? 844 : 900 },
    colorScheme: theme,
    locale: 'en-US',
  })
  const page = await context.newPage()
  page.on('pageerror', (error) => console.error(`${error.stack}`))
  page.on('console', (message) => message.type() === 'error' && console.error(message.text()))
  page.on('response', (response) => response.status() >= 400 && console.error(response.url()))
  for (const { name, path, prepare } of shots) {
    await page.goto(`${url}${path}`)
    await page.waitForLoadState('load')
    await page.locator('main h1').first().waitFor()
    await page.waitForTimeout(700)
    await prepare?.(page)
    await page.screenshot({ path: join(FOLDER, `${name}-${theme}-${width}.png`), fullPage: true })
  }
  await context.close()
}
