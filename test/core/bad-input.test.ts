// What anybody may send: whatever a command holds, it is refused by name or kept as it was.
import fc from 'fast-check'
import {
  type Command,
  type Context,
  classify,
  DEFAULT_POLICY,
  type Decision,
  decide,
  decode,
  encode,
  evolve,
  FAILURE_KINDS,
  type Fact,
  standard,
  task,
} from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { DELAY_MAX_MS } from '../../src/core/retry.ts'
import { entries, type Field, NAME, TIME, text, USAGE, UUID, whole } from './bad-values.ts'

type Situation = 'none' | 'created' | 'queued' | 'running' | 'quarantined'
type Case = readonly [command: Command['kind'], field: string, at: Situation, values: Field]

/** A job of the standard lifecycle in a state. */
function jobIn(state: Situation): JobScript {
  const script = new JobScript(standard)
  if (state !== 'none') script.create({ hold: state === 'created' })
  if (state === 'running') script.claim()
  if (state === 'quarantined') script.operate({ kind: 'park' })
  return script
}

/** A command of each kind that is accepted as it stands. */
function valid(kind: Command['kind'], script: JobScript): object {
  const soon = script.clock.now() + 1000
  const fence = script.facts.some(({ trigger }) => trigger === 'claim') ? script.fence : undefined
  const id = '01890000-0000-7000-8000-000000000009'
  const fields: Partial<Record<Command['kind'], object>> = {
    create: { jobId: id, type: 'scan', queue: 'default' },
    schedule: { runAt: soon },
    reschedule: { runAt: soon },
    suspend: { runAt: soon, fence },
    prioritise: { priority: 1 },
    claim: { claim: id, worker: 'worker-1', leaseUntil: soon, start: true },
    step: { fence, name: 'read', n: 1 },
    commit: { fence },
    fail: { fence, failure: classify(new Error('boom')) },
    force: { to: 'failed' },
  }
  return { kind, ...fields[kind] }
}

/** Sets a field, also one inside of another. */
function withField(command: object, field: string, value: unknown): Command {
  const [outer = '', inner] = field.split('.')
  const before = (command as Record<string, object>)[outer]
  return {
    ...command,
    [outer]: inner === undefined ? value : { ...before, [inner]: value },
  } as Command
}

/** A refusal must name the field; `failure.kind` is told as `failure`, its parts by their names. */
const TOLD_AS: Record<string, string> = {
  'failure.kind': 'failure',
  'failure.retryAfterMs': 'retryAfterMs',
}

const PRIORITY = whole(-32_767, 32_767)
const kinds = Object.keys(FAILURE_KINDS)
const KIND: Field = { refused: ['', 'odd', 'toString', '__proto__', null], taken: kinds }
const MESSAGE: Field = {
  refused: ['x'.repeat(4002), 'a\0', '\ud800', 7, null],
  taken: ['', 'x'.repeat(4001), 'two\nlines'],
}
const numbered = (count: number) => Object.keys(entries(count, 0))
const TAGS: Field = {
  refused: [['a', 'a'], [''], ['a', 'b\n'], ['\ud800'], [7], numbered(33)],
  taken: [[], ['a'], numbered(32), ['x'.repeat(255)]],
}
const LEASE: Field = {
  refused: [...TIME.refused, 0, Date.UTC(2026, 0, 1)],
  taken: [Date.UTC(2026, 0, 1) + 1, Number.MAX_SAFE_INTEGER],
}

const keys = (...gates: string[]) => gates.map((gate) => ({ gate }))
const LIMIT_KEYS: Field = {
  refused: [
    7,
    [7],
    keys('other'),
    keys('shared/a', 'shared/a'),
    keys('queue/main'),
    keys('shared/a b'),
    keys('shared/\ud800'),
    keys(`shared/${'x'.repeat(600)}`),
    keys(...Array.from({ length: 9 }, (_, n) => `shared/${n}`)),
    [{ gate: 'shared/a', max: -1 }],
    [{ gate: 'shared/a', max: 1_000_001 }],
    [{ gate: 'shared/a', units: 1 }],
    [{ gate: 'rate/t/a', units: 0 }],
    [{ gate: 'rate/t/a', max: 1 }],
  ],
  taken: [
    [],
    keys('shared/a', 'type/t', 'job/t/l/k', 'rate/t/r', 'rate/t/r2/k'),
    [{ gate: 'shared/a', max: 0 }],
    [{ gate: 'rate/t/a', units: 5 }],
  ],
}

