import fc from 'fast-check'
import { DEFAULT_BOUNDS, decode, encode, type Json, utf8Length, ValueInvalid } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { encodeText } from '../../src/core/canonical-json.ts'

/** The place and the reason of a refusal. */
function refusalOf(run: () => unknown): { path: unknown; why: unknown } {
  try {
    run()
  } catch (error) {
    if (!(error instanceof ValueInvalid)) throw error
    return { path: error.details.path, why: error.details.why }
  }
  throw new Error('nothing was refused')
}

/** A value inside of this many arrays. */
function nested(levels: number, value: Json = 0): Json {
  return levels === 0 ? value : [nested(levels - 1, value)]
}

/** Values that JSON can say. */
const anyJson = fc.jsonValue({ stringUnit: 'binary' }).map((value) => value as Json)
/** Texts of any UTF-16 units, lone surrogates among them. */
const anyUnits = fc.array(fc.nat({ max: 0xffff })).map((all) => String.fromCharCode(...all))

describe('the canonical text', () => {
  it('has its keys in the order of their UTF-16 units, as RFC 8785 asks', () => {
    // The example of RFC 8785, section 3.2.3.
    const value = {
      '\u20ac': 'Euro Sign',
      '\r': 'Carriage Return',
      '\ufb33': 'Hebrew Letter Dalet With Dagesh',
      '1': 'One',
      '\ud83d\ude00': 'Emoji: Grinning Face',
      '\u0080': 'Control',
      '\u00f6': 'Latin Small Letter O With Diaeresis',
    }
    expect(encode(value)).toBe(
      `{"\\r":"Carriage Return","1":"One","\u0080":"Control",` +
        `"\u00f6":"Latin Small Letter O With Diaeresis","\u20ac":"Euro Sign",` +
        `"\ud83d\ude00":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}`,
    )
  })

  it('orders whole numbers as texts, not as an engine would list them', () => {
    expect(encode({ 2: 'b', 10: 'a', '': 'c', a: 'd', B: 'e' })).toBe(
      '{"":"c","10":"a","2":"b","B":"e","a":"d"}',
    )
  })

  it('writes numbers as ECMAScript does', () => {
    const texts: [number, string][] = [
      [0, '0'],
      [-0, '0'],
      [1.0, '1'],
      [-1.5, '-1.5'],
      [5e-324, '5e-324'],
      [-1.7976931348623157e308, '-1.7976931348623157e+308'],
      [9007199254740991, '9007199254740991'],
      [1e21, '1e+21'],
      [1e20, '100000000000000000000'],
      [0.000001, '0.000001'],
      [1e-7, '1e-7'],
      [333333333.3333333, '333333333.3333333'],
    ]
    for (const [number, text] of texts) expect(encode(number)).toBe(text)
  })

  it('escapes what RFC 8785 escapes, and nothing else', () => {
    // The string of RFC 8785, section 3.2.2.
    const text = '\u20ac$\u000f\nA\'B"\\\\"/'
    expect(encode(text)).toBe('"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"')
    expect(encode('\b\t\n\f\r\u0000\u001f')).toBe('"\\b\\t\\n\\f\\r\\u0000\\u001f"')
    expect(encode('\u007f\u2028\u2029')).toBe('"\u007f\u2028\u2029"')
  })

  it('has no white space, and keeps the order of arrays', () => {
    expect(encode({ b: [3, 1, 2], a: { d: null, c: true, e: false } })).toBe(
      '{"a":{"c":true,"d":null,"e":false},"b":[3,1,2]}',
    )
    expect(encode({})).toBe('{}')
    expect(encode([])).toBe('[]')
  })

  it('leaves out properties whose value is undefined', () => {
    expect(encode({ a: undefined, b: 1 })).toBe('{"b":1}')
    expect(encode({ a: undefined })).toBe('{}')
  })

  it('takes __proto__ for a key like any other', () => {
    const text = '{"__proto__":{"polluted":true},"a":1,"constructor":2,"toString":3}'
    const value = decode(text) as Record<string, Json>
    expect(Object.keys(value)).toContain('__proto__')
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(encode(value)).toBe(text)
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })

  it('takes objects without a prototype, and a value that stands in several places', () => {
    const bare: object = Object.assign(Object.create(null), { b: 1, a: 2 })
    expect(encode(bare)).toBe('{"a":2,"b":1}')
    const shared = { x: 1 }
    expect(encode([shared, shared])).toBe('[{"x":1},{"x":1}]')
  })
})

