/**
 * Compares a file with what the migrations made: its tables, indexes and triggers, as SQLite stores
 * their texts. The expected texts are read from an empty database to which the same migrations were
 * applied. Objects that users added are left alone.
 */

import type { Drift } from '../contract/examination.ts'
import { NotRestorable } from '../errors.ts'
import { Connection } from './connect.ts'
import { loadDriver } from './driver.ts'
import { migrate } from './migrate.ts'

interface MasterRow {
  readonly type: 'table' | 'index' | 'trigger' | 'view'
  readonly name: string
  readonly tbl_name: string
  readonly sql: string
}

const SELECT_OBJECTS = `
  SELECT type, name, tbl_name, sql FROM sqlite_master
  WHERE sql IS NOT NULL AND substr(name, 1, 5) = 'pawl_'`

const SELECT_COLUMNS = 'SELECT name FROM pragma_table_info(?)'

let manifest: readonly MasterRow[] | undefined
const expectedColumns = new Map<string, readonly string[]>()

/** The expected objects; made once in a process. */
function expectedObjects(): readonly MasterRow[] {
  if (manifest !== undefined) return manifest
  const { DatabaseSync } = loadDriver()
  const empty = new Connection(new DatabaseSync(':memory:'))
  migrate(empty, 0)
  manifest = empty.all<MasterRow>(SELECT_OBJECTS)
  for (const { name } of manifest.filter(({ type }) => type === 'table')) {
    const columns = empty.all<{ name: string }>(SELECT_COLUMNS, name)
    expectedColumns.set(
      name,
      columns.map((column) => column.name),
    )
  }
  empty.close()
  return manifest
}

/** Returns objects that differ or are missing. */
export function drift(connection: Connection): Drift[] {
  const found = new Map(connection.all<MasterRow>(SELECT_OBJECTS).map((row) => [row.name, row]))
  return expectedObjects().flatMap(({ type: kind, name, sql: expected }): Drift[] => {
    const own = found.get(name)
    if (own === undefined) return [{ kind, name, problem: 'missing', expected }]
    if (own.type === kind && isAsMade(plain(own.sql), plain(expected), kind)) return []
    return [{ kind, name, problem: 'different', expected, found: own.sql }]
  })
}

/**
 * Columns that a user added to a table are left alone. SQLite writes them after the existing
 * columns: the text is the same, except for something at the level of columns that begins with a
 * comma. Such a part cannot loosen a constraint.
 */
function isAsMade(found: string, expected: string, kind: Drift['kind']): boolean {
  if (found === expected) return true
  const added = found.length - expected.length
  if (kind !== 'table' || added <= 0) return false
  for (let at = 0; at < expected.length && found.startsWith(expected.slice(0, at)); at++) {
    const insertion = found.slice(at, at + added)
    const isWhole = found.slice(at + added) === expected.slice(at)
    const isColumn = insertion.startsWith(',') && depthOf(insertion) === 0
    if (isWhole && isColumn && depthOf(expected.slice(0, at)) === 1) return true
  }
  return false
}

/** How many brackets are open at the end of a text. */
function depthOf(text: string): number {
  return text.split('(').length - text.split(')').length
}

/** SQLite quotes a name when it renames a table. */
function plain(sql: string): string {
  return sql.replaceAll('"', '').replaceAll(/\s+/g, ' ')
}

const SELECT_KIND = 'SELECT type FROM sqlite_master WHERE name = ?'

/**
 * Restores one object; must be called inside a write transaction. The present object is read first,
 * because another process may have restored it already, and because a connection that does not read
 * the file uses the schema that it last knew.
 */
export function restore(connection: Connection, { kind, name, expected }: Drift): void {
  const known = expectedObjects().find((object) => object.name === name)
  if (known?.sql !== expected) throw new TypeError(`${name} is no object of this release`)
  const own = connection.get<{ type: string }>(SELECT_KIND, name)
  if (own !== undefined && kind === 'table') {
    rebuildTable(connection, known)
    return
  }
  if (own !== undefined) connection.database.exec(`DROP ${own.type} ${name}`)
  connection.database.exec(expected)
}

const SELECT_THEIRS = `
  SELECT sql FROM sqlite_master
  WHERE tbl_name = ? AND type <> 'table' AND sql IS NOT NULL AND substr(name, 1, 5) <> 'pawl_'`
const SEQUENCE = 'SELECT max(seq) AS seq FROM sqlite_sequence WHERE name = ?'

/**
 * SQLite cannot change the constraints of a table: its rows are moved out, and into a new one. The
 * table is not renamed, because triggers of other tables contain its name.
 */
function rebuildTable(connection: Connection, table: MasterRow): void {
  const { database } = connection
  const { name, sql } = table
  const aside = `${name}_rebuilt`
  const theirs = connection.all<{ sql: string }>(SELECT_THEIRS, name)
  const before = connection.all<{ name: string }>(SELECT_COLUMNS, name)
  assertOnlyOurs(table, before)
  const last = sequenceOf(connection, name)
  // Foreign keys that refer to this table are checked when it is full again.
  database.exec('PRAGMA defer_foreign_keys = ON')
  database.exec(`CREATE TABLE ${aside} AS SELECT * FROM ${name}`)
  database.exec(`DROP TABLE ${name}`)
  database.exec(sql)
  const columns = connection
    .all<{ name: string }>(SELECT_COLUMNS, name)
    .map((column) => column.name)
    .filter((column) => before.some((own) => own.name === column))
    .join(', ')
  database.exec(`INSERT INTO ${name} (${columns}) SELECT ${columns} FROM ${aside}`)
  database.exec(`DROP TABLE ${aside}`)
  if (last !== null) keepSequence(connection, name, last)
  for (const own of expectedObjects()) {
    if (own.tbl_name === name && own.type !== 'table') database.exec(own.sql)
  }
  for (const own of theirs) database.exec(own.sql)
}

/** Columns of the user would be lost with the table. */
function assertOnlyOurs({ name, sql }: MasterRow, columns: readonly { name: string }[]): void {
  const own = expectedColumns.get(name) ?? []
  if (columns.every((column) => own.includes(column.name))) return
  throw new NotRestorable(name, 'different', sql)
}

function sequenceOf(connection: Connection, name: string): number | null {
  return connection.get<{ seq: number | null }>(SEQUENCE, name)?.seq ?? null
}

/** A number that was used is never used again, also if its row is gone. */
function keepSequence(connection: Connection, name: string, last: number): void {
  const seq = Math.max(last, sequenceOf(connection, name) ?? 0)
  connection.run('DELETE FROM sqlite_sequence WHERE name = ?', name)
  connection.run('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)', name, seq)
}
