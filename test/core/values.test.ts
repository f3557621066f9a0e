import fc from 'fast-check'
import { decodeValue, encode, encodeValue, ValueInvalid } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { notStoredIn, notStoredText } from '../../src/core/values.ts'

function refusalOf(work: () => unknown): { path: string; why: string; hint: string } {
  try {
    work()
  } catch (error) {
    expect(error).toBeInstanceOf(ValueInvalid)
    const { details, hint } = error as ValueInvalid
    return { ...(details as { path: string; why: string }), hint }
  }
  throw new Error('Nothing was refused')
}

const SAMPLES: readonly [string, unknown, string][] = [
  ['a date', new Date(0), '{"@pawl:date":"1970-01-01T00:00:00.000Z"}'],
  ['a far date', new Date(8.64e15), '{"@pawl:date":"+275760-09-13T00:00:00.000Z"}'],
  ['a date BC', new Date(-8.64e15), '{"@pawl:date":"-271821-04-20T00:00:00.000Z"}'],
  ['a leap day', new Date('2024-02-29T12:00:00Z'), '{"@pawl:date":"2024-02-29T12:00:00.000Z"}'],
  [
    'a bigint',
    [2n ** 64n, -1n, 0n],
    '[{"@pawl:bigint":"18446744073709551616"},' + '{"@pawl:bigint":"-1"},{"@pawl:bigint":"0"}]',
  ],
  [
    'a map',
    new Map<unknown, unknown>([
      ['b', 1],
      [{ a: 1 }, new Date(0)],
    ]),
    '{"@pawl:map":[["b",1],[{"a":1},{"@pawl:date":"1970-01-01T00:00:00.000Z"}]]}',
  ],
  ['an empty map', new Map(), '{"@pawl:map":[]}'],
  ['a set', new Set(['b', undefined, 'a']), '{"@pawl:set":["b",{"@pawl:undefined":true},"a"]}'],
  ['bytes', new Uint8Array([0, 1, 2, 255]), '{"@pawl:bytes":"AAEC/w=="}'],
  ['no bytes', new Uint8Array(), '{"@pawl:bytes":""}'],
  ['undefined', undefined, '{"@pawl:undefined":true}'],
  ['undefined in a list', [undefined, null], '[{"@pawl:undefined":true},null]'],
  [
    'numbers that are not finite',
    [NaN, Infinity, -Infinity],
    '[{"@pawl:number":"NaN"},' + '{"@pawl:number":"Infinity"},{"@pawl:number":"-Infinity"}]',
  ],
  ['an object like a tag', { '@pawl:date': 'x' }, '{"@pawl:object":{"@pawl:date":"x"}}'],
  [
    'an object like a wrapper',
    { '@pawl:object': { '@pawl:set': [1n] } },
    '{"@pawl:object":{"@pawl:object":{"@pawl:object":{"@pawl:set":[{"@pawl:bigint":"1"}]}}}}',
  ],
  [
    'an object with a key like a tag',
    { '@pawl:x': 1, a: 2 },
    '{"@pawl:object":{"@pawl:x":1,"a":2}}',
  ],
]

describe('a value', () => {
  it.each(SAMPLES)('has a documented text and is read back: %s', (_name, value, text) => {
    expect(encodeValue(value)).toBe(text)
    expect(decodeValue(text)).toEqual(value)
  })

  it('of plain JSON has the same text as before there were tags', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false } as object), (value) => {
        expect(encodeValue(value)).toBe(encode(value))
      }),
    )
    expect(encodeValue({ b: undefined, a: -0, '@type': 'x' })).toBe('{"@type":"x","a":0}')
  })

  it('of bytes may be large, and a Buffer is read as Uint8Array', () => {
    const bytes = Uint8Array.from({ length: 20_000 }, (_, i) => i % 251)
    expect(decodeValue(encodeValue(bytes))).toEqual(bytes)
    const read = decodeValue(encodeValue(Buffer.from('abc'))) as Uint8Array
    expect(Object.getPrototypeOf(read)).toBe(Uint8Array.prototype)
    expect([...read]).toEqual([97, 98, 99])
  })

  it('of a class without behaviour is read as a plain object', () => {
    class Row {
      readonly id = 1
      readonly at = new Date(0)
    }
    class Child extends Row {
      readonly more = true
    }
    expect(decodeValue(encodeValue(new Child()))).toEqual({ id: 1, at: new Date(0), more: true })
    const bare = Object.create(Object.create(null) as object) as object
    expect(encodeValue(Object.assign(bare, { a: 1 }))).toBe('{"a":1}')
  })

  it('with the key __proto__ keeps it as data', () => {
    const text = '{"__proto__":{"at":{"@pawl:date":"1970-01-01T00:00:00.000Z"}},"n":1}'
    const value = decodeValue(text) as object
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(Object.keys(value)).toEqual(['__proto__', 'n'])
    expect(encodeValue(value)).toBe(text)
    expect(({} as { at?: unknown }).at).toBeUndefined()
  })
})

