// What holds of every decision about every job: it is a function of its arguments, it changes
// nothing by itself, it answers instead of throwing, and it is blind for ids, times and payloads.
import fc from 'fast-check'
import { type Job, PawlError } from 'pawl'
import { type Command, type Context, decide, evolve, fold } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { histories } from '../support/random-history.ts'
import { EVERY_LIFECYCLE } from './job-play.ts'

const anyHistory = histories({ lifecycles: EVERY_LIFECYCLE })

/** Freezes a value to its depths, so that whoever writes to it throws. */
function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const inner of Object.values(value)) deepFreeze(inner)
  }
  return value
}

describe('a decision', () => {
  it('is a function of its arguments and changes none of them', () => {
    fc.assert(
      fc.property(anyHistory, ({ script: { lifecycle }, told }) => {
        for (const { before, command, context, answer } of told) {
          const frozen = [deepFreeze(before), deepFreeze(command), deepFreeze(context)] as const
          expect(decide(lifecycle, ...frozen)).toEqual(answer)
          expect(decide(lifecycle, ...frozen)).toEqual(answer)
        }
      }),
      { numRuns: 200 },
    )
  })

  it('is folded without changing the job before it, or the fact', () => {
    fc.assert(
      fc.property(anyHistory, ({ told }) => {
        for (const { before, answer, after } of told) {
          if (answer.kind !== 'fact') continue
          expect(evolve(deepFreeze(before), deepFreeze(answer.fact))).toEqual(after)
        }
      }),
      { numRuns: 200 },
    )
  })

  it('that is no fact leaves the job as it was', () => {
    fc.assert(
      fc.property(anyHistory, ({ told }) => {
        for (const { before, answer, after } of told) {
          if (answer.kind === 'fact') expect(after?.seq).toBe((before?.seq ?? 0) + 1)
          else expect(after).toBe(before)
          if (answer.kind === 'rejected') expect(answer.error).toBeInstanceOf(PawlError)
        }
      }),
      { numRuns: 200 },
    )
  })

  it('told again at once changes nothing: it is the same, stale or refused', () => {
    // A step may be told twice: its result is stored beside the fact, where the first one stays.
    // A store says whether a signal or a wait is known; here nothing does.
    // Each replacement brings an input of its own, which the decider never sees.
    // A redrive of a committed job and a repair are records of what somebody did, each time anew.
    const isRecord = ({ kind }: Command, job: Job | null) =>
      kind === 'step' ||
      kind === 'replace' ||
      kind === 'repair' ||
      kind === 'signal' ||
      kind === 'wait' ||
      (kind === 'redrive' && job?.execution !== null)
    fc.assert(
      fc.property(anyHistory, ({ script: { lifecycle }, told }) => {
        for (const { command, context, answer, after } of told) {
          if (answer.kind !== 'fact' || isRecord(command, after)) continue
          expect(decide(lifecycle, after, command, context).kind).not.toBe('fact')
        }
      }),
      { numRuns: 200 },
    )
  })
})

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const TIMES = ['now', 'at', 'runAt', 'until', 'leaseUntil', 'deadlineAt']

/** The same, of another job at another time: every id and every time is a different one. */
function transpose<T>(value: T, shiftMs: number, key = ''): T {
  if (typeof value === 'string' && UUID.test(value)) return `abcdef${value.slice(6)}` as T
  if (typeof value === 'number' && TIMES.includes(key)) return (value + shiftMs) as T
  if (Array.isArray(value)) return value.map((item) => transpose(item, shiftMs)) as T
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, transpose(inner, shiftMs, name)]),
  ) as T
}

describe('two jobs', () => {
  it('that differ in ids and times have ledgers that differ in ids and times alone', () => {
    fc.assert(
      fc.property(anyHistory, fc.nat({ max: 1e12 }), ({ script, told }, shiftMs) => {
        let other: Job | null = null
        const facts = told.flatMap(({ command, context }) => {
          const asked: [Command, Context] = [
            transpose(command, shiftMs),
            transpose(context, shiftMs),
          ]
          const answer = decide(script.lifecycle, other, ...asked)
          if (answer.kind !== 'fact') return []
          other = evolve(other, answer.fact)
          return [answer.fact]
        })
        expect(facts).toEqual(transpose(script.facts, shiftMs))
        expect(fold(facts)).toEqual(other)
      }),
      { numRuns: 200 },
    )
  })
})
