// Every command in every state of a run, and exactly which facts it gives.
import { decideRun, foldRun, type RunCommand, toEvents } from 'pawl/rules'
import { documentationRun } from 'pawl/runs'
import { describe, expect, it } from 'vitest'
import {
  ACTIVE,
  answerOf,
  ENDED,
  errorOf,
  factsOf,
  hash,
  newRun,
  runIn,
  STATES,
  throughText,
} from './run-support.ts'

/** One well-formed command of each kind that brings something new to any run. */
const NEWS: readonly RunCommand[] = [
  { kind: 'write-artifact', name: 'n', path: 'p', sha256: hash(1), worker: 'w' },
  { kind: 'start-item', key: 'n', inputs: {}, worker: 'w' },
  { kind: 'change-section', section: 'n', to: 'drafted' },
  { kind: 'open-issue', issue: 'n', severity: 'blocker', message: 'm' },
  { kind: 'discard-tail', bytes: 1, sha256: hash(1) },
]

/** One well-formed command of each kind that speaks of something a new run does not have. */
const OF_NOTHING: readonly RunCommand[] = [
  { kind: 'invalidate-artifact', name: 'n' },
  { kind: 'revalidate-artifact', name: 'n' },
  { kind: 'finish-item', key: 'n' },
  { kind: 'fail-item', key: 'n', error: 'e' },
  { kind: 'resolve-issue', issue: 'n' },
]

const LINK: RunCommand = { kind: 'link-commit', sha: 'a'.repeat(40) }
const RECORD: RunCommand = { kind: 'record-validation', ok: true }
const REWIND: RunCommand = { kind: 'rewind', reason: 'resume' }
const ENDINGS: readonly RunCommand[] = [
  { kind: 'fail', reason: 'r' },
  { kind: 'cancel', reason: 'r' },
]

describe('a run that does not exist', () => {
  it('can be created, in the initial state of its machine and with three fix attempts', () => {
    const data = { state: 'CREATED', machine: 'run', machine_version: 1, max_fix_attempts: 3 }
    expect(decideRun(documentationRun, null, { kind: 'create' })).toEqual({
      kind: 'facts',
      facts: [{ type: 'RUN_CREATED', data }],
    })
  })

  it('is created with as many fix attempts as asked for', () => {
    for (const asked of [0, 1, 1000]) expect(newRun(asked).run.max_fix_attempts).toBe(asked)
  })

  it('answers every other command with RunNotFound', () => {
    const all = [...NEWS, ...OF_NOTHING, ...ENDINGS, LINK, RECORD, REWIND]
    for (const command of [...all, { kind: 'move', to: 'DONE' } as const]) {
      const decision = decideRun(documentationRun, null, command)
      expect([command.kind, answerOf(decision)]).toEqual([command.kind, 'E_RUN_NOT_FOUND'])
    }
  })
})

describe('a run that exists', () => {
  it('is not created again, whatever its state', () => {
    for (const state of STATES) {
      const error = errorOf(runIn(state).applyCommand({ kind: 'create' }))
      expect(error).toMatchObject({ code: 'E_RUN_EXISTS', details: { runId: 'run-1' } })
    }
  })

  it('takes artifacts, items, sections, issues and commits until it has ended', () => {
    for (const state of ACTIVE) {
      for (const command of [...NEWS, LINK]) {
        const script = runIn(state)
        const answer = answerOf(script.applyCommand(command))
        expect([state, command.kind, answer]).toEqual([state, command.kind, 'facts'])
        expect(script.run.run_state).toBe(state)
      }
    }
  })

  it('refuses in every state to speak of what it does not have', () => {
    for (const state of ACTIVE) {
      for (const command of OF_NOTHING) {
        const answer = answerOf(runIn(state).applyCommand(command))
        expect([state, command.kind, answer]).toEqual([state, command.kind, 'E_COMMAND_INVALID'])
      }
    }
  })

  it('records a validation in VALIDATING and nowhere else', () => {
    for (const state of ACTIVE) {
      const decision = runIn(state).applyCommand(RECORD)
      const expected = state === 'VALIDATING' ? 'facts' : 'E_COMMAND_INVALID'
      expect([state, answerOf(decision)]).toEqual([state, expected])
    }
    const error = errorOf(runIn('FIXING').applyCommand(RECORD))
    expect(error.message).toBe('"validation" is recorded only in VALIDATING')
  })
})