const leaf = fc.oneof(
  fc.jsonValue(),
  fc.date({ noInvalidDate: true }),
  fc.bigInt(),
  fc.uint8Array(),
  fc.constantFrom(undefined, NaN, Infinity, -Infinity),
)
const anyKey = fc.oneof(
  fc.string(),
  fc.constantFrom('__proto__', '@pawl:date', '@pawl:object', '@pawl:x', 'constructor'),
)
const { anyValue } = fc.letrec<{ anyValue: unknown }>((tie) => ({
  anyValue: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc.array(tie('anyValue'), { maxLength: 4 }),
    fc.array(fc.tuple(anyKey, tie('anyValue')), { maxLength: 4 }).map(objectOf),
    fc.array(fc.tuple(leaf, tie('anyValue')), { maxLength: 4 }).map((pairs) => new Map(pairs)),
    fc.array(tie('anyValue'), { maxLength: 4 }).map((items) => new Set(items)),
  ),
}))

/** An object with own members only, `__proto__` included. */
function objectOf(entries: readonly (readonly [string, unknown])[]): object {
  const made = {}
  for (const [key, value] of entries) {
    const shape = { value, enumerable: true, writable: true, configurable: true }
    // A member that is undefined is omitted, and read as undefined.
    if (value !== undefined) Object.defineProperty(made, key, shape)
  }
  return made
}

describe('any value', () => {
  it('is read back equal, and its text is canonical', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const text = encodeValue(value)
        const read = decodeValue(text)
        expect(encodeValue(read)).toBe(text)
        expect(minusZeroFree(read)).toStrictEqual(minusZeroFree(value))
      }),
      { numRuns: 1000 },
    )
  })

  it('of text is read, or refused with a typed error', () => {
    const tags = fc.constantFrom(
      ...['date', 'bigint', 'number', 'bytes', 'map', 'set', 'undefined', 'object', 'not-stored'],
      'other',
    )
    const { hostile } = fc.letrec<{ hostile: unknown }>((tie) => ({
      hostile: fc.oneof(
        { maxDepth: 3 },
        fc.jsonValue(),
        fc.tuple(tags, tie('hostile')).map(([tag, value]) => ({ [`@pawl:${tag}`]: value })),
        fc.array(tie('hostile'), { maxLength: 3 }),
      ),
    }))
    fc.assert(
      fc.property(hostile, (value) => {
        try {
          decodeValue(JSON.stringify(value))
        } catch (error) {
          expect(error).toBeInstanceOf(ValueInvalid)
        }
      }),
      { numRuns: 1000 },
    )
  })
})

/** Minus zero is read as zero; the rest is compared exactly. */
function minusZeroFree(value: unknown): unknown {
  if (typeof value === 'number') return value === 0 ? 0 : value
  if (value instanceof Map) {
    return [...value].map(([key, own]) => [minusZeroFree(key), minusZeroFree(own)])
  }
  if (value instanceof Set) return [...value].map(minusZeroFree)
  if (Array.isArray(value)) return value.map(minusZeroFree)
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Date || value instanceof Uint8Array) return value
  return Object.entries(value)
    .map(([key, own]) => [key, minusZeroFree(own)])
    .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1))
}

