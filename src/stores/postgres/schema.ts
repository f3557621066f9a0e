/**
 * Compares a schema with what the migrations made. The expected objects are in the manifest,
 * `specs/postgres/schema.sql`, which is generated and embedded (`manifest.ts`, `manifest-rest.ts`):
 * after its head one paragraph for each object, whose first line has its kind, its table and its
 * name, and the others the statement that makes it. Objects and columns that users added are left
 * alone.
 */

import type { Drift } from '../contract/examination.ts'
import { NotRestorable } from '../errors.ts'
import { type CatalogueObject, readCatalogue } from './catalogue.ts'
import type { OwnSession, Session } from './connect.ts'
import { TABLES } from './manifest.ts'
import { REST } from './manifest-rest.ts'
import { EXECUTIONS_VIEW } from './migrations/0015-deadlines.ts'

/** Indexes of large tables take long; writes to the table wait meanwhile. */
const RESTORE_MS = 600_000

let manifest: readonly CatalogueObject[] | undefined

/** What the migrations make. Read when it is first needed: only this store needs it. */
function expectedObjects(): readonly CatalogueObject[] {
  manifest ??= (TABLES + REST).trim().split('\n\n').slice(1).map(toObject)
  return manifest
}

function toObject(paragraph: string): CatalogueObject {
  const [head = '', ...lines] = paragraph.split('\n')
  const [, kind, ...names] = head.split(' ')
  return {
    kind: kind as CatalogueObject['kind'],
    name: names.pop() ?? '',
    table: names.pop() ?? '',
    definition: lines.join('\n'),
  }
}

/** Returns objects that differ or are missing; tables and functions come first. */
export async function drift(session: Session, schema: string): Promise<Drift[]> {
  const { ident, objects } = await readCatalogue(session, schema)
  const found = new Map(objects.map((object) => [keyOf(object), object.definition]))
  return expectedObjects().flatMap((object): Drift[] => {
    const { kind, name, definition } = object
    // The catalogue has bodies of functions as they were written, and does not normalise them.
    const expected = inSchema(definition, kind === 'function' ? schema : ident)
    const own = found.get(keyOf(object))
    if (own === undefined) return [{ kind, name, problem: 'missing', expected }]
    const isSame = kind === 'table' ? hasColumns(own, expected) : plain(own) === plain(expected)
    return isSame ? [] : [{ kind, name, problem: 'different', expected, found: own }]
  })
}

function keyOf({ kind, table, name }: CatalogueObject): string {
  return `${kind} ${table}.${name}`
}

function inSchema(definition: string, schema: string): string {
  return definition.replaceAll('@schema', () => schema)
}

/** The manifest breaks lines that the catalogue does not. */
function plain(definition: string): string {
  return definition.replaceAll(/\s+/g, ' ')
}

function hasColumns(own: string, expected: string): boolean {
  const columns = new Set(columnsOf(own))
  return columnsOf(expected).every((column) => columns.has(column))
}

/** The lines between the brackets. */
function columnsOf(definition: string): string[] {
  return definition
    .split('\n')
    .slice(1, -1)
    .map((line) => line.replace(/,$/, ''))
}

/**
 * Restores one object; must be called inside a transaction. The statements come from the manifest
 * and not from the caller. Can be repeated.
 */
export async function restore(
  session: OwnSession,
  schema: string,
  { kind, name, problem }: Drift,
): Promise<void> {
  const object = expectedObjects().find((own) => own.kind === kind && own.name === name)
  if (object === undefined) throw new TypeError(`${name} is no object of this release`)
  const made = kind === 'view' ? EXECUTIONS_VIEW : object.definition
  const definition = inSchema(made, schema)
  if (kind === 'table') throw new NotRestorable(name, problem, definition)
  await session.takeTime(RESTORE_MS)
  const statements = [...removalsOf(object, schema), definition, ...revocationsOf(definition)]
  await session.run(statements.join(';\n'))
}

/**
 * A new function may be called by every role. One that has the rights of its owner must not be;
 * grants to single roles stay if the function was replaced.
 */
function revocationsOf(definition: string): string[] {
  const signature = /FUNCTION (.*?)\sRETURNS\s.*?\sSECURITY\sDEFINER\s/s.exec(definition)?.[1]
  if (signature === undefined) return []
  const types = signature.replaceAll(/\sDEFAULT\s[^,)]+/g, '')
  return [`REVOKE EXECUTE ON FUNCTION ${types} FROM PUBLIC`]
}

/** How to remove an object before it is restored; a function is replaced without removal. */
function removalsOf({ kind, table, name, definition }: CatalogueObject, schema: string): string[] {
  const index = `DROP INDEX IF EXISTS ${schema}.${name}`
  switch (kind) {
    case 'trigger':
      return [`DROP TRIGGER IF EXISTS ${name} ON ${schema}.${table}`]
    case 'index':
      return [index]
    case 'view':
      return [`DROP VIEW IF EXISTS ${schema}.${name}`]
    case 'constraint': {
      const constraint = `ALTER TABLE ${schema}.${table} DROP CONSTRAINT IF EXISTS ${name}`
      // An index may have the name of the constraint that creates one.
      return / (PRIMARY KEY|UNIQUE) /.test(definition) ? [constraint, index] : [constraint]
    }
    default:
      return []
  }
}
