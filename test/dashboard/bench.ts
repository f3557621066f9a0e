// The dashboard in a real browser: a store in memory, a server, and a page whose every request,
// error and violation of the policy is recorded.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createPawl, type Pawl, type PawlOptions } from 'pawl'
import { type HttpServer, type HttpServerOptions, serveHttp } from 'pawl/http'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, onTestFinished } from 'vitest'
import { startBrowser } from '../../scripts/browser.ts'

/** The browser of the file; undefined, with a loud message, if this machine cannot start one. */
export async function browserOfFile(): Promise<Browser | undefined> {
  try {
    const browser = await startBrowser()
    afterAll(() => browser.close())
    return browser
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    process.stderr.write(`\nSKIPPED: no browser on this machine, so nothing was tested: ${why}\n`)
    return undefined
  }
}

export interface Visit {
  readonly page: Page
  /** Errors of the page, and what its policy has refused. */
  readonly faults: string[]
  /** Requests to other hosts. */
  readonly foreign: string[]
}

/** Opens a page, and records what must not happen. */
export async function visit(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({
    locale: 'en-US',
    viewport: { width: 1280, height: 900 },
    ...options,
  })
  onTestFinished(() => context.close())
  const page = await context.newPage()
  const faults: string[] = []
  const foreign: string[] = []
  page.on('pageerror', (error) => faults.push(`${error.stack}`))
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('console', (message) => {
    if (/Content Security Policy|Trusted/i.test(message.text())) faults.push(message.text())
  })
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url())
    if (protocol !== 'blob:' && origin !== new URL(url).origin) foreign.push(request.url())
  })
  await page.goto(url)
  return { page, faults, foreign }
}

/** A store in memory with a server. */
export async function serving(
  options: Omit<PawlOptions, 'store'>,
  http: Omit<HttpServerOptions, 'pawl'> = {},
): Promise<{ pawl: Pawl; server: HttpServer }> {
  const pawl = await createPawl({ ...options, store: 'sqlite::memory:' })
  const server = await serveHttp({ pawl, ...http })
  onTestFinished(async () => {
    await server.close()
    await pawl.close()
  })
  return { pawl, server }
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core'), 'utf8')

interface AxeResult {
  readonly violations: readonly { id: string; impact: string; nodes: { html: string }[] }[]
}

/** The serious violations of a page, each with its first place. */
export async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  const { violations } = (await page.evaluate('axe.run(document)')) as AxeResult
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`)
}
