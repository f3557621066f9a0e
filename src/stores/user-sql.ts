/**
 * SQL statements of the user, and the values that they carry. The same values can be passed on both
 * databases:
 *
 *   value               SQLite                          PostgreSQL
 *   string, null        TEXT, NULL                      as they are
 *   number              REAL or INTEGER                 as it is; NaN and infinities are refused
 *   boolean             1 or 0                          boolean
 *   bigint              INTEGER of 64 bits              its digits, for bigint and numeric
 *   Date                TEXT, ISO 8601 in UTC           the same text, for timestamptz
 *   Uint8Array          BLOB                            bytea
 *   array               TEXT, JSON for json_each        array
 *
 * The tag `sql` keeps texts and values apart until the store is known, and then writes the
 * placeholders of its database. So neither a value nor a question mark in a text can be mistaken
 * for something else. A plain text has the placeholders of its database: `?` or `$1`.
 */
import { CommandInvalid } from '../core/errors.ts'
import { placeholdersIn } from './sql-statements.ts'

/** A value that a statement can carry. */
export type SqlValue = string | number | boolean | null | bigint | Date | Uint8Array | SqlArray

/** A list of values. */
type SqlArray = readonly SqlValue[]

/** Known to all copies of this module. */
const BRAND = Symbol.for('pawl.sql')

/** A statement with its values, made by `sql`. */
export interface SqlStatement {
  /** The parts of the text between the values. */
  readonly texts: readonly string[]
  readonly values: readonly SqlValue[]
}

/** Which placeholders and values a database has. */
export type Dialect = 'sqlite' | 'postgres'

/** The statement as the driver takes it. */
export interface BoundStatement {
  readonly text: string
  readonly values: readonly unknown[]
}

/**
 * A statement for `tx.query` on both databases. Its values never become part of the text. A value
 * that is a statement itself is inserted as a part:
 *
 *     const only = sql`WHERE paid = ${true}`
 *     await tx.query(sql`SELECT id FROM invoices ${only} AND due < ${new Date()}`)
 */
export function sql(
  texts: TemplateStringsArray,
  ...values: readonly (SqlValue | SqlStatement)[]
): SqlStatement {
  if (!Array.isArray(texts) || !Array.isArray(texts.raw)) {
    throw new CommandInvalid('sql', 'must be used as a tag: sql`SELECT …`')
  }
  const flat = { texts: [texts[0] as string], values: [] as SqlValue[] }
  const append = (text: string) => {
    flat.texts[flat.texts.length - 1] += text
  }
  for (const [i, value] of values.entries()) {
    const next = texts[i + 1] as string
    if (isStatement(value)) {
      append(value.texts[0] as string)
      flat.texts.push(...value.texts.slice(1))
      flat.values.push(...value.values)
      append(next)
    } else {
      flat.values.push(value)
      flat.texts.push(next)
    }
  }
  return Object.freeze(Object.assign(flat, { [BRAND]: true }))
}

function isStatement(value: unknown): value is SqlStatement {
  return typeof value === 'object' && value !== null && BRAND in value
}

/** The text of a statement, with the placeholders of a database. */
export function textOf(statement: string | SqlStatement, dialect: Dialect): string {
  if (!isStatement(statement)) return statement
  const holder = (i: number) => (dialect === 'sqlite' ? '?' : `$${i}`)
  return statement.texts.reduce((before, next, i) => `${before}${holder(i)}${next}`)
}

/** Checks a statement and its values, and converts them. Throws `CommandInvalid`. */
export function bindStatement(
  statement: string | SqlStatement,
  values: readonly SqlValue[] | undefined,
  dialect: Dialect,
): BoundStatement {
  if (isStatement(statement)) {
    if (values !== undefined) {
      throw new CommandInvalid('values', 'must not be passed with a statement of the tag sql')
    }
    return { text: textOf(statement, dialect), values: convertAll(statement.values, dialect) }
  }
  if (typeof statement !== 'string') {
    throw new CommandInvalid('sql', 'must be a text, or a statement of the tag sql')
  }
  if (values !== undefined && !Array.isArray(values)) {
    throw new CommandInvalid('values', 'must be a list')
  }
  const given = values ?? []
  if (dialect === 'sqlite') assertPlaceholders(statement, given.length)
  return { text: statement, values: convertAll(given, dialect) }
}

/** SQLite would use NULL for a value that is missing. PostgreSQL refuses the statement itself. */
function assertPlaceholders(text: string, given: number): void {
  const { anonymous, others } = placeholdersIn(text)
  if (others.length > 0 && given > 0) {
    const [first] = others
    throw new CommandInvalid('sql', `has the placeholder ${first}; use ? or the tag sql`)
  }
  if (others.length === 0 && anonymous !== given) {
    throw new CommandInvalid('values', `must be ${anonymous}, one for each placeholder`)
  }
}

function convertAll(values: readonly SqlValue[], dialect: Dialect): unknown[] {
  return values.map((value, i) => convert(value, dialect, `values[${i}]`))
}

const INT64 = 2n ** 63n

function convert(value: SqlValue, dialect: Dialect, path: string): unknown {
  switch (typeof value) {
    case 'string':
      return value
    case 'boolean':
      return dialect === 'sqlite' ? Number(value) : value
    case 'number':
      if (Number.isFinite(value)) return value
      throw new CommandInvalid(path, 'must be a finite number')
    case 'bigint':
      if (dialect === 'postgres') return String(value)
      if (value >= -INT64 && value < INT64) return value
      throw new CommandInvalid(path, 'must fit into 64 bits on SQLite; pass it as a text')
    case 'object':
      return convertObject(value, dialect, path)
    default:
      throw refused(path, `a value of type ${typeof value}`)
  }
}

function convertObject(value: object | null, dialect: Dialect, path: string): unknown {
  if (value === null) return null
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) throw new CommandInvalid(path, 'must be a valid Date')
    return value.toISOString()
  }
  if (value instanceof Uint8Array) return dialect === 'sqlite' ? value : toBuffer(value)
  if (!Array.isArray(value)) throw refused(path, 'an object; for JSON pass JSON.stringify(value)')
  if (dialect === 'postgres') {
    return value.map((item: SqlValue, i) => convert(item, dialect, `${path}[${i}]`))
  }
  return JSON.stringify(value.map((item: SqlValue, i) => jsonOf(item, `${path}[${i}]`)))
}

/** `pg` sends views of other kinds as JSON. */
function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

/** An element of a list on SQLite: what `json_each` returns is what a single value would be. */
function jsonOf(value: SqlValue, path: string): unknown {
  if (value instanceof Uint8Array) throw refused(path, 'bytes in a list on SQLite')
  if (Array.isArray(value)) return value.map((item: SqlValue, i) => jsonOf(item, `${path}[${i}]`))
  const converted = convert(value, 'sqlite', path)
  if (typeof converted !== 'bigint') return converted
  if (Number.isSafeInteger(Number(converted))) return Number(converted)
  throw refused(path, 'a bigint in a list on SQLite that is larger than 2^53')
}

function refused(path: string, what: string): CommandInvalid {
  return new CommandInvalid(
    path,
    `must be a text, number, boolean, null, bigint, Date, Uint8Array or list, not ${what}`,
  )
}
