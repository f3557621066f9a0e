import fc from 'fast-check'
import { type Duration, RetryAfter, Retryable, Terminal } from 'pawl'
import {
  classify,
  encode,
  FAILURE_KINDS,
  type Failure,
  MESSAGE_MAX,
  standard,
  toBoundedText,
  ValueInvalid,
} from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { DELAY_MAX_MS } from '../../src/core/retry.ts'

const UNKNOWN = 'an error that cannot be described'

/** Something whose every trap throws. */
function hostileProxy(target: object): object {
  const fail = () => {
    throw new Error('hands off')
  }
  return new Proxy(target, { get: fail, getPrototypeOf: fail, has: fail, ownKeys: fail })
}

function revokedProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

/** What a worker does with whatever its handler threw. */
function reported(thrown: unknown) {
  const script = new JobScript(standard)
  script.create()
  script.claim()
  return script.applyCommand({ kind: 'fail', fence: script.fence, failure: classify(thrown) })
}

describe('classes and kinds', () => {
  it('are those of the two lists of R2', () => {
    expect(FAILURE_KINDS).toEqual({
      error: 'retryable',
      transient: 'retryable',
      timeout: 'retryable',
      overload: 'retryable',
      unavailable: 'retryable',
      invalid_input: 'invalid_input',
      validation: 'terminal',
      deadline: 'terminal',
      configuration: 'terminal',
      limit_exceeded: 'terminal',
      terminal: 'terminal',
    })
  })

  it('of Retryable are retryable, whatever the kind', () => {
    for (const kind of ['transient', 'timeout', 'overload', 'unavailable'] as const) {
      const expected = { class: 'retryable', kind, message: 'Retryable: busy' }
      expect(classify(new Retryable('busy', kind))).toEqual(expected)
    }
    expect(classify(new Retryable('busy')).kind).toBe('transient')
  })

  it('of Terminal are terminal, but input that cannot be read is a class of its own', () => {
    const kinds = ['validation', 'deadline', 'configuration', 'limit_exceeded', 'terminal'] as const
    for (const kind of kinds) {
      const expected = { class: 'terminal', kind, message: 'Terminal: no' }
      expect(classify(new Terminal('no', kind))).toEqual(expected)
    }
    expect(classify(new Terminal('no')).kind).toBe('terminal')
    const bad = classify(new Terminal('no', 'invalid_input'))
    expect(bad).toMatchObject({ class: 'invalid_input', kind: 'invalid_input' })
  })

  it('of anything else are those of an unknown, retryable error', () => {
    class Odd extends TypeError {
      override name = 'Odd'
    }
    const thrown: [unknown, string][] = [
      [new Error('boom'), 'Error: boom'],
      [new Odd('boom'), 'Odd: boom'],
      [new AggregateError([new Terminal('inner')], 'all failed'), 'AggregateError: all failed'],
      ['a text', 'a text'],
      ['', ''],
      [undefined, 'undefined'],
      [null, 'null'],
      [42, '42'],
      [7n, '7'],
      [Symbol('s'), 'Symbol(s)'],
      [{ status: 500 }, '{"status":500}'],
      [{ kind: 'terminal' }, '{"kind":"terminal"}'],
    ]
    for (const [value, message] of thrown) {
      expect(classify(value)).toEqual({ class: 'retryable', kind: 'error', message })
    }
  })

  it('are found in subclasses too, and the cause is kept for the log', () => {
    class QuotaExceeded extends Terminal {
      constructor() {
        super('too many pages', 'limit_exceeded', { cause: 'a quota' })
      }
    }
    const error = new QuotaExceeded()
    expect(classify(error)).toMatchObject({ class: 'terminal', kind: 'limit_exceeded' })
    expect(error.cause).toBe('a quota')
    expect(new Retryable('busy', 'overload', { cause: 1 }).cause).toBe(1)
    expect(new RetryAfter(5, 'later', { cause: 2 }).cause).toBe(2)
  })

  it.each<[string, unknown]>([
    ['Terminal', new Terminal('no', 'surprise' as 'terminal')],
    ['Retryable', new Retryable('no', 'toString' as 'transient')],
  ])('are known ones even where %s was given a kind that does not exist', (_name, thrown) => {
    const failure = classify(thrown)
    expect(Object.keys(FAILURE_KINDS)).toContain(failure.kind)
    expect(['retryable', 'terminal']).toContain(failure.class)
  })
})

