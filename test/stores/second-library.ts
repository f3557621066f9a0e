// A second copy of SQLite in this process: a copy of the package, whose binary is loaded apart.
import { execFileSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { SqliteDriver } from '../../src/stores/sqlite/driver.ts'

const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url))

/** Copies the package into a folder, and loads it from there. */
export function loadSecondLibrary(folder: string): SqliteDriver {
  for (const name of ['@photostructure/sqlite', 'node-gyp-build']) {
    cpSync(join(MODULES, name), join(folder, 'node_modules', name), { recursive: true })
  }
  return createRequire(join(folder, 'index.js'))('@photostructure/sqlite') as SqliteDriver
}

const COUNT = `
  const { createRequire } = require('node:module')
  const [path, table, modules] = process.argv.slice(1)
  const sqlite = process.getBuiltinModule('node:sqlite')
    ?? createRequire(modules + '/index.js')('@photostructure/sqlite')
  const database = new sqlite.DatabaseSync(path)
  console.log(database.prepare('SELECT count(*) AS n FROM ' + table).get().n)
  database.close()`

/** How many rows of a table another process sees. */
export function countElsewhere(path: string, table: string): number {
  const values = ['-e', COUNT, path, table, MODULES]
  return Number(execFileSync(process.execPath, values, { encoding: 'utf8' }))
}
