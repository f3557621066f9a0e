import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Fact } from '../../src/core/job/facts.ts'
import {
  contextIn,
  readTraceparent,
  traceOf,
  withoutOwnTrace,
  withTrace,
} from '../../src/core/trace.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
const HEADER = `00-${TRACE}-${SPAN}-01`

const FACT: Fact = {
  version: 1,
  jobId: '0198a1b2-0000-7000-8000-0000deadbeef',
  seq: 26,
  at: 1,
  trigger: 'claim',
  from: 'queued',
  to: 'running',
  actor: 'worker',
}

describe('traceparent', () => {
  it('is read as the standard writes it', () => {
    expect(readTraceparent(HEADER)).toEqual({ traceId: TRACE, spanId: SPAN })
    expect(readTraceparent(`00-${TRACE}-${SPAN}-00`)).toEqual({
      traceId: TRACE,
      spanId: SPAN,
      traceFlags: 0,
    })
    expect(readTraceparent(HEADER, 'a=1,b=2')?.traceState).toBe('a=1,b=2')
    // A later version may have more fields.
    expect(readTraceparent(`01-${TRACE}-${SPAN}-01-more`)?.spanId).toBe(SPAN)
  })

  it.each([
    undefined,
    null,
    '',
    'x',
    HEADER.toUpperCase(),
    `${HEADER}-more`,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE}-${SPAN}`,
    ` ${HEADER}`,
    `${HEADER}\n`,
  ])('is ignored if it is %j', (header) => {
    expect(readTraceparent(header)).toBeUndefined()
  })

  it.each(['', 'x'.repeat(513), 'a=\n', 'ä=1'])('drops the tracestate %j', (state) => {
    expect(readTraceparent(HEADER, state)).toEqual({ traceId: TRACE, spanId: SPAN })
  })

  it('never throws, and what it returns can be read again', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (header, state) => {
        const read = readTraceparent(header, state)
        expect(read === undefined || contextIn(read) !== undefined).toBe(true)
      }),
    )
  })
})

describe('the trace of a fact', () => {
  it('is that of its span, or follows from its job and number', () => {
    expect(traceOf(FACT)).toEqual({
      traceId: '0198a1b20000700080000000deadbeef',
      spanId: 'deadbeef0000001a',
    })
    const inSpan = { ...FACT, traceId: TRACE, spanId: SPAN }
    expect(traceOf(inSpan)).toEqual({ traceId: TRACE, spanId: SPAN })
    expect(withTrace(inSpan)).toBe(inSpan)
  })

  it('can be added and taken away, and what a span wrote stays', () => {
    expect(withTrace(FACT)).toEqual({ ...FACT, ...traceOf(FACT) })
    expect(withoutOwnTrace(withTrace(FACT))).toEqual(FACT)
    expect(withoutOwnTrace(FACT)).toEqual(FACT)
    const inSpan = { ...FACT, traceId: TRACE, spanId: SPAN }
    expect(withoutOwnTrace(inSpan)).toEqual(inSpan)
  })

  it('is a context only if a span wrote it', () => {
    expect(contextIn(FACT)).toBeUndefined()
    const inSpan = { ...FACT, traceId: TRACE, spanId: SPAN, traceFlags: 0, traceState: 'a=1' }
    expect(contextIn(inSpan)).toEqual({
      traceId: TRACE,
      spanId: SPAN,
      traceFlags: 0,
      traceState: 'a=1',
    })
    expect(contextIn({ traceId: 'trace', spanId: 7 })).toBeUndefined()
  })
})
