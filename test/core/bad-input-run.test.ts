// What anybody may send to a run: it is refused by name or kept as it was.
import fc from 'fast-check'
import { decode, encode, foldRun, type RunCommand, type RunDecision } from 'pawl/rules'
import { documentationRun, type RunEvent } from 'pawl/runs'
import { RunScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { entries, type Field, NAME, text, whole } from './bad-values.ts'

const HEX = '0123456789abcdef'
const SHA256: Field = {
  refused: [
    '',
    HEX.repeat(4).slice(1),
    `${HEX.repeat(4)}0`,
    HEX.repeat(4).toUpperCase(),
    `g${HEX.repeat(4).slice(1)}`,
    `${HEX.repeat(4)}\n`,
    7,
    null,
  ],
  taken: [HEX.repeat(4), '0'.repeat(64)],
}
const GIT_SHA: Field = {
  refused: ['', 'abc1234', HEX.repeat(3), 'A'.repeat(40), `${'a'.repeat(40)}\n`, null],
  taken: ['a'.repeat(40), HEX.repeat(4)],
}
const INPUTS: Field = {
  refused: [
    { '': 'h' },
    { a: '' },
    { a: 7 },
    { 'a\n': 'h' },
    { a: '\ud800' },
    entries(10_001, 'h'),
  ],
  taken: [{}, { plan: HEX }, entries(10_000, 'h'), { ['__proto__']: 'h' }],
}

/** A run that has what the commands below speak of. */
function prepared(): RunScript {
  const script = new RunScript(documentationRun)
  script.applyCommand({ kind: 'create' })
  script.applyCommand({ kind: 'start-item', key: 'item', inputs: {}, worker: 'w' })
  return script
}

const VALID: Partial<Record<RunCommand['kind'], object>> = {
  'write-artifact': { name: 'plan', path: 'plan.md', sha256: HEX.repeat(4), worker: 'w' },
  'start-item': { key: 'other', inputs: {}, worker: 'w' },
  'finish-item': { key: 'item' },
  'fail-item': { key: 'item', error: 'boom' },
  'change-section': { section: 'intro', to: 'drafted' },
  'open-issue': { issue: 'gap', severity: 'error', message: 'a gap' },
  'discard-tail': { bytes: 5, sha256: HEX.repeat(4) },
  'link-commit': { sha: 'a'.repeat(40) },
  fail: { reason: 'no way on' },
  cancel: { reason: 'not wanted' },
}

type Case = readonly [command: RunCommand['kind'], field: string, values: Field]

const CASES: readonly Case[] = [
  ['write-artifact', 'name', NAME],
  ['write-artifact', 'path', text(1024)],
  ['write-artifact', 'sha256', SHA256],
  ['write-artifact', 'schemaId', NAME],
  ['write-artifact', 'worker', NAME],
  ['write-artifact', 'workItem', NAME],
  ['start-item', 'key', NAME],
  ['start-item', 'inputs', INPUTS],
  ['start-item', 'code', NAME],
  ['start-item', 'worker', NAME],
  ['finish-item', 'inputs', INPUTS],
  ['fail-item', 'error', text(4000)],
  ['change-section', 'section', NAME],
  ['change-section', 'to', NAME],
  ['open-issue', 'issue', NAME],
  ['open-issue', 'message', text(4000)],
  ['discard-tail', 'bytes', whole(1, Number.MAX_SAFE_INTEGER)],
  ['discard-tail', 'sha256', SHA256],
  ['link-commit', 'sha', GIT_SHA],
  ['fail', 'reason', text(2000)],
  ['cancel', 'reason', text(2000)],
]

const command = (kind: RunCommand['kind'], field: string, value: unknown) =>
  ({ kind, ...VALID[kind], [field]: value }) as unknown as RunCommand

describe('a field of a run command', () => {
  it.each(CASES)('out of bounds is refused by name: %s %s', (kind, field, { refused }) => {
    const script = prepared()
    const before = script.run
    for (const value of refused) {
      expectRefused(script.applyCommand(command(kind, field, value)), field, value)
    }
    expect(script.run).toBe(before)
  })

  it.each(CASES)('at the edge of its bounds is taken: %s %s', (kind, field, { taken }) => {
    for (const value of taken) {
      const script = prepared()
      const decision = script.applyCommand(command(kind, field, value))
      expect([value, decision.kind]).toEqual([value, 'facts'])
      expectSurvives(script)
    }
  })

  it('that names something which must exist is refused by name too', () => {
    const named = ['invalidate-artifact', 'revalidate-artifact'] as const
    for (const value of NAME.refused) {
      for (const kind of named) expectRefused(ask(kind, { name: value }), 'name', value)
      expectRefused(ask('resolve-issue', { issue: value }), 'issue', value)
      expectRefused(ask('finish-item', { key: value }), 'key', value)
      expectRefused(ask('fail-item', { key: value, error: 'boom' }), 'key', value)
    }
    for (const kind of named) {
      expect(ask(kind, { name: 'nothing' })).toMatchObject({ error: { code: 'E_COMMAND_INVALID' } })
    }
  })

  it('of the first command is bounded as well', () => {
    const { refused, taken } = whole(0, 1000)
    for (const value of refused) {
      const script = new RunScript(documentationRun)
      const decision = script.applyCommand({ kind: 'create', maxFixAttempts: value as number })
      expectRefused(decision, 'maxFixAttempts', value)
      expect(script.events).toEqual([])
    }
    for (const value of taken) {
      const script = new RunScript(documentationRun)
      script.applyCommand({ kind: 'create', maxFixAttempts: value as number })
      expect(script.run.max_fix_attempts).toBe(value)
    }
  })

  it('that names a state which the machine does not have leads nowhere', () => {
    for (const to of ['', 'created', '__proto__', '\ud800']) {
      expect(ask('move', { to })).toMatchObject({ error: { code: 'E_TRANSITION_INVALID' } })
      const stale = ask('rewind', { reason: 'stale', to })
      expect(stale).toMatchObject({ error: { code: 'E_REWIND_REFUSED' } })
    }
  })
})

describe('what only the types of run commands forbid', () => {
  it('is refused where a word is not in its list: the severity of an issue', () => {
    for (const severity of ['', 'fatal', '\ud800', undefined]) {
      expect(ask('open-issue', { ...VALID['open-issue'], severity }).kind).toBe('rejected')
    }
  })

  it('is refused where a word is not in its list: the reason of a rewind', () => {
    const script = prepared()
    script.walk('CLONED_INPUTS', 'INGESTED', 'FACTS_READY', 'PLAN_READY', 'DRAFTING')
    const odd = { kind: 'rewind', reason: 'because', to: 'PLAN_READY' } as unknown as RunCommand
    expect(script.applyCommand(odd).kind).toBe('rejected')
  })

  it('is refused where a state has a longer name than any state can have', () => {
    const odd = { kind: 'move', to: 'x'.repeat(256) } as const
    expect(prepared().applyCommand(odd)).toMatchObject({ error: { code: 'E_COMMAND_INVALID' } })
  })

  it('is refused where there is no such command', () => {
    const odd = { kind: 'rewrite-history' } as unknown as RunCommand
    expect(prepared().applyCommand(odd)).toMatchObject({ error: { details: { field: 'kind' } } })
  })

  it('is refused where inputs are no object', () => {
    for (const inputs of [null, undefined, 'a', ['a']]) {
      const odd = { ...VALID['start-item'], kind: 'start-item', inputs } as unknown as RunCommand
      const answer = prepared().applyCommand(odd)
      expect(answer).toMatchObject({ error: { code: 'E_COMMAND_INVALID' } })
    }
  })

  it('is refused where a yes or no is neither', () => {
    const script = prepared()
    script.walk('CLONED_INPUTS', 'INGESTED', 'FACTS_READY', 'PLAN_READY', 'DRAFTING')
    script.walk('DRAFT_READY', 'LINKING', 'VALIDATING')
    for (const ok of ['true', 1, null, undefined]) {
      const odd = { kind: 'record-validation', ok } as unknown as RunCommand
      expect([ok, script.applyCommand(odd).kind]).toEqual([ok, 'rejected'])
    }
  })
})

describe('whatever a run accepts', () => {
  it('is the same after it was written and read, as is the run that it makes', () => {
    const anyText = fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc.array(fc.nat({ max: 0xffff })).map((units) => String.fromCharCode(...units)),
      fc.constantFrom('__proto__', 'constructor', 'toString'),
    )
    const commands = fc.oneof(
      fc.record({ kind: fc.constant('change-section'), section: anyText, to: anyText }),
      fc.record({
        kind: fc.constant('open-issue'),
        issue: anyText,
        severity: fc.constant('error'),
        message: anyText,
      }),
      fc.record({
        kind: fc.constant('start-item'),
        key: anyText,
        inputs: fc.dictionary(anyText, anyText, { maxKeys: 3 }),
        worker: anyText,
      }),
      fc.record({
        kind: fc.constant('write-artifact'),
        name: anyText,
        path: anyText,
        sha256: fc.constant(HEX.repeat(4)),
        worker: anyText,
      }),
      fc.record({ kind: fc.constant('fail-item'), key: fc.constant('item'), error: anyText }),
    )
    fc.assert(
      fc.property(fc.array(commands, { maxLength: 6 }), (all) => {
        const script = prepared()
        for (const one of all) script.applyCommand(one as RunCommand)
        expectSurvives(script)
      }),
      { numRuns: 300 },
    )
  })
})

function ask(kind: RunCommand['kind'], fields: object): RunDecision {
  return prepared().applyCommand({ kind, ...fields } as RunCommand)
}

function expectRefused(decision: RunDecision, field: string, value: unknown): void {
  const found = decision.kind === 'rejected' ? decision.error : { code: decision.kind, details: {} }
  expect([value, found.code, found.details]).toEqual([
    value,
    'E_COMMAND_INVALID',
    { field, why: expect.stringMatching(/\S/) },
  ])
}

/** Events that were stored as text make the run that they made. */
function expectSurvives(script: RunScript): void {
  const lines = script.events.map((event) => encode(event))
  const read = lines.map((line) => decode(line) as unknown as RunEvent)
  expect(encode(foldRun(read))).toBe(encode(script.run))
}
