// A fresh folder for each test, removed when the test has ended, also when it failed.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** A new empty folder that lasts as long as the test. */
export function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
