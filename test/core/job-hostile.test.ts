// Commands come from anybody. Whatever their values are, the decider answers with a fact that can
// be stored and read back, with "the same", or with a typed refusal. It never throws.
import fc from 'fast-check'
import { type Job, type Lifecycle, PawlError } from 'pawl'
import {
  type Command,
  type Context,
  checkP9,
  decide,
  decode,
  encode,
  evolve,
  type Fact,
  type FailureKind,
  type Fence,
  type JobPolicy,
  standard,
} from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { histories } from '../support/random-history.ts'
import { EVERY_LIFECYCLE } from './job-play.ts'

const START = Date.UTC(2026, 0, 1)
const ID = '00000000-0000-7000-8000-000000000001'

const texts = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom('', ' ', '\0', 'a\nb', '\ud800', '\udfff\ud800', '__proto__', 'constructor'),
  fc.constantFrom('toString', 'hasOwnProperty', 'x'.repeat(256), 'x'.repeat(2001), 'running'),
  fc.constantFrom(ID, ID.toUpperCase(), `${ID}\n`, 'queued', 'succeeded', 'PENDING'),
)
const numbers = fc.oneof(
  fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0, 0, 0.5),
  fc.constantFrom(-1, 1, 2 ** 53, 2 ** 53 - 1, -(2 ** 53), 1e308, 5e-324, START, START + 1),
  fc.integer(),
  fc.double(),
)
const records = <T>(value: fc.Arbitrary<T>) => fc.dictionary(texts, value, { maxKeys: 3 })
const maybe = <T, K extends string>(key: K, value: fc.Arbitrary<T>) =>
  fc.oneof(
    fc.constant({}),
    value.map((own) => ({ [key]: own })),
  ) as fc.Arbitrary<{ [P in K]?: T }>

/** Some keys present, each with any value of its type. */
function object<T>(required: { [P in keyof T]: fc.Arbitrary<T[P]> }): fc.Arbitrary<T> {
  return fc.record(required) as unknown as fc.Arbitrary<T>
}

const fences: fc.Arbitrary<Fence> = object({ attempt: numbers, claim: texts })

const creations: fc.Arbitrary<Command> = fc
  .tuple(
    object({
      jobId: fc.oneof(fc.constant(ID), texts),
      type: fc.oneof(fc.constant('t'), texts),
      queue: fc.oneof(fc.constant('q'), texts),
    }),
    maybe('priority', numbers),
    maybe('tags', fc.array(texts, { maxLength: 4 })),
    maybe('key', texts),
    maybe('limitKeys', fc.array(object({ gate: texts, max: numbers }), { maxLength: 3 })),
    maybe('retryOf', texts),
    maybe('timeoutMs', numbers),
    maybe('deadlineAt', numbers),
    maybe('runAt', numbers),
    maybe('hold', fc.boolean()),
  )
  .map((parts) => ({ kind: 'create', ...Object.assign({}, ...parts) }) as Command)

/** The kinds are hostile too: what looks like a kind may be a name that every object has. */
const failures = fc
  .tuple(
    object({
      class: fc.constantFrom('retryable' as const, 'terminal' as const, 'invalid_input' as const),
      kind: fc
        .oneof(fc.constantFrom('error', 'timeout', 'deadline'), texts)
        .map((kind) => kind as FailureKind),
      message: texts,
    }),
    maybe('retryAfterMs', numbers),
  )
  .map(([required, optional]) => ({ ...required, ...optional }))

/** Every command but create, with the right fence or a hostile one. */
function commandsFor(job: Job): fc.Arbitrary<Command> {
  const held: Fence = { attempt: job.attempt, claim: job.execution?.claim ?? ID }
  const fence = fc.oneof(fc.constant(held), fences)
  const just = <K extends Command['kind']>(kind: K) => ({ kind: fc.constant(kind) })
  const withUsage = <T extends Command>(command: fc.Arbitrary<T>): fc.Arbitrary<Command> =>
    fc
      .tuple(command, maybe('usage', records(numbers)))
      .map(([own, usage]) => ({ ...own, ...usage }) as Command)
  return fc.oneof(
    fc.constantFrom<Command>(
      { kind: 'submit' },
      { kind: 'due' },
      { kind: 'exhaust' },
      { kind: 'replace' },
      { kind: 'cancel' },
      { kind: 'park' },
      { kind: 'redrive' },
      { kind: 'discard' },
      { kind: 'repair' },
    ),
    fc.record({ ...just('schedule'), runAt: numbers }),
    fc.record({ ...just('reschedule'), runAt: numbers }),
    fc.record({ ...just('prioritise'), priority: numbers }),
    fc.record({
      ...just('claim'),
      claim: fc.oneof(fc.constant(ID), texts),
      worker: texts,
      leaseUntil: numbers,
      start: fc.boolean(),
    }),
    fc.record({ ...just('start'), fence }),
    fc.record({ ...just('step'), fence, name: texts, n: numbers }),
    withUsage(fc.record({ ...just('commit'), fence, effects: numbers })),
    withUsage(fc.record({ ...just('fail'), fence, failure: failures })),
    fc.record({ ...just('release'), fence }),
    fc.record({ ...just('suspend'), fence, runAt: numbers }),
    fc.record({ ...just('done'), attempt: numbers }),
    fc.record({ ...just('expire'), fence, approved: fc.boolean() }),
    fc.record({ ...just('cancel'), fence }),
    fc.record({ ...just('force'), to: texts }),
    fc.record({ ...just('repair'), to: texts }),
  )
}

