/**
 * JSON Schemas of requests and answers, written with a few functions. Every object is closed: an
 * unknown field is refused in requests, and found by tests in answers.
 */
import { NAME_MAX, NOTE_MAX } from '../core/checks.ts'
import { AHEAD_MAX_MS, type Priority } from '../core/job/priority.ts'

/** A JSON Schema, draft 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>

type Fields = Readonly<Record<string, JsonSchema>>

export const text = (description?: string, more: JsonSchema = {}): JsonSchema => ({
  type: 'string',
  ...(description !== undefined && { description }),
  ...more,
})

/** A name of the caller's choice. The engine refuses control characters and lone surrogates. */
export const name = (description?: string): JsonSchema =>
  text(description, { minLength: 1, maxLength: NAME_MAX })

export const note = (description?: string): JsonSchema =>
  text(description, { minLength: 1, maxLength: NOTE_MAX })

export const whole = (description?: string, more: JsonSchema = {}): JsonSchema => ({
  type: 'integer',
  ...(description !== undefined && { description }),
  minimum: Number.MIN_SAFE_INTEGER,
  maximum: Number.MAX_SAFE_INTEGER,
  ...more,
})

/** A number from `min` to `max`. */
export const count = (description: string, min: number, max: number): JsonSchema =>
  whole(description, { minimum: min, maximum: max })

/** A time in milliseconds since the epoch. */
export const time = (description = 'milliseconds since the epoch'): JsonSchema =>
  whole(description, { minimum: 0 })

export const flag = (description?: string): JsonSchema => ({
  type: 'boolean',
  ...(description !== undefined && { description }),
})

export const oneOf = (words: readonly string[], description?: string): JsonSchema => ({
  type: 'string',
  enum: [...words],
  ...(description !== undefined && { description }),
})

export const list = (items: JsonSchema, more: JsonSchema = {}): JsonSchema => ({
  type: 'array',
  items,
  ...more,
})

export const nullable = (schema: JsonSchema): JsonSchema => ({ anyOf: [schema, { type: 'null' }] })

/** A number, or a time by which the job is ahead of others. */
export const priority = (description: string): JsonSchema => ({
  description,
  anyOf: [
    count('smaller numbers first', -PRIORITY_MAX, PRIORITY_MAX),
    record({ aheadMs: count('as if it were due so much earlier', 0, AHEAD_MAX_MS) }),
  ],
})
const PRIORITY_MAX = 32_767

/** The priority of a request as the library takes it. */
export function priorityIn(given: number | { readonly aheadMs: number }): Priority {
  return typeof given === 'number' ? given : { ahead: given.aheadMs }
}

/** Any JSON value. */
export const anything = (description?: string): JsonSchema =>
  description === undefined ? {} : { description }

/** An object with exactly these fields; those of `optional` may be absent. */
export const record = (required: Fields, optional: Fields = {}): JsonSchema => ({
  type: 'object',
  properties: { ...required, ...optional },
  required: Object.keys(required),
  additionalProperties: false,
})

/** An object with any names. */
export const map = (values: JsonSchema): JsonSchema => ({
  type: 'object',
  additionalProperties: values,
})

/** An object whose fields belong to another format, such as the events of runs. */
export const open = (description: string): JsonSchema => ({ type: 'object', description })

/** A component of the document. */
export const ref = (component: string): JsonSchema => ({
  $ref: `#/components/schemas/${component}`,
})

/** A page of a list. */
export const page = (items: JsonSchema, more: Fields = {}): JsonSchema =>
  record(
    {
      items: list(items),
      nextCursor: nullable(text('pass it as `after`; null at the end of the list')),
    },
    more,
  )