const CASES: readonly Case[] = [
  ['create', 'jobId', 'none', UUID],
  ['create', 'type', 'none', NAME],
  ['create', 'queue', 'none', NAME],
  ['create', 'priority', 'none', PRIORITY],
  ['create', 'aheadMs', 'none', whole(0, 86_400_000)],
  ['create', 'tags', 'none', TAGS],
  ['create', 'key', 'none', NAME],
  ['create', 'limitKeys', 'none', LIMIT_KEYS],
  ['replace', 'limitKeys', 'queued', LIMIT_KEYS],
  ['create', 'retryOf', 'none', UUID],
  ['create', 'timeoutMs', 'none', whole(1, DELAY_MAX_MS)],
  ['create', 'deadlineAt', 'none', TIME],
  ['create', 'runAt', 'none', TIME],
  ['schedule', 'runAt', 'created', TIME],
  ['reschedule', 'runAt', 'queued', TIME],
  ['suspend', 'runAt', 'running', TIME],
  ['prioritise', 'priority', 'queued', PRIORITY],
  ['claim', 'claim', 'queued', UUID],
  ['claim', 'worker', 'queued', NAME],
  ['claim', 'leaseUntil', 'queued', LEASE],
  ['step', 'name', 'running', NAME],
  ['step', 'n', 'running', whole(1, Number.MAX_SAFE_INTEGER)],
  ['commit', 'effects', 'running', whole(0, 10_000)],
  ['commit', 'usage', 'running', USAGE],
  ['fail', 'failure.kind', 'running', KIND],
  ['fail', 'failure.message', 'running', MESSAGE],
  ['fail', 'failure.retryAfterMs', 'running', whole(0, DELAY_MAX_MS)],
  ['fail', 'usage', 'running', USAGE],
]

describe('a field of a command', () => {
  it.each(CASES)('out of bounds is refused by name: %s %s', (kind, field, at, { refused }) => {
    for (const value of refused) {
      const script = jobIn(at)
      const before = script.facts.length
      const decision = script.applyCommand(withField(valid(kind, script), field, value))
      expectRefused(decision, TOLD_AS[field] ?? field, value)
      expect(script.facts).toHaveLength(before)
    }
  })

  it.each(CASES)('at the edge of its bounds is taken: %s %s', (kind, field, at, { taken }) => {
    for (const value of taken) {
      const script = jobIn(at)
      const decision = script.applyCommand(withField(valid(kind, script), field, value))
      // To move a due time to one that has passed is nothing new for a job that is due.
      expect([value, decision.kind]).toEqual([value, expect.stringMatching(/^(fact|same)$/)])
      if (decision.kind === 'fact') expectSurvives(decision.fact)
    }
  })

  it('is refused before the job is even looked for', () => {
    const context: Context = { now: 5, random: 0, actor: 'client' }
    const decision = decide(standard, null, { kind: 'prioritise', priority: 0.5 }, context)
    expectRefused(decision, 'priority', 0.5)
  })
})

const CONTEXT: readonly (readonly [field: keyof Context, values: Field])[] = [
  ['now', TIME],
  ['random', { refused: [1, -0.1, NaN, Infinity, undefined], taken: [0, 0.999_999] }],
  ['operator', NAME],
  ['note', text(2000)],
  ['traceId', NAME],
  ['spanId', NAME],
  ['traceFlags', whole(0, 1)],
  ['traceState', text(512)],
  [
    'metadata',
    {
      refused: [
        [],
        'a',
        { '': 'x' },
        { 'a\nb': 'x' },
        { a: '' },
        { a: 7 },
        { a: '\ud800' },
        { a: 'x'.repeat(2001) },
        entries(33, 'x'),
      ],
      taken: [{}, { a: 'x'.repeat(2000) }, entries(32, 'two\nlines'), { ['__proto__']: 'x' }],
    },
  ],
]

describe('a field of the context', () => {
  const script = jobIn('created')
  const good: Context = { now: script.clock.now(), random: 0.5, actor: 'client' }
  const ask = (context: object) =>
    decide(standard, script.job, { kind: 'submit' }, { ...good, ...context })

  it.each(CONTEXT)('out of bounds is refused by name: %s', (field, { refused }) => {
    for (const value of refused) expectRefused(ask({ [field]: value }), field, value)
  })

  it.each(CONTEXT)('at the edge of its bounds is taken: %s', (field, { taken }) => {
    for (const value of taken) {
      const decision = ask({ [field]: value })
      expect([value, decision.kind]).toEqual([value, 'fact'])
      if (decision.kind === 'fact') expectSurvives(decision.fact)
    }
  })

  it('must name an operator and a note for everything that only an operator may do', () => {
    const cases: [Command, 'operator' | 'doctor', JobScript][] = [
      [{ kind: 'park' }, 'operator', jobIn('queued')],
      [{ kind: 'redrive' }, 'operator', jobIn('quarantined')],
      [{ kind: 'discard' }, 'operator', jobIn('quarantined')],
      [{ kind: 'force', to: 'failed' }, 'operator', jobIn('queued')],
      [{ kind: 'repair' }, 'doctor', jobIn('queued')],
    ]
    for (const [command, actor, { job }] of cases) {
      const named = { ...good, actor, operator: 'ann', note: 'looked' } as const
      const { operator: _operator, ...nobody } = named
      const { note: _note, ...silent } = named
      expectRefused(decide(standard, job, command, nobody), 'operator', command.kind)
      expectRefused(decide(standard, job, command, silent), 'note', command.kind)
      for (const other of ['client', 'worker', 'engine'] as const) {
        const decision = decide(standard, job, command, { ...named, actor: other })
        expectRefused(decision, 'actor', other)
      }
      expect(decide(standard, job, command, named).kind).toBe('fact')
    }
  })

  it('must name an operator and a note where a person approves of an expiry', () => {
    const held = jobIn('running')
    held.clock.advance(30_000)
    const command: Command = { kind: 'expire', fence: held.fence, approved: true }
    expectRefused(held.applyCommand(command, { actor: 'engine' }), 'operator', 'approved')
    expect(held.operate(command).kind).toBe('fact')
  })
})