describe('what cannot be stored', () => {
  class User {
    readonly id = 1
    save() {}
  }
  class Point {
    get x() {
      return 1
    }
  }
  const sparse: unknown[] = [1]
  sparse[2] = 3
  const odd: unknown = Object.setPrototypeOf(new Date(0), class Odd {}.prototype)
  const anonymous: unknown = new (class {
    go() {}
  })()

  it.each<[string, unknown, string, RegExp]>([
    ['a function', { rows: [{ f: () => 1 }] }, '$.rows[0].f', /is a function/],
    ['a symbol', [Symbol('s')], '$[0]', /is a symbol/],
    ['an instance with methods', { user: new User() }, '$.user', /instance of User.*\(save\)/],
    ['an instance with accessors', new Point(), '$', /instance of Point.*\(x\)/],
    ['an instance without a name', anonymous, '$', /instance of a class, .*\(go\)/],
    ['an error', new Error('x'), '$', /instance of Error/],
    ['a promise', { p: Promise.resolve() }, '$.p', /instance of Promise/],
    ['a weak map', new WeakMap(), '$', /instance of WeakMap/],
    ['other typed arrays', new Float64Array(1), '$', /instance of Float64Array/],
    ['a date in disguise', odd, '$', /is an instance of/],
    ['bytes in disguise', Object.setPrototypeOf(new Uint8Array(1), User.prototype), '$', /User/],
    ['an invalid date', { at: new Date(NaN) }, '$.at', /invalid Date/],
    ['a huge bigint', 10n ** 10_000n, '$', /more than 10000 digits/],
    ['a hole', sparse, '$', /not a plain array/],
    ['a symbol as a key', new Map([['a', { [Symbol('s')]: 1 }]]), '$.map[0][1]', /symbol/],
    ['a lone surrogate', new Set(['\ud800']), '$.set[0]', /surrogate/],
  ])('is refused with its path: %s', (_name, value, path, why) => {
    const refusal = refusalOf(() => encodeValue(value))
    expect(refusal.path).toBe(path)
    expect(refusal.why).toMatch(why)
    expect(refusal.hint).not.toBe('')
  })

  it('is refused with the place to which a circle refers', () => {
    const order: Record<string, unknown> = { id: 1 }
    order.lines = [{ order }]
    const refusal = refusalOf(() => encodeValue({ first: order }))
    expect(refusal).toMatchObject({ path: '$.first.lines[0].order', why: 'refers back to $.first' })
    const map = new Map<string, unknown>()
    map.set('self', map)
    expect(refusalOf(() => encodeValue(map)).why).toBe('refers back to $')
    const set = new Set<unknown>()
    set.add({ set })
    expect(refusalOf(() => encodeValue(set))).toMatchObject({ path: '$.set[0].set' })
    const wide: unknown[] = []
    wide.push(wide, wide)
    const small = { bytesMax: 20, depthMax: 64 }
    expect(refusalOf(() => encodeValue(wide, small)).why).toBe('refers back to $')
  })

  it('is refused with a short path, however deep it is', () => {
    let deep: unknown = 1
    for (let i = 0; i < 600; i++) deep = { level: deep }
    const refusal = refusalOf(() => encodeValue(deep, { bytesMax: 1e6, depthMax: 512 }))
    expect(refusal.why).toBe('is nested deeper than 512 levels')
    expect(refusal.path.length).toBeLessThan(130)
    for (let i = 0; i < 50_000; i++) deep = [deep]
    const bounds = { bytesMax: 1e9, depthMax: 1e9 }
    expect(refusalOf(() => encodeValue(deep, bounds)).why).toBe('is nested too deeply')
  })

  it('counts the levels of tags', () => {
    const bounds = (depthMax: number) => ({ depthMax, bytesMax: 1000 })
    expect(encodeValue([1n], bounds(2))).toBe('[{"@pawl:bigint":"1"}]')
    expect(refusalOf(() => encodeValue([1n], bounds(1))).why).toContain('deeper than 1')
    expect(encodeValue(new Map([[1, 2]]), bounds(3))).toBe('{"@pawl:map":[[1,2]]}')
    expect(refusalOf(() => encodeValue(new Map([[1, 2]]), bounds(2))).why).toContain('deeper')
    expect(refusalOf(() => encodeValue(new Map(), bounds(1))).why).toContain('deeper than 1')
    expect(encodeValue({ '@pawl:x': 1 }, bounds(2))).toBe('{"@pawl:object":{"@pawl:x":1}}')
    expect(refusalOf(() => encodeValue({ '@pawl:x': 1 }, bounds(1))).why).toContain('deeper')
  })

  it('says how large a value is, and how large it may be', () => {
    const bounds = { depthMax: 64, bytesMax: 1024 * 1024 }
    const text = 'x'.repeat(1.5 * 1024 * 1024)
    expect(refusalOf(() => encodeValue({ text }, bounds)).why).toBe(
      'is too large: about 1.5 MiB, and at most 1 MiB are allowed',
    )
    const huge = new Uint8Array(6 * 1024 * 1024)
    expect(refusalOf(() => encodeValue(huge, bounds)).why).toContain('more than 2 MiB')
    expect(refusalOf(() => encodeValue('öööö', { depthMax: 1, bytesMax: 9 })).why).toContain(
      'at most 9 bytes are allowed',
    )
    let bomb: unknown = 'boom'
    for (let i = 0; i < 60; i++) bomb = [bomb, bomb]
    expect(refusalOf(() => encodeValue(bomb)).why).toContain('more than 2 MiB')
    const many = Array.from({ length: 200_000 }, () => ({}))
    expect(refusalOf(() => encodeValue(many, { depthMax: 9, bytesMax: 10 })).why).toMatch(/large/)
  })

  it('leaves an error of a getter or proxy as it is', () => {
    const hostile = {
      get boom() {
        throw new TypeError('mine')
      },
    }
    expect(() => encodeValue(hostile)).toThrow(new TypeError('mine'))
  })
})