describe('hostile throwables', () => {
  it.each<[string, unknown, string]>([
    ['an object whose toString throws', Object.defineProperty({}, 'toString', thrower()), '{}'],
    ['an object without toString', Object.create(null), '{}'],
    [
      'an error whose message throws',
      Object.defineProperty(new Error(), 'message', thrower()),
      `Error: ${UNKNOWN}`,
    ],
    [
      'an error whose name throws',
      Object.defineProperty(new Error(), 'name', thrower()),
      'Error: ',
    ],
    [
      'an error whose name is a symbol',
      Object.assign(new Error(), { name: Symbol('n') }),
      'Error: ',
    ],
    ['a proxy whose traps throw', hostileProxy({}), UNKNOWN],
    ['a proxy of an error whose traps throw', hostileProxy(new Terminal('no')), UNKNOWN],
    ['a proxy that was revoked', revokedProxy(), UNKNOWN],
  ])('do not take the worker down: %s', (_name, thrown, message) => {
    expect(classify(thrown)).toEqual({ class: 'retryable', kind: 'error', message })
  })

  it('do not take the worker down: a known error with a hostile message keeps its class', () => {
    const thrown = Object.defineProperty(new Terminal('no', 'validation'), 'message', thrower())
    const message = `Terminal: ${UNKNOWN}`
    expect(classify(thrown)).toEqual({ class: 'terminal', kind: 'validation', message })
  })
})

function thrower(): PropertyDescriptor {
  return {
    get: () => {
      throw new Error('hands off')
    },
  }
}

describe('RetryAfter', () => {
  it('is retryable and names its delay in whole milliseconds within the bounds', () => {
    const delays: [number, number][] = [
      [0, 0],
      [-0, 0],
      [1500, 1500],
      [1500.4, 1500],
      [1500.6, 1501],
      [-1, 0],
      [-Infinity, 0],
      [Infinity, DELAY_MAX_MS],
      [DELAY_MAX_MS, DELAY_MAX_MS],
      [DELAY_MAX_MS + 1, DELAY_MAX_MS],
    ]
    for (const [asked, retryAfterMs] of delays) {
      const failure = classify(new RetryAfter(asked, 'busy'))
      const expected = { class: 'retryable', kind: 'transient', message: 'RetryAfter: busy' }
      expect(failure).toEqual({ ...expected, retryAfterMs: expect.any(Number) })
      expect(failure.retryAfterMs === retryAfterMs, `asked for ${asked}`).toBe(true)
    }
  })

  it('without a delay that is a number leaves the delay to the policy', () => {
    const expected = { class: 'retryable', kind: 'transient', message: 'RetryAfter: busy' }
    for (const delay of [NaN, '5 s', undefined, {}]) {
      expect(classify(new RetryAfter(delay as number, 'busy'))).toEqual(expected)
    }
  })

  it('with a delay that cannot be a number leaves the delay to the policy', () => {
    const expected = { class: 'retryable', kind: 'transient', message: 'RetryAfter: busy' }
    for (const delay of [Symbol('s'), 5n]) {
      expect(classify(new RetryAfter(delay as unknown as number, 'busy'))).toEqual(expected)
    }
  })

  it.each<[Duration, number]>([
    ['30s', 30_000],
    ['1.5h', 5_400_000],
    ['400d', DELAY_MAX_MS],
  ])('with a delay of %s is retried after %i ms', (delay, retryAfterMs) => {
    expect(new RetryAfter(delay).delayMs).toBeGreaterThanOrEqual(retryAfterMs)
    expect(classify(new RetryAfter(delay))).toMatchObject({ retryAfterMs })
  })

  it('has a message of its own where none is given', () => {
    expect(classify(new RetryAfter(5)).message).toBe('RetryAfter: asked to be retried later')
  })
})

