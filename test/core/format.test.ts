// Values as text for people: durations, sizes, and values that were rejected.
import { describe, expect, it } from 'vitest'
import { brief, shown, size, span, typeName } from '../../src/core/format.ts'

describe('a duration', () => {
  it.each([
    [-5, '0ms'],
    [0, '0ms'],
    [40, '40ms'],
    [999.4, '999ms'],
    [1000, '1s'],
    [1234, '1.2s'],
    [10_000, '10s'],
    [90_000, '1m 30s'],
    [3_233_042, '53m 53s'],
    [3_600_000, '1h'],
    [3_605_000, '1h'],
    [7_500_000, '2h 5m'],
    [90_000_000, '1d 1h'],
    [86_400_000 * 400, '400d'],
  ])('of %d ms is %s', (ms, text) => {
    expect(span(ms)).toBe(text)
  })
})

describe('a size', () => {
  it.each([
    [0, '0 bytes'],
    [1, '1 byte'],
    [1023, '1023 bytes'],
    [1024, '1 KiB'],
    [1536, '1.5 KiB'],
    [1024 * 1024 - 1, '1 MiB'],
    [1024 * 1024, '1 MiB'],
    [1_258_291, '1.2 MiB'],
    [16 * 1024 ** 2, '16 MiB'],
    [5 * 1024 ** 3, '5 GiB'],
    [3 * 1024 ** 5, '3072 TiB'],
  ])('of %d bytes is %s', (bytes, text) => {
    expect(size(bytes)).toBe(text)
  })
})

describe('a rejected value', () => {
  it.each([
    ['tomorrow', '"tomorrow"'],
    ['x'.repeat(50), `"${'x'.repeat(40)}…"`],
    ['a\nb', '"a\\nb"'],
    [1.5, '1.5'],
    [-0, '-0'],
    [Number.NaN, 'NaN'],
    [true, 'true'],
    [null, 'null'],
    [undefined, 'undefined'],
    [5n, 'a bigint'],
    [Symbol('s'), 'a symbol'],
    [() => 1, 'a function'],
    [[1, 2], 'an array'],
    [{ a: 1 }, 'an object'],
    [new Date(Number.NaN), 'an invalid Date'],
    [new Date(0), 'a Date'],
  ])('is shown in a few words: %o', (value, text) => {
    expect(shown(value)).toBe(text)
  })

  it('is cut if it is a long text', () => {
    expect(brief('short')).toBe('short')
    expect(brief('x'.repeat(121))).toBe(`${'x'.repeat(120)}…`)
    expect(brief('abc', 2)).toBe('ab…')
  })

  it('can be named by its type alone, because its content may be a secret', () => {
    expect(typeName('postgres://user:secret@host')).toBe('a string')
    expect(typeName(5)).toBe('a number')
    expect(typeName(null)).toBe('null')
    expect(typeName(undefined)).toBe('undefined')
  })
})
