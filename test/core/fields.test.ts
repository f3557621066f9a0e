// Objects of options: every field is known and sound, or the object is refused.
import { describe, expect, it } from 'vitest'
import {
  abortSignal,
  callable,
  flag,
  listOf,
  name,
  reservedName,
  text,
} from '../../src/core/checks.ts'
import { checkDefinition, checkFields, type FieldChecks, unchecked } from '../../src/core/fields.ts'

interface Options {
  readonly dry?: boolean
  readonly label?: string
  readonly anything?: unknown
}
const CHECKS: FieldChecks<Options> = { dry: flag, label: name, anything: unchecked }
const RULES = { what: 'options' }

describe('the fields of an object', () => {
  it('may be absent, and are checked if they are there', () => {
    for (const good of [{}, { dry: true }, { label: 'x', anything: null }, { dry: undefined }]) {
      expect(() => checkFields(good as Options, CHECKS, RULES)).not.toThrow()
    }
    expect(() => checkFields({ dry: 'yes' } as never, CHECKS, RULES)).toThrow(
      '"dry" must be true or false',
    )
    expect(() => checkFields({ label: '' }, CHECKS, { what: 'filter', prefix: 'filter.' })).toThrow(
      '"filter.label" must not be empty',
    )
  })

  it('that are not known are refused by the names of those that are', () => {
    const inherited = Object.create({ dryrun: true }) as Options
    for (const bad of [{ dryrun: true }, { toString: 1 }, { constructor: 1 }, inherited]) {
      expect(() => checkFields(bad as Options, CHECKS, RULES)).toThrow(
        /is not known; known fields: dry, label, anything/,
      )
    }
    expect(() => checkFields({ a: 1 } as object, {}, RULES)).toThrow('there are no fields')
  })

  it('that are misspelt are refused with the name that was probably meant', () => {
    const known = { priority: unchecked, jobId: unchecked, queues: unchecked, retry: unchecked }
    const hintOf = (field: string) => {
      try {
        checkFields({ [field]: 1 }, known as never, RULES)
      } catch (error) {
        return (error as { hint: string }).hint
      }
      return undefined
    }
    expect(hintOf('prio')).toBe('Did you mean "priority"?')
    expect(hintOf('id')).toBe('Did you mean "jobId"?')
    expect(hintOf('Queue')).toBe('Did you mean "queues"?')
    expect(hintOf('qeue')).toBe('Remove "qeue", or use a known field.')
    expect(hintOf('qeues')).toBe('Did you mean "queues"?')
    expect(hintOf('pirority')).toBe('Did you mean "priority"?')
    expect(hintOf('retries')).toBe('Did you mean "retry"?')
    expect(hintOf('retty')).toBe('Did you mean "retry"?')
    expect(hintOf('x')).toBe('Remove "x", or use a known field.')
    expect(hintOf('y'.repeat(10_000))?.length).toBeLessThan(200)
  })

  it('that are undefined are refused where they would be conditions', () => {
    const strict = { what: 'filter', refuseUndefined: true }
    expect(() => checkFields({ label: undefined } as never, CHECKS, strict)).toThrow(
      '"label" must not be undefined',
    )
    expect(() => checkFields({ label: 'x' }, CHECKS, strict)).not.toThrow()
  })

  it('belong to an object, and to nothing else', () => {
    for (const bad of [null, undefined, 5, 'x', [1], () => {}]) {
      expect(() => checkFields(bad as never, CHECKS, RULES)).toThrow('"options" must be an object')
    }
  })

  it('of a definition are refused as part of it', () => {
    expect(() => checkDefinition('defineThing', { dry: true }, CHECKS)).not.toThrow()
    expect(() => checkDefinition('defineThing', { dr: true } as never, CHECKS)).toThrow(
      'Invalid definition of defineThing: "dr" is not known; known fields: dry, label, anything',
    )
  })

  it('of every kind say what they must be', () => {
    expect([callable(() => {}), callable('x')]).toEqual([
      undefined,
      'must be a function, not a string',
    ])
    const { signal } = new AbortController()
    expect([abortSignal(signal), abortSignal({ aborted: false })]).toEqual([undefined, undefined])
    for (const bad of [null, {}, 'x', 5]) {
      expect(abortSignal(bad as never)).toMatch(
        /^must be an AbortSignal, not (null|an object|a string|a number)$/,
      )
    }
    expect(listOf('x' as never, 2, name)).toBe('must be an array, not a string')
    expect(listOf(['a', 'b', 'c'], 2, name)).toBe('must not have more than 2 entries; it has 3')
    expect(listOf(['a', ''], 2, name)).toBe('must not be empty')
    expect(listOf(Array(2) as string[], 2, name)).toBe('must not be empty')
    expect(listOf(['a', 'b'], 2, name)).toBeUndefined()
    expect([text(5 as never, 9), text(undefined, 9), text(' ', 9)]).toEqual([
      ...['must be a string, not a number', 'must not be empty', 'must not be empty'],
    ])
  })
})

it('names that Pawl uses itself are reserved', () => {
  expect(reservedName('pawl.notify')).toBe('must not begin with "pawl."')
  expect(reservedName('pawls')).toBeUndefined()
})
