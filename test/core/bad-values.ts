// Values that no command may hold, and those at the edge that each may.

/** A field with the values that it must refuse, and those that it must take. */
export interface Field {
  readonly refused: readonly unknown[]
  readonly taken: readonly unknown[]
}

const PAIR = '\u{1F600}'
const LONE = ['\ud800', 'a\udc00b', '\udc00\ud800']

/** One line of up to 255 UTF-16 units. */
export const NAME: Field = {
  refused: [
    '',
    ' ',
    '\t\n',
    '\u00a0\u2003',
    'x'.repeat(256),
    `${PAIR.repeat(127)}xx`,
    'a\0b',
    'a\nb',
    'a\tb',
    'a\u001fb',
    'a\u007fb',
    'a\u0085b',
    ...LONE,
    7,
    null,
    {},
    ['name'],
  ],
  taken: ['x', ' x ', 'x'.repeat(255), `${PAIR.repeat(127)}x`, 'Größe', '__proto__', "'; --", '%s'],
}

/** A text of up to `max` units, of several lines if need be. */
export function text(max: number): Field {
  return {
    refused: ['', ' \n', 'x'.repeat(max + 1), 'a\0', ...LONE, 7, null],
    taken: ['x', 'x'.repeat(max), 'two\nlines', `${PAIR} \u0007`],
  }
}

/** A UUID in lower case. */
export const UUID: Field = {
  refused: [
    '',
    'job-1',
    '01890000-0000-7000-8000-00000000000',
    '01890000-0000-7000-8000-0000000000011',
    '01890000-0000-7000-8000-00000000000A',
    '01890000-0000-7000-8000-00000000000g',
    '01890000000070008000000000000001',
    '{01890000-0000-7000-8000-000000000001}',
    '01890000-0000-7000-8000-000000000001\n',
    ' 01890000-0000-7000-8000-000000000001',
    7,
    null,
  ],
  taken: [
    '01890000-0000-7000-8000-000000000001',
    'f47ac10b-58cc-4372-a567-0e02b2c3d479',
    '00000000-0000-0000-0000-000000000000',
  ],
}

/** A whole number from `min` to `max`. */
export function whole(min: number, max: number): Field {
  const beyond = max < Number.MAX_SAFE_INTEGER ? [max + 1] : [2 ** 53]
  return {
    refused: [min - 1, ...beyond, min + 0.5, NaN, Infinity, -Infinity, String(min), null],
    taken: [min, max],
  }
}

/** Milliseconds since the epoch. */
export const TIME = whole(0, Number.MAX_SAFE_INTEGER)

/** A record with this many entries. */
export function entries<T>(count: number, value: T): Record<string, T> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`key ${i}`, value]))
}

/** Numbers by name. */
export const USAGE: Field = {
  refused: [
    [],
    'a',
    { a: NaN },
    { a: 1, b: -Infinity },
    { a: '1' },
    { a: null },
    { '': 1 },
    { 'a\n': 1 },
    { '\ud800': 1 },
    entries(65, 1),
  ],
  taken: [{}, { pages: 3, ratio: -0.5, big: 1e300 }, entries(64, 1), { ['__proto__']: 1 }],
}
