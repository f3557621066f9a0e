// Files with an empty SQLite store. They are copied, because to apply all migrations takes three
// times as long as to open a store that has them. All copies have the same store id.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadDriver } from '../../src/stores/sqlite/driver.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { testEnvironment } from '../../src/testing/test-environment.ts'

let made: Promise<string> | undefined

/** Writes an empty store to this path, at the time at which a test environment begins. */
export async function writeStoreFile(path: string): Promise<void> {
  made ??= makeTemplate()
  copyFileSync(await made, path)
}

async function makeTemplate(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-template-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'jobs.db')
  await (await openSqliteStore({ path, environment: testEnvironment() })).close()
  const raw = new (loadDriver().DatabaseSync)(path)
  raw.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  raw.close()
  return path
}