describe('what only the types forbid', () => {
  it('is refused where a word is not in its list: the class of a failure', () => {
    for (const word of ['', 'odd', '\ud800', undefined]) {
      const script = jobIn('running')
      const command = withField(valid('fail', script), 'failure.class', word)
      expect([word, script.applyCommand(command).kind]).toEqual([word, 'rejected'])
    }
  })

  it('is refused where a word is not in its list: the actor', () => {
    for (const actor of ['', 'root', '\ud800']) {
      const decision = jobIn('created').applyCommand(
        { kind: 'submit' },
        { actor: actor as 'client' },
      )
      expect([actor, decision.kind]).toEqual([actor, 'rejected'])
    }
  })

  it('is refused where a job brings a policy that could not have been defined', () => {
    const { retry } = DEFAULT_POLICY
    const policies = [
      { ...DEFAULT_POLICY, crashesMax: NaN },
      { ...DEFAULT_POLICY, releasesMax: -1 },
      { ...DEFAULT_POLICY, retry: { ...retry, delayMs: Infinity } },
      { ...DEFAULT_POLICY, retry: { ...retry, max: 1.5 } },
    ]
    for (const policy of policies) {
      expectRefused(new JobScript(standard).create({ policy }), 'policy', policy)
    }
  })

  it('is refused where a failure is no object', () => {
    for (const failure of [null, undefined, 'boom']) {
      const script = jobIn('running')
      const command = { kind: 'fail', fence: script.fence, failure } as unknown as Command
      expectRefused(script.applyCommand(command), 'failure', failure)
    }
  })

  it('is refused where a command of a holder comes without a fence', () => {
    const kinds = ['start', 'step', 'commit', 'fail', 'release', 'suspend', 'expire'] as const
    for (const kind of kinds) {
      const script = jobIn('running')
      script.clock.advance(kind === 'expire' ? 30_000 : 0)
      for (const fence of [undefined, null]) {
        const command = { ...valid(kind, script), kind, fence } as unknown as Command
        const { fence: _fence, ...without } = command as { fence?: unknown }
        for (const bad of [command, without as Command]) {
          expect([kind, answer(script, bad)]).toEqual([kind, 'rejected'])
        }
      }
    }
  })
})

/** The kind of an answer, or that there was none. */
function answer(script: JobScript, command: Command): string {
  try {
    return script.applyCommand(command).kind
  } catch (error) {
    return `threw ${String(error)}`
  }
}

/** Texts that users send, well-formed or not. */
const anyText = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.array(fc.nat({ max: 0xffff })).map((units) => String.fromCharCode(...units)),
)

describe('whatever is accepted', () => {
  it('is the same after it was written and read, as is the job that it makes', () => {
    const wished = fc.record(
      {
        type: anyText,
        queue: anyText,
        key: anyText,
        limitKeys: fc.array(fc.record({ gate: anyText.map((text) => `shared/${text}`) })),
        tags: fc.array(anyText, { maxLength: 4 }),
        priority: fc.oneof(fc.integer(), fc.double()),
        runAt: fc.oneof(fc.maxSafeNat(), fc.double()),
        deadlineAt: fc.oneof(fc.maxSafeNat(), fc.double()),
        timeoutMs: fc.oneof(fc.nat(), fc.double()),
      },
      { requiredKeys: [] },
    )
    const metadata = fc.dictionary(anyText, anyText, { maxKeys: 3 })
    fc.assert(
      fc.property(wished, metadata, anyText, (fields, extra, note) => {
        const script = new JobScript(task)
        const jobId = '01890000-0000-7000-8000-000000000009'
        const command: Command = { kind: 'create', jobId, type: 'scan', queue: 'q', ...fields }
        const decision = script.applyCommand(command, { metadata: extra, operator: 'ann', note })
        if (decision.kind === 'fact') expectSurvives(decision.fact)
        else expect(decision).toMatchObject({ error: { code: 'E_COMMAND_INVALID' } })
      }),
      { numRuns: 500 },
    )
  })
})

function expectRefused(decision: Decision, field: string, value: unknown): void {
  const found = decision.kind === 'rejected' ? decision.error : { code: decision.kind, details: {} }
  expect([value, found.code, found.details]).toEqual([
    value,
    'E_COMMAND_INVALID',
    { field, why: expect.stringMatching(/\S/) },
  ])
}

/** A fact that was stored as text is the fact that was decided. */
function expectSurvives(fact: Fact): void {
  const read = decode(encode(fact)) as unknown as Fact
  expect(encode(read)).toBe(encode(fact))
  if (fact.seq === 1) expect(evolve(null, read)).toEqual(evolve(null, fact))
}
