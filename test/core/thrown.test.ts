// What a handler threw, as it is stored: bounded, without user data that is easily recognised, and
// with a key by which failures are grouped.
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { DeadlinePassed } from 'pawl'
import { standard } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { failureOf, ownFailure } from '../../src/core/failure.ts'
import {
  causesOf,
  chainOf,
  describeThrown,
  fingerprintOf,
  THROWN_MAX,
  textOf,
} from '../../src/core/thrown.ts'

const hostile = (field: string, target: object = new Error('boom')) =>
  Object.defineProperty(target, field, {
    enumerable: true,
    get: () => {
      throw new Error('hands off')
    },
  })

describe('a thrown error', () => {
  it('is described with name, message, code, stack and known fields', () => {
    const error = Object.assign(new TypeError('connect ECONNREFUSED'), {
      code: 'ECONNREFUSED',
      port: 443,
      syscall: 'connect',
      secret: 'x',
      status: Number.NaN,
    })
    const { stack, ...rest } = describeThrown(error)
    expect(rest).toEqual({
      name: 'TypeError',
      message: 'connect ECONNREFUSED',
      code: 'ECONNREFUSED',
      fields: { syscall: 'connect', port: 443 },
    })
    expect(stack).toContain('thrown.test.ts')
    expect(stack?.split('\n').every((line) => line.startsWith('at '))).toBe(true)
  })

  it('is described with its causes and with the errors of an aggregate', () => {
    const inner = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
    const both = new AggregateError([inner, new Error('other')], 'all failed')
    const thrown = describeThrown(new Error('fetch failed', { cause: both }))
    expect(thrown.cause).toMatchObject({
      name: 'AggregateError',
      errors: [{ message: 'refused', code: 'ECONNREFUSED' }, { message: 'other' }],
    })
    expect(causesOf(thrown)).toHaveLength(1)
    expect(chainOf({ message: 'Error: fetch failed', thrown })).toBe(
      'Error: fetch failed ← AggregateError: all failed',
    )
    expect(chainOf({ message: 'AggregateError: all failed', thrown: thrown.cause as never })).toBe(
      'AggregateError: all failed ← Error: refused (ECONNREFUSED) ← Error: other',
    )
    expect(chainOf({ message: 'plain', code: '23505' })).toBe('plain (23505)')
  })

  it('of another realm is an error, too', () => {
    const error = runInNewContext('new RangeError("far")') as unknown
    expect(error).not.toBeInstanceOf(Error)
    expect(textOf(error)).toBe('RangeError: far')
    expect(describeThrown(error)).toMatchObject({ name: 'RangeError', message: 'far' })
  })

  it('that is its own cause, or deep, or wide, is described within bounds', () => {
    const first = new Error('first')
    first.cause = new Error('second', { cause: first })
    expect(causesOf(describeThrown(first)).map(({ message }) => message)).toEqual(['second'])
    let deep = new Error('0')
    for (let i = 1; i < 50; i++) deep = new Error(String(i), { cause: deep })
    expect(causesOf(describeThrown(deep))).toHaveLength(4)
    const wide = new AggregateError(
      Array.from(
        { length: 9 },
        (_, i) => new AggregateError([new Error('a'), new Error('b')], `${i}`),
      ),
    )
    const { errors = [] } = describeThrown(wide)
    expect(errors.length).toBeLessThanOrEqual(5)
    expect(errors.flatMap(({ errors: inner = [] }) => inner).length).toBeLessThan(10)
  })

  it('is never larger than its bound, whatever its texts are', () => {
    const huge = (cause?: unknown) => {
      const error = new Error('\u0001"'.repeat(100_000), { cause })
      error.name = '"'.repeat(10_000)
      error.stack = `x\n${`    at ${'"'.repeat(9000)}\n`.repeat(100)}`
      return Object.assign(error, { code: '"'.repeat(9000), table: '\\'.repeat(9000) })
    }
    const thrown = describeThrown(new AggregateError([huge(), huge(), huge(huge())], 'all'))
    expect(JSON.stringify(thrown).length).toBeLessThanOrEqual(THROWN_MAX)
    const { fact } = reported(huge(huge()))
    expect(JSON.stringify(fact).length).toBeLessThan(THROWN_MAX + 20_000)
  })

  it('loses the parameters that Drizzle writes into its message', () => {
    const message = 'Failed query: insert into users values ($1)\nparams: ann@example.org,secret'
    const cause = Object.assign(new Error('duplicate key value'), {
      code: '23505',
      detail: 'Key (email)=(ann@example.org) already exists.',
      constraint: 'users_email_key',
    })
    const failure = failureOf(new Error(message, { cause }), { type: 'mail' })
    expect(JSON.stringify(failure)).not.toMatch(/ann@|secret/)
    expect(failure.message).toContain('insert into users')
    expect(failure.thrown?.cause).toMatchObject({
      code: '23505',
      fields: { constraint: 'users_email_key' },
    })
  })

  it('has every text redacted before it is cut', () => {
    const redact = (text: string) => text.replaceAll(/tok_\w+/g, '(token)')
    const cause = Object.assign(new Error('bad tok_2'), { code: 'tok_3', hostname: 'tok_4' })
    const error = new Error(`${'x'.repeat(1997)}tok_123456`, { cause })
    const failure = failureOf(error, { type: 'mail', redact })
    expect(JSON.stringify(failure)).not.toContain('tok_')
    const own = ownFailure(error, { class: 'terminal', kind: 'deadline' }, { type: 'm', redact })
    expect(own.message).not.toContain('tok_')
    expect(own.code).toBeUndefined()
  })
})