describe('a stored text', () => {
  it.each([
    ['no JSON', '{', /not valid JSON/],
    ['an unknown tag', '{"a":[{"@pawl:later":1}]}', /unknown tag "@pawl:later"/],
    ['a date without a zone', '{"@pawl:date":"2026-01-01T00:00:00"}', /valid "@pawl:date"/],
    ['a day that does not exist', '{"@pawl:date":"2026-02-30T00:00:00Z"}', /valid "@pawl:date"/],
    ['a month that does not exist', '{"@pawl:date":"2026-13-01T00:00:00Z"}', /valid "@pawl:date"/],
    ['a date that is a number', '{"@pawl:date":0}', /valid "@pawl:date"/],
    ['a bigint that is a number', '{"@pawl:bigint":1}', /valid "@pawl:bigint"/],
    ['a bigint with a fraction', '{"@pawl:bigint":"1.5"}', /valid "@pawl:bigint"/],
    ['a long bigint', `{"@pawl:bigint":"${'9'.repeat(10_001)}"}`, /at most 10000/],
    ['an unknown number', '{"@pawl:number":"1"}', /valid "@pawl:number"/],
    ['bytes that are not base64', '{"@pawl:bytes":"?"}', /valid "@pawl:bytes"/],
    ['bytes without padding', '{"@pawl:bytes":"AA"}', /valid "@pawl:bytes"/],
    ['bytes that are a list', '{"@pawl:bytes":[1]}', /valid "@pawl:bytes"/],
    ['a map that is no list', '{"@pawl:map":{}}', /valid "@pawl:map"/],
    ['a map without pairs', '{"@pawl:map":[[1]]}', /valid "@pawl:map"/],
    ['a map with a key twice', '{"@pawl:map":[[1,2],[1,3]]}', /key of its map twice/],
    ['a set that is no list', '{"@pawl:set":1}', /valid "@pawl:set"/],
    ['a set with an element twice', '{"@pawl:set":[1,1]}', /element of its set twice/],
    ['undefined that is false', '{"@pawl:undefined":false}', /valid "@pawl:undefined"/],
    ['an object that is a list', '{"@pawl:object":[]}', /valid "@pawl:object"/],
    ['an object that is null', '{"@pawl:object":null}', /valid "@pawl:object"/],
    ['a result that was not stored', '{"@pawl:not-stored":{}}', /was not stored/],
    ['a tag with escapes', '{"\\u0040pawl:date":1}', /valid "@pawl:date"/],
    ['endless nesting', `${'['.repeat(1e5)}{"@pawl:set":[]}${']'.repeat(1e5)}`, /too deeply/],
  ])('is refused with a typed error: %s', (_name, text, why) => {
    const refusal = refusalOf(() => decodeValue(text))
    expect(refusal.why).toMatch(why)
    expect(refusal.hint).not.toBe('')
  })

  it('names the place of what is wrong in it', () => {
    const text = '{"rows":[1,{"at":{"@pawl:map":[["k",{"@pawl:date":"x"}]]}}]}'
    expect(refusalOf(() => decodeValue(text)).path).toBe('$.rows[1].at.map[0][1]')
  })

  it('of another program may have dates of any precision and zone', () => {
    const date = (text: string) => decodeValue(`{"@pawl:date":"${text}"}`)
    expect(date('2026-01-01T01:00:00+01:00')).toEqual(new Date('2026-01-01T00:00:00Z'))
    expect(date('2026-01-01T00:00Z')).toEqual(new Date('2026-01-01T00:00:00Z'))
  })

  it('with an object of several members is plain, whatever their names are', () => {
    expect(decodeValue('{"@pawl:date":1,"a":2}')).toEqual({ '@pawl:date': 1, a: 2 })
  })

  it('can say that a result was not stored', () => {
    const note = { path: '$.a', why: 'is a function' }
    expect(notStoredIn(notStoredText(note))).toEqual(note)
    expect(notStoredIn('{"@pawl:not-stored":null}')).toEqual({
      path: '$',
      why: 'could not be stored',
    })
    expect(notStoredIn('{"a":1}')).toBeUndefined()
  })
})
