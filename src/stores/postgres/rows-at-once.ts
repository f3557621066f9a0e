/**
 * Writes several rows by one statement: each column is one parameter, an array in the notation of
 * PostgreSQL, and the statement unnests them. As texts, because drivers convert arrays differently,
 * and because the driver's own conversion is slower.
 *
 * Rows of one call are mostly alike: jobs of one type that are accepted at one moment, successes of
 * one claim. So what rows have in common is sent once, as a *shape*, and each row refers to its
 * shape. That saves most of the work on both sides.
 */
import type { Value } from '../rows.ts'

/** A column: its name, its type, and where its values come from. */
export type Column<T> = readonly [name: string, type: string, value: (row: T) => Value]

/** A column of the tables in `../columns.ts`, as this store takes it. */
export function columnOf<T>({
  name,
  type,
  value,
}: {
  readonly name: string
  readonly type: string
  readonly value: (row: T) => Value
}): Column<T> {
  return [name, type, value]
}

/** Only these characters differ between JSON and the notation of arrays. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\0-\x1f]/

/** An array in the notation of PostgreSQL. */
export function arrayOf(values: readonly Value[]): string {
  const plain = values.every((value) => typeof value !== 'string' || !CONTROL.test(value))
  // Between the brackets the two notations agree, and JSON.stringify is the fastest way.
  const list = plain ? JSON.stringify(values).slice(1, -1) : values.map(elementOf).join(',')
  return `{${list}}`
}

function elementOf(value: Value): string {
  if (typeof value !== 'string') return String(value)
  return `"${value.replace(/["\\]/g, '\\$&')}"`
}

/** The parameters of rows, column by column. */
export function arraysOf<T>(columns: readonly Column<T>[], rows: readonly T[]): string[] {
  return columns.map(([, , value]) => arrayOf(rows.map(value)))
}

/** Rows from parameters, the first of which has the number `first`; `place` counts them. */
export function unnest<T>(columns: readonly Column<T>[], first: number, alias: string): string {
  const arrays = columns.map(([, type], i) => `$${first + i}::${type}[]`)
  const names = `${namesOf(columns)}, place`
  return `unnest(${arrays.join(', ')}) WITH ORDINALITY AS ${alias} (${names})`
}

/** The names of columns, as a list. */
export function namesOf<T>(columns: readonly Column<T>[], prefix = ''): string {
  return columns.map(([name]) => `${prefix}${name}`).join(', ')
}

/** Rows of which some columns are their own, and the others those of a shape. */
export interface Shaped<T> {
  readonly own: readonly Column<T>[]
  readonly shape: readonly Column<T>[]
  /** Whether two rows have the same shape. May return false if it cannot decide cheaply. */
  readonly isAlike: (a: T, b: T) => boolean
}

/** The parameters of shaped rows. */
export function shapedArrays<T>(shaped: Shaped<T>, rows: readonly T[]): string[] {
  const shapes: T[] = []
  const places = rows.map((row) => {
    const last = shapes[shapes.length - 1]
    if (last === undefined || !shaped.isAlike(last, row)) shapes.push(row)
    return shapes.length
  })
  return [...arraysOf(shaped.own, rows), arrayOf(places), ...arraysOf(shaped.shape, shapes)]
}

/** Shaped rows from parameters, whole again and in their order. */
export function unnestShaped<T>({ own, shape }: Shaped<T>, first: number): string {
  const shapeOf: Column<T> = ['shape', 'int', () => null]
  return `
    SELECT ${namesOf(own, 'own.')}, ${namesOf(shape, 'shape.')}
    FROM ${unnest([...own, shapeOf], first, 'own')}
    JOIN ${unnest(shape, first + own.length + 1, 'shape')} ON shape.place = own.shape
    ORDER BY own.place`
}