describe('a failure that the engine found itself', () => {
  it('has the name and the code of its error, a prefix, and no stack', () => {
    const late = new DeadlinePassed('job-1', 5)
    const failure = { class: 'terminal', kind: 'deadline' } as const
    const own = ownFailure(late, failure, { type: 'mail' }, 'Refused: ')
    expect(own).toEqual({
      ...failure,
      name: 'DeadlinePassed',
      code: 'E_DEADLINE_PASSED',
      message: `Refused: ${late.message}`,
      fingerprint: expect.stringMatching(/^[0-9a-f]{14}$/),
    })
    expect(failureOf(late, { type: 'mail' })).toMatchObject({ code: 'E_DEADLINE_PASSED' })
  })
})

describe('a thrown value that is no error', () => {
  it.each<[unknown, string, string]>([
    [
      { status: 500, body: { a: [1, 'b', null] } },
      'object',
      '{"status":500,"body":{"a":[1,"b",null]}}',
    ],
    ['plain', 'string', 'plain'],
    [undefined, 'undefined', 'undefined'],
    [() => 1, 'function', '[function]'],
    [[new Date(5), new Uint8Array(9), new Error('e')], 'object', '[5,[binary],"Error: e"]'],
    [{ a: { b: { c: { d: 1 }, e: [[1]] } } }, 'object', '{"a":{"b":{"c":{…},"e":[…]}}}'],
    [
      Array.from({ length: 21 }, (_, i) => i),
      'object',
      '[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,…]',
    ],
  ])('is printed: case %#', (value, name, message) => {
    expect(describeThrown(value)).toMatchObject({ name, message })
  })

  it('is printed without calling its getters', () => {
    expect(describeThrown(hostile('secret', {})).message).toBe('{"secret":[getter]}')
  })

  it('has the code of an object that looks like an error', () => {
    expect(describeThrown({ code: 42 })).toMatchObject({ code: '42' })
    expect(describeThrown({ code: '' })).not.toHaveProperty('code')
    expect(describeThrown({ code: {} })).not.toHaveProperty('code')
  })
})

