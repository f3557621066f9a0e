/**
 * Starts Chromium for tests and pictures: the one that PAWL_CHROMIUM names, otherwise the one of
 * `@sparticuz/chromium`, which is installed with the other development dependencies.
 */
import { existsSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import chromium from '@sparticuz/chromium'
import { type Browser, chromium as driver } from 'playwright-core'

/** Not those of the package: they switch off the security that the tests are about. */
const ARGS = [
  '--no-sandbox',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

const TRIES_MAX = 60
const TRY_AGAIN_MS = 500

/** Starts the browser. Throws if this machine cannot run it. */
export async function startBrowser(): Promise<Browser> {
  const own = process.env.PAWL_CHROMIUM
  if (own !== undefined && !existsSync(own)) throw new Error(`PAWL_CHROMIUM: no file ${own}`)
  const executablePath = own ?? (await chromium.executablePath())
  for (let tries = 1; ; tries++) {
    try {
      return await driver.launch({ executablePath, args: ARGS })
    } catch (error) {
      // Another process unpacks the same file at this moment, and has not closed it yet.
      if (tries >= TRIES_MAX || !String(error).includes('ETXTBSY')) throw error
      await pause(TRY_AGAIN_MS)
    }
  }
}