describe('a run that has ended', () => {
  it('takes no command but a link to a commit and the record of a torn tail', () => {
    for (const state of ENDED) {
      const script = runIn(state)
      const before = script.run
      const commands = [...NEWS, ...OF_NOTHING, ...ENDINGS, RECORD, REWIND]
      for (const command of commands.filter(({ kind }) => kind !== 'discard-tail')) {
        const error = errorOf(script.applyCommand(command))
        expect([command.kind, error.code]).toEqual([command.kind, 'E_RUN_ENDED'])
        expect(error.details).toEqual({ runId: 'run-1', state })
      }
      expect(script.run).toBe(before)
      const fact = { type: 'COMMIT_LINKED', data: { sha: 'a'.repeat(40) } }
      expect(factsOf(script.applyCommand(LINK))).toEqual([fact])
      expect(script.applyCommand(LINK)).toEqual({ kind: 'same' })
      expect(script.run).toEqual({ ...before, last_seq: before.last_seq + 1, commits: [LINK.sha] })
      const torn = { kind: 'discard-tail', bytes: 7, sha256: '0'.repeat(64) } as const
      expect(factsOf(script.applyCommand(torn))).toMatchObject([{ type: 'LOG_TAIL_DISCARDED' }])
    }
  })

  it('is in its final state even if the log breaks off before the reason', () => {
    for (const kind of ['fail', 'cancel'] as const) {
      const script = runIn('DRAFTING')
      script.applyCommand({ kind, reason: 'enough' })
      const cut = foldRun(script.events.slice(0, -1))
      const run_state = kind === 'fail' ? 'FAILED' : 'CANCELLED'
      expect(cut).toEqual({ ...script.run, last_seq: cut?.last_seq, ended_because: null })
      expect(cut?.run_state).toBe(run_state)
    }
  })
})

describe('a move', () => {
  it('to FAILED or CANCELLED ends the run, and the state it was left in is the reason', () => {
    const ends = [['FAILED', 'RUN_FAILED'] as const, ['CANCELLED', 'RUN_CANCELLED'] as const]
    for (const [to, type] of ends) {
      expect(factsOf(runIn('LINKING').walk(to))).toEqual([
        { type: 'RUN_STATE_CHANGED', data: { from_state: 'LINKING', to_state: to } },
        { type, data: { reason: 'LINKING' } },
      ])
    }
  })

  it('says in its fact what the fold must know of the state, and no more', () => {
    const data = (from: 'FACTS_READY' | 'PLAN_READY' | 'LINKING', to: string) =>
      factsOf(runIn(from).walk(to))[0]?.data
    const moved = { from_state: 'FACTS_READY', to_state: 'PLAN_READY' }
    expect(data('FACTS_READY', 'PLAN_READY')).toEqual({ ...moved, stable: true })
    const drafting = { from_state: 'PLAN_READY', to_state: 'DRAFTING' }
    expect(data('PLAN_READY', 'DRAFTING')).toEqual(drafting)
    const validating = { from_state: 'LINKING', to_state: 'VALIDATING', validating: true }
    expect(data('LINKING', 'VALIDATING')).toEqual(validating)
    const script = runIn('FIXING')
    const fixing = { from_state: 'VALIDATING', to_state: 'FIXING', fix_pending: true }
    expect(script.events.at(-1)?.data).toEqual(fixing)
  })

  it('to a state that the machine does not have is refused, whatever its name', () => {
    for (const to of ['', 'done', 'constructor', '__proto__', 'toString', 'NOWHERE']) {
      const error = errorOf(runIn('PR_OPENED').walk(to))
      expect(error.message).toBe(`Invalid transition: PR_OPENED → ${to}`)
    }
  })

  it('out of a state that the machine does not have is refused, with no way out', () => {
    const run = { ...newRun().run, run_state: 'GONE' }
    const error = errorOf(decideRun(documentationRun, run, { kind: 'move', to: 'DONE' }))
    expect(error).toMatchObject({ code: 'E_TRANSITION_INVALID', from: 'GONE', allowed: [] })
  })
})

describe('envelopes', () => {
  it('number the facts on from the last event and give each an id of its own', () => {
    const facts = factsOf(runIn('DRAFTING').applyCommand({ kind: 'fail', reason: 'r' }))
    const envelope = { ts: '2026-01-01T00:00:00.000Z', trace_id: 't', span_id: 's', actor: 'ann' }
    let last = 0
    const events = toEvents('run-7', 41, facts, envelope, () => `id-${++last}`)
    expect(events).toEqual([
      { ...facts[0], ...envelope, event_id: 'id-1', run_id: 'run-7', seq: 42 },
      { ...facts[1], ...envelope, event_id: 'id-2', run_id: 'run-7', seq: 43 },
    ])
  })

  it('give a first event that is number one', () => {
    expect(newRun().events.map(({ seq, type }) => [seq, type])).toEqual([[1, 'RUN_CREATED']])
    expect(foldRun(throughText(newRun().events))?.last_seq).toBe(1)
  })
})