describe('what cannot be read back', () => {
  const sparse: unknown[] = [1]
  sparse[2] = 3
  const looped: unknown[] = []
  looped.push(looped)
  class Account {
    id = 1
  }
  const noFinite = 'is not a finite number'
  const noPlain = 'is not a plain object'
  const surrogate = 'contains a lone surrogate'

  it.each<[string, unknown, string, string]>([
    ['NaN', NaN, '$', noFinite],
    ['infinity', { a: [1, Infinity] }, '$.a[1]', noFinite],
    ['minus infinity', [{ b: -Infinity }], '$[0].b', noFinite],
    ['a lone high surrogate', { a: 'x\ud800' }, '$.a', surrogate],
    ['a lone low surrogate', ['\udc00x'], '$[0]', surrogate],
    ['surrogates in the wrong order', '\udc00\ud800', '$', surrogate],
    ['a lone surrogate in a key', { a: { 'k\ud800': 1 } }, 'a key of $.a', surrogate],
    ['undefined', undefined, '$', 'is undefined, which JSON cannot represent'],
    ['undefined in an array', { a: [0, undefined] }, '$.a[1]', 'is undefined, which JSON cannot'],
    ['a hole in an array', sparse, '$[1]', 'is undefined, which JSON cannot represent'],
    ['a function', { f: () => 1 }, '$.f', 'is function, which JSON cannot represent'],
    ['a method toJSON', { toJSON: () => 1 }, '$.toJSON', 'is function, which JSON cannot'],
    ['a symbol', [Symbol('s')], '$[0]', 'is symbol, which JSON cannot represent'],
    ['a symbol as a key', { a: { [Symbol('s')]: 1 } }, '$.a', 'has a symbol as a key'],
    ['a big integer', { n: 1n }, '$.n', 'is bigint, which JSON cannot represent'],
    ['a date', { at: new Date(0) }, '$.at', noPlain],
    ['a map', new Map([['a', 1]]), '$', noPlain],
    ['a set', { s: new Set([1]) }, '$.s', noPlain],
    ['bytes', { b: new Uint8Array(2) }, '$.b', noPlain],
    ['an error', [new Error('x')], '$[0]', noPlain],
    ['an instance', { a: new Account() }, '$.a', noPlain],
    ['a boxed number', [Object(1)], '$[0]', noPlain],
    ['a circle', looped, `$${'[0]'.repeat(64)}`, 'is nested deeper than 64 levels'],
  ])('is refused with its place: %s', (_name, value, path, why) => {
    const refusal = refusalOf(() => encode(value))
    expect(refusal).toEqual({ path, why: expect.stringContaining(why) })
  })

  it('is refused where an array has names besides its places', () => {
    // A match of a regular expression is such an array: its index and input would be lost.
    expect(refusalOf(() => encode({ match: /b/.exec('abc') })).path).toContain('$.match')
  })

  it('is refused in a text that is no JSON', () => {
    for (const text of ['', ' ', '{', '[1,]', "{'a':1}", 'NaN', 'undefined', '{"a":1}}', '"\n"']) {
      expect(refusalOf(() => decode(text))).toEqual({ path: '$', why: 'is not valid JSON' })
    }
  })
})