/** Mostly the time of the job and a good name, so that many a command gets past the first check. */
function contextsAt(now: number): fc.Arbitrary<Context> {
  const mostly = <T>(good: T, any: fc.Arbitrary<T>) =>
    fc.oneof({ arbitrary: fc.constant(good), weight: 8 }, { arbitrary: any, weight: 1 })
  return fc
    .tuple(
      object({
        now: mostly(now, numbers),
        random: mostly(0.5, numbers),
        actor: fc.constantFrom('worker', 'client', 'engine', 'doctor', 'operator'),
      }),
      mostly({ operator: 'ann' }, maybe('operator', texts)),
      mostly({ note: 'why' }, maybe('note', texts)),
      mostly({}, maybe('metadata', records(texts))),
      mostly({}, maybe('traceId', texts)),
      mostly({}, maybe('spanId', texts)),
    )
    .map((parts) => Object.assign({}, ...parts) as Context)
}

/** The answer is a value; where it is a fact, the fact survives its storage. */
function expectAnswer(lifecycle: Lifecycle, job: Job | null, command: Command, context: Context) {
  const answer = decide(lifecycle, job, command, context)
  if (answer.kind === 'rejected') {
    expect(answer.error).toBeInstanceOf(PawlError)
    expect(answer.error.code).toMatch(/^E_[A-Z_]+$/)
    expect(answer.error.message).not.toBe('')
  }
  if (answer.kind === 'fact') {
    const read = decode(encode(answer.fact)) as unknown as Fact
    expect(encode(evolve(job, read))).toBe(encode(evolve(job, answer.fact)))
  }
}

describe('hostile values', () => {
  it('never make a creation throw, or write what cannot be read back', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...EVERY_LIFECYCLE),
        creations,
        contextsAt(START),
        (lifecycle, command, context) => expectAnswer(lifecycle, null, command, context),
      ),
      { numRuns: 1000 },
    )
  })

  it('never make any other command throw, wherever the job stands', () => {
    const cases = histories({ lifecycles: EVERY_LIFECYCLE, commandsMax: 15 }).chain(({ script }) =>
      fc.tuple(
        fc.constant(script),
        fc.array(fc.tuple(commandsFor(script.job), contextsAt(script.clock.now())), {
          minLength: 10,
          maxLength: 10,
        }),
      ),
    )
    fc.assert(
      fc.property(cases, ([{ lifecycle, job, facts }, asked]) => {
        for (const [command, context] of asked) {
          expectAnswer(lifecycle, job, command, context)
          expectAnswer(lifecycle, null, command, context)
        }
        expect(checkP9(job, facts)).toEqual([])
      }),
      { numRuns: 200 },
    )
  })

  it('in the policy of a job are refused, since every later fact is made from them', () => {
    const policies: JobPolicy[] = [
      { ...standard.policy, crashesMax: Number.NaN },
      { ...standard.policy, releasesMax: -1 },
      { ...standard.policy, retry: { ...standard.policy.retry, max: Number.POSITIVE_INFINITY } },
      { ...standard.policy, retry: { ...standard.policy.retry, delayMs: 0.5 } },
      { ...standard.policy, retry: { ...standard.policy.retry, delayMs: -1000 } },
      { ...standard.policy, retry: { ...standard.policy.retry, jitter: Number.NaN } },
    ]
    const context: Context = { now: START, random: 0, actor: 'client' }
    for (const policy of policies) {
      const command: Command = { kind: 'create', jobId: ID, type: 't', queue: 'q', policy }
      const answer = decide(standard, null, command, context)
      expect(answer, JSON.stringify(policy)).toMatchObject({
        kind: 'rejected',
        error: { code: 'E_COMMAND_INVALID' },
      })
    }
  })
})