describe('an error that defends itself', () => {
  it.each(['message', 'name', 'stack', 'code', 'cause', 'errors', 'table'])(
    'with a %s that throws is described without it',
    (field) => {
      expect(describeThrown(hostile(field))).toMatchObject({ name: 'Error' })
      expect(reported(hostile(field)).fact.to).toBe('retrying')
    },
  )

  it('with texts that are no texts is described', () => {
    const odd = Object.assign(new Error(), { name: 5, stack: 5, errors: 5, code: true })
    expect(describeThrown(odd)).toEqual({ name: 'Error', message: '' })
    const slice = () => {
      throw new Error('hands off')
    }
    const list = Object.assign(new Error('x'), { errors: Object.assign([], { slice }) })
    expect(describeThrown(list)).not.toHaveProperty('errors')
  })
})

describe('whatever is thrown', () => {
  it('is recorded in the fact that closes the attempt', () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true }), (value) => {
        const { fact } = reported(value)
        expect(fact.thrown).toEqual(describeThrown(value))
        expect(fact.error?.fingerprint).toMatch(/^[0-9a-f]{14}$/)
      }),
      { numRuns: 200 },
    )
  })

  it('is refused if it is no record, or larger than its bound', () => {
    const script = held()
    const failure = { class: 'retryable', kind: 'error', message: 'x' } as const
    const cycle: Record<string, unknown> = { name: 'a', message: 'b' }
    cycle.cause = cycle
    for (const bad of [
      { thrown: 'text' },
      { thrown: cycle },
      { thrown: { name: 'x'.repeat(THROWN_MAX), message: '' } },
      { name: 'x'.repeat(500) },
      { code: 5 },
      { fingerprint: 'a\0' },
    ]) {
      const command = { kind: 'fail', fence: script.fence, failure: { ...failure, ...bad } }
      const answer = script.applyCommand(command as never)
      expect(answer).toMatchObject({ kind: 'rejected', error: { code: 'E_COMMAND_INVALID' } })
    }
  })
})

describe('the key of a group', () => {
  const at = (...frames: string[]) => ({ name: 'Error', message: 'm', stack: frames.join('\n') })

  it('is the same for one place, whatever the folder of the program and the message', () => {
    const one = at(
      'at node:internal/x:1:1',
      'at fetch (/a/node_modules/u/i.js:1:2)',
      'at async pay (file:///app/src/pay.ts?t=1:10:3)',
    )
    const two = { ...at('at pay (C:\\work\\src\\pay.ts:10:99)'), message: 'another' }
    expect(fingerprintOf('mail', one)).toBe(fingerprintOf('mail', two))
  })

  it('differs by job type, place, name and codes of the causes', () => {
    const base = at('at pay (/app/src/pay.ts:10:3)')
    const all = [
      fingerprintOf('mail', base),
      fingerprintOf('other', base),
      fingerprintOf('mail', at('at pay (/app/src/pay.ts:11:3)')),
      fingerprintOf('mail', at('at /app/src/pay.ts:10:3')),
      fingerprintOf('mail', { ...base, name: 'TypeError' }),
      fingerprintOf('mail', { ...base, code: '23505' }),
      fingerprintOf('mail', { ...base, cause: { name: 'Error', message: '', code: '23505' } }),
    ]
    expect(new Set(all).size).toBe(all.length)
  })

  it('without a place follows the message, without its numbers, ids and quoted texts', () => {
    const key = (message: string) => fingerprintOf('mail', { name: 'Error', message })
    expect(key('no user 5 in "a"')).toBe(key('no user 77 in "b"\nmore'))
    expect(key(`job 0198a1b2-0000-7000-8000-000000000001 lost`)).toBe(key('job 5f3a99c1 lost'))
    expect(key('no user')).not.toBe(key('no order'))
  })
})

function held(): JobScript {
  const script = new JobScript(standard)
  script.create()
  script.claim()
  return script
}

function reported(thrown: unknown) {
  const script = held()
  const failure = failureOf(thrown, { type: 'mail' })
  const decision = script.applyCommand({ kind: 'fail', fence: script.fence, failure })
  if (decision.kind !== 'fact') throw new Error(JSON.stringify(decision))
  return decision
}
