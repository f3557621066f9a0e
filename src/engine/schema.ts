/**
 * Input schemas of any library that implements Standard Schema (Zod, Valibot, ArkType and others).
 * Inputs are checked when a job is enqueued, and again when it is claimed, because the code may
 * have changed in between. The store keeps the value as given; the handler receives the value that
 * the schema returned.
 */

import type { Storable } from './storable.ts'

/** The part of Standard Schema version 1 that Pawl uses. */
export interface Schema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => Checked<Output> | Promise<Checked<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

type Checked<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] }

interface Issue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** The type that callers pass. */
export type InputOf<S extends Schema> = NonNullable<S['~standard']['types']>['input']
/** The type that the handler receives. */
export type OutputOf<S extends Schema> = NonNullable<S['~standard']['types']>['output']

/** A type without a check at run time. */
export interface Typed<T> extends Schema<T, T> {
  readonly '~typed': true
}

/**
 * Returns a schema that checks nothing and only carries a type. A type with a part that cannot be
 * stored, such as a function, is not a schema, and the compiler names the part.
 */
export function typed<T>(): [T] extends [Storable<T>] ? Typed<T> : Storable<T> {
  const validate = (value: unknown) => ({ value: value as T })
  const schema: Typed<T> = {
    '~standard': { version: 1, vendor: 'pawl', validate },
    '~typed': true,
  }
  return schema as ReturnType<typeof typed<T>>
}

/** What a library with Standard JSON Schema adds. */
interface WithJsonSchema {
  readonly jsonSchema?: {
    readonly input: (options: { readonly target: string }) => Readonly<Record<string, unknown>>
  }
}

/** The JSON Schema of the values that callers pass; undefined if the library offers none. */
export function jsonSchemaOf(
  schema: Schema | undefined,
): Readonly<Record<string, unknown>> | undefined {
  const standard = schema?.['~standard'] as WithJsonSchema | undefined
  try {
    return standard?.jsonSchema?.input({ target: 'draft-2020-12' })
  } catch {
    // A part of the schema has no counterpart in JSON Schema.
    return undefined
  }
}

/** Whether a schema accepts every value as it is. */
export function acceptsAll(schema: Schema | undefined): schema is undefined | Typed<unknown> {
  return schema === undefined || '~typed' in schema
}

/** The result of `validate`. */
export type Validated =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly why: string }

/** Checks a value. A schema that throws rejects the value. */
export async function validate(schema: Schema | undefined, value: unknown): Promise<Validated> {
  if (schema === undefined) return { ok: true, value }
  try {
    const checked = await schema['~standard'].validate(value)
    if (checked.issues === undefined) return { ok: true, value: checked.value }
    return { ok: false, why: checked.issues.map(describe).join('; ') }
  } catch (error) {
    return { ok: false, why: `its schema threw ${String(error)}` }
  }
}

function describe({ message, path = [] }: Issue): string {
  const place = path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.')
  return place === '' ? message : `${place}: ${message}`
}