describe('the bounds', () => {
  it('are 64 levels and one mebibyte if nothing else is said', () => {
    expect(DEFAULT_BOUNDS).toEqual({ depthMax: 64, bytesMax: 1_048_576 })
  })

  it('of depth hold exactly, in both directions', () => {
    const objects = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
    expect(encode(nested(64))).toBe(`${'['.repeat(64)}0${']'.repeat(64)}`)
    expect(refusalOf(() => encode(nested(65))).why).toBe('is nested deeper than 64 levels')
    expect(encode(decode(objects(64)))).toBe(objects(64))
    expect(refusalOf(() => decode(objects(65))).why).toBe('is nested deeper than 64 levels')
    const flat = { depthMax: 1, bytesMax: 100 }
    expect(encode([1, 2], flat)).toBe('[1,2]')
    expect(refusalOf(() => encode([1, {}], flat)).path).toBe('$[1]')
    expect(refusalOf(() => encode([], { depthMax: 0, bytesMax: 100 })).path).toBe('$')
    expect(encode('no level', { depthMax: 0, bytesMax: 100 })).toBe('"no level"')
  })

  it('of depth are not fooled by brackets in strings', () => {
    const text = JSON.stringify({ a: '[[[[{{{{', 'b"]': '\\"[[[' })
    const bounds = { depthMax: 1, bytesMax: 1000 }
    expect(decode(text, bounds)).toEqual({ a: '[[[[{{{{', 'b"]': '\\"[[[' })
    // An escaped quote does not end a string, and an escaped backslash does not escape a quote.
    expect(decode('["\\"[[["]', bounds)).toEqual(['"[[['])
    expect(refusalOf(() => decode('["\\\\",[1]]', bounds)).why).toContain('deeper than 1')
    expect(decode('[[],[],[]]', { depthMax: 2, bytesMax: 1000 })).toEqual([[], [], []])
  })

  it('of depth stop a text that would overflow the stack', () => {
    const text = '['.repeat(200_000) + ']'.repeat(200_000)
    expect(refusalOf(() => decode(text)).why).toBe('is nested deeper than 64 levels')
  })

  it('of size hold exactly, in bytes of UTF-8 and in both directions', () => {
    const values: Json[] = ['abc', 'öö€😀', [1, 22, 'x'], { a: 1, ö: [null, true] }, 12345, []]
    for (const value of values) {
      const text = encode(value)
      const bytes = Buffer.byteLength(text)
      const exact = { depthMax: 64, bytesMax: bytes }
      const less = { depthMax: 64, bytesMax: bytes - 1 }
      expect(encode(value, exact)).toBe(text)
      expect(decode(text, exact)).toEqual(value)
      expect(refusalOf(() => encode(value, less)).why).toMatch(/too large|larger than/)
      expect(refusalOf(() => decode(text, less)).why).toBe(`is larger than ${bytes - 1} bytes`)
    }
    const mebibyte = 'x'.repeat(1_048_576 - 2)
    expect(encode(mebibyte)).toHaveLength(1_048_576)
    expect(refusalOf(() => encode(`${mebibyte}x`)).path).toBe('$')
  })

  it('of size stop a value that unfolds to more than there is memory for', () => {
    let bomb: Json = 'boom'
    for (let i = 0; i < 60; i++) bomb = [bomb, bomb]
    expect(refusalOf(() => encode(bomb)).why).toBe('makes the value too large')
    let keyed: Json = {}
    for (let i = 0; i < 60; i++) keyed = { a: keyed, b: keyed }
    expect(refusalOf(() => encode(keyed)).why).toBe('makes the value too large')
  })
})

describe('for any value', () => {
  it('the text is the same after it was read and written again', () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        const text = encode(value)
        const read = decode(text)
        expect(encode(read)).toBe(text)
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
      }),
      { numRuns: 1000 },
    )
  })

  it('the order in which keys were set makes no difference', () => {
    const entries = fc.uniqueArray(fc.tuple(fc.string({ unit: 'grapheme' }), anyJson), {
      selector: ([key]) => key,
    })
    const shuffled = entries.chain((all) =>
      fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })),
    )
    fc.assert(
      fc.property(shuffled, ([one, other]) => {
        expect(encode(Object.fromEntries(other))).toBe(encode(Object.fromEntries(one)))
      }),
      { numRuns: 500 },
    )
  })

  it('nothing but ValueInvalid is thrown, and what is accepted can be read', () => {
    const anything = fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
      values: [anyUnits, fc.double(), fc.string(), fc.boolean(), fc.constant(undefined)],
    })
    fc.assert(
      fc.property(anything, (value) => {
        try {
          const text = encode(value)
          expect(encode(decode(text))).toBe(text)
        } catch (error) {
          expect(error).toBeInstanceOf(ValueInvalid)
        }
      }),
      { numRuns: 2000 },
    )
  })

  it('nothing but ValueInvalid is thrown by any text, whatever the bounds', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.json(),
      fc.stringMatching(/^[[\]{}",:0]*$/),
    )
    const bounds = fc.record({ depthMax: fc.nat({ max: 4 }), bytesMax: fc.nat({ max: 60 }) })
    fc.assert(
      fc.property(text, bounds, (any, limits) => {
        try {
          const value = decode(any, limits)
          expect(value).toEqual(JSON.parse(any))
          expect(Buffer.byteLength(any)).toBeLessThanOrEqual(limits.bytesMax)
        } catch (error) {
          expect(error).toBeInstanceOf(ValueInvalid)
        }
      }),
      { numRuns: 1000 },
    )
  })

  it('of a short text is the canonical text of any value', () => {
    for (const text of ['', 'a', '"\\\n', 'ö€😀']) expect(encodeText(text)).toBe(encode(text))
    expect(refusalOf(() => encodeText('\ud800')).path).toBe('$')
  })

  it('the length in bytes is what Node counts', () => {
    expect(utf8Length('')).toBe(0)
    expect(utf8Length('aö€😀\ud800x')).toBe(1 + 2 + 3 + 4 + 3 + 1)
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(utf8Length(text)).toBe(Buffer.byteLength(text))
      }),
      { numRuns: 1000 },
    )
    fc.assert(
      fc.property(anyUnits, (text) => {
        expect(utf8Length(text)).toBe(Buffer.byteLength(text))
      }),
      { numRuns: 1000 },
    )
  })
})
