/**
 * Whether a schema still has what the migrations made. What that is stands in the manifest,
 * `specs/postgres/schema.sql`, which is generated: after its head one paragraph for each object,
 * the first line of which says its kind, its table and its name, and the others the statement that
 * makes it. Objects that others have added are theirs, also further columns.
 */
import { readFileSync } from 'node:fs'
import { NotRestorable } from '../errors.ts'
import type { Drift } from '../examination.ts'
import { type CatalogueObject, readCatalogue } from './catalogue.ts'
import type { OwnSession, Session } from './connect.ts'
import { EXECUTIONS_VIEW } from './migrations/0008-timing.ts'

/** Indexes of large tables take their time; nobody else can write to the table meanwhile. */
const RESTORE_MS = 600_000

let manifest: readonly CatalogueObject[] | undefined

/** What the migrations make. Read when it is first needed: only this store needs it. */
function expectedObjects(): readonly CatalogueObject[] {
  // The sources and what is built from them stand at the same depth.
  const path = new URL('../../../specs/postgres/schema.sql', import.meta.url)
  manifest ??= readFileSync(path, 'utf8').trim().split('\n\n').slice(1).map(toObject)
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

/** What is not as it should be; tables and functions come before what needs them. */
export async function drift(session: Session, schema: string): Promise<Drift[]> {
  const { ident, objects } = await readCatalogue(session, schema)
  const found = new Map(objects.map((object) => [keyOf(object), object.definition]))
  return expectedObjects().flatMap((object): Drift[] => {
    const { kind, name, definition } = object
    // Bodies of functions stand there as they were written, and not as the catalogue spells them.
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

/** Lines are broken in the manifest where the catalogue breaks none. */
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
 * Makes one object as it should be, whatever stands in its place; must be called inside a
 * transaction. What is executed is the manifest's and not the caller's. May be done twice.
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
  await session.run([...removalsOf(object, schema), definition].join(';\n'))
}

/** How to remove what stands in the place of an object; a function is exchanged in place. */
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
      // An index alone may have taken the name of the constraint that brings one.
      return / (PRIMARY KEY|UNIQUE) /.test(definition) ? [constraint, index] : [constraint]
    }
    default:
      return []
  }
}
