/**
 * What all children share: their settings, how they open Pawl while its database may be away, how
 * they report what must not happen, and that they end with their parent.
 */
import { createPawl, type Logger, type Pawl, PawlError, type PawlOptions } from 'pawl'
import { type ChildSettings, type Said, sleep } from './settings.ts'

const OPENS_MAX = 20
const AGAIN_MS = 250
/** What a caller must be ready for while a database is away or held by somebody. */
const OUTAGES = new Set(['E_STORE_UNAVAILABLE', 'E_OUTCOME_UNKNOWN', 'E_STORE_BUSY'])

/** What this process was started with. */
export const settings = JSON.parse(process.argv[2] ?? '{}') as ChildSettings

process.on('disconnect', () => process.exit(0))

/** Tells the parent. */
export function say(said: Said): void {
  if (process.connected) process.send?.(said)
}

/** Whether an error is one of an outage, typed as promised (P16). */
function isOutage(error: unknown): boolean {
  return error instanceof PawlError && OUTAGES.has(error.code)
}

/** What no outage explains is told, and ends the process: somebody has to look at it. */
export function assertOutage(doing: string, error: unknown): void {
  if (isOutage(error)) return
  say({ kind: 'fatal', error: `${doing}: ${textOf(error)}` })
  throw error
}

/** Opens Pawl, again and again while its database is away. */
export async function openPatiently(options: Omit<PawlOptions, 'store'>): Promise<Pawl> {
  for (let tries = 1; ; tries++) {
    try {
      return await createPawl({ store: settings.store, logger, ...options })
    } catch (error) {
      assertOutage('open', error)
      if (tries === OPENS_MAX) throw error
      await sleep(AGAIN_MS)
    }
  }
}

const log =
  (level: string): Logger['warn'] =>
  (fields, msg) =>
    console.error(JSON.stringify({ at: new Date().toISOString(), level, msg, ...fields }, plain))

/** Errors have no fields that JSON would show. */
const plain = (_key: string, value: unknown) => (value instanceof Error ? textOf(value) : value)

const logger: Logger = { debug: () => {}, info: () => {}, warn: log('warn'), error: log('error') }

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