describe('messages', () => {
  const pair = '\u{1F600}'

  it('are kept whole up to the bound and cut with an ellipsis beyond it', () => {
    expect(MESSAGE_MAX).toBe(4000)
    expect(toBoundedText('x'.repeat(4000))).toBe('x'.repeat(4000))
    expect(toBoundedText('x'.repeat(4001))).toBe(`${'x'.repeat(4000)}…`)
    expect(toBoundedText('abcdef', 3)).toBe('abc…')
    expect(toBoundedText('')).toBe('')
    const huge = classify(new Error('x'.repeat(3_000_000)))
    expect(huge.message).toHaveLength(4001)
  })

  it('are never cut in the middle of a character', () => {
    expect(toBoundedText(`ab${pair}cd`, 3)).toBe('ab…')
    expect(toBoundedText(`ab${pair}cd`, 4)).toBe(`ab${pair}…`)
    expect(toBoundedText(`ab${pair}`, 4)).toBe(`ab${pair}`)
    expect(toBoundedText(`${'x'.repeat(3999)}${pair}`)).toBe(`${'x'.repeat(3999)}…`)
  })

  it('have what no database stores replaced', () => {
    expect(toBoundedText('a\ud800b')).toBe('a\ufffdb')
    expect(toBoundedText('\udc00\ud800')).toBe('\ufffd\ufffd')
    expect(toBoundedText('a\0b')).toBe('a\ufffdb')
    expect(toBoundedText('line\nline\ttab')).toBe('line\nline\ttab')
    expect(classify(new Error('a\ud800')).message).toBe('Error: a\ufffd')
  })

  it('of any length and any units are well-formed and bounded', () => {
    const units = fc.array(fc.nat({ max: 0xffff })).map((all) => String.fromCharCode(...all))
    fc.assert(
      fc.property(units, fc.nat({ max: 12 }), (text, max) => {
        const bounded = toBoundedText(text, max)
        expect(bounded.length).toBeLessThanOrEqual(max + 1)
        expect(/\p{Surrogate}|\0/u.test(bounded)).toBe(false)
        expect(toBoundedText(bounded, max + 1)).toBe(bounded)
      }),
      { numRuns: 500 },
    )
  })
})

describe('whatever a handler throws', () => {
  it('is a failure that the job can record', () => {
    const blank: [unknown][] = [[' '], ['\n\t'], [{ toString: () => ' ' }]]
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true }), (thrown) => {
        const failure: Failure = classify(thrown)
        expect(encode(failure)).toBeTypeOf('string')
        expect(reported(thrown)).toMatchObject({ kind: 'fact', fact: { to: 'retrying' } })
      }),
      { numRuns: 300, examples: blank },
    )
  })

  it('is a failure that the job can record, with any message and any delay', () => {
    const units = fc.array(fc.nat({ max: 0xffff })).map((all) => String.fromCharCode(...all))
    fc.assert(
      fc.property(units, fc.double(), (message, delay) => {
        for (const thrown of [new Error(message), new RetryAfter(delay, message)]) {
          expect(reported(thrown).kind).toBe('fact')
        }
      }),
      { numRuns: 300 },
    )
  })
})

it('a value that cannot be stored is not retried', () => {
  const error = new ValueInvalid('$.rows[3].at', 'is a function')
  expect(classify(error)).toMatchObject({
    class: 'terminal',
    kind: 'validation',
    message: expect.stringContaining('$.rows[3].at is a function'),
  })
})
