/**
 * Whether a file still has what the migrations made: its tables, indexes and triggers, as SQLite
 * itself writes them down. What they should be is read off an empty database to which the same
 * migrations were applied. Objects that others have added are theirs.
 */
import type { Drift } from '../examination.ts'
import { Connection } from './connect.ts'
import { loadDriver } from './driver.ts'
import { migrate } from './migrate.ts'

interface MasterRow {
  readonly type: 'table' | 'index' | 'trigger'
  readonly name: string
  readonly tbl_name: string
  readonly sql: string
}

const SELECT_OBJECTS = `
  SELECT type, name, tbl_name, sql FROM sqlite_master
  WHERE sql IS NOT NULL AND substr(name, 1, 5) = 'pawl_'`

let manifest: readonly MasterRow[] | undefined

/** What a file that is up to date has; found out once in a process. */
function expectedObjects(): readonly MasterRow[] {
  if (manifest !== undefined) return manifest
  const { DatabaseSync } = loadDriver()
  const empty = new Connection(new DatabaseSync(':memory:'))
  migrate(empty, 0)
  manifest = empty.all<MasterRow>(SELECT_OBJECTS)
  empty.close()
  return manifest
}

/** What is not as it should be. */
export function drift(connection: Connection): Drift[] {
  const found = new Map(connection.all<MasterRow>(SELECT_OBJECTS).map((row) => [row.name, row]))
  return expectedObjects().flatMap(({ type: kind, name, sql: expected }): Drift[] => {
    const own = found.get(name)
    if (own === undefined) return [{ kind, name, problem: 'missing', expected }]
    if (own.type === kind && plain(own.sql) === plain(expected)) return []
    return [{ kind, name, problem: 'different', expected, found: own.sql }]
  })
}

/** SQLite quotes a name when it renames a table. */
function plain(sql: string): string {
  return sql.replaceAll('"', '').replaceAll(/\s+/g, ' ')
}

/** Makes one object as it should be; must be called inside a write transaction. */
export function restore(connection: Connection, { kind, name, problem, expected }: Drift): void {
  const known = expectedObjects().find((object) => object.name === name)
  if (known?.sql !== expected) throw new TypeError(`${name} is no object of this release`)
  if (kind === 'table' && problem === 'different') {
    rebuildTable(connection, known)
    return
  }
  if (problem === 'different') connection.database.exec(`DROP ${kind} ${name}`)
  connection.database.exec(expected)
}

const SEQUENCE = 'SELECT seq FROM sqlite_sequence WHERE name = ?'

/** SQLite cannot change the constraints of a table: its rows move into a new one. */
function rebuildTable(connection: Connection, { name, sql }: MasterRow): void {
  const { database } = connection
  const fresh = `${name}_rebuilt`
  const before = connection.all<{ name: string }>('SELECT name FROM pragma_table_info(?)', name)
  const last = connection.get<{ seq: number }>(SEQUENCE, name)?.seq
  const others = connection.all<MasterRow>(`${SELECT_OBJECTS} AND tbl_name = ?`, name)
  database.exec(sql.replace(name, fresh))
  const wanted = connection.all<{ name: string }>('SELECT name FROM pragma_table_info(?)', fresh)
  const columns = wanted
    .map((column) => column.name)
    .filter((column) => before.some((own) => own.name === column))
    .join(', ')
  database.exec(`INSERT INTO ${fresh} (${columns}) SELECT ${columns} FROM ${name}`)
  database.exec(`DROP TABLE ${name}`)
  database.exec(`ALTER TABLE ${fresh} RENAME TO ${name}`)
  if (last !== undefined) {
    connection.run('UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?', last, name)
  }
  for (const other of others) if (other.type !== 'table') database.exec(other.sql)
}
