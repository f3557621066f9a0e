// Run machines that users define: what is refused, and that nothing hangs on R4's names.
import { DefinitionInvalid, defineMachine, type StateSpec } from 'pawl/rules'
import { defineRunMachine } from 'pawl/runs'
import { RunScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { answerOf, errorOf, factsOf } from './run-support.ts'

const ends = {
  shipped: { meaning: 'Out.', terminal: true },
  broken: { meaning: 'Not out.', terminal: true },
  stopped: { meaning: 'Not wanted.', terminal: true },
} as const

type Edge = { from: string; to: string; on: string[] }

const way = (from: string, to: string): Edge => ({ from, to, on: [`to-${to}`] })

/** Ways to both bad ends from each of these states. */
const bothEnds = (...states: string[]) =>
  states.flatMap((from) => [way(from, 'broken'), way(from, 'stopped')])

function machineOf(states: Record<string, StateSpec>, edges: Edge[], sameState?: 'noop') {
  const initial = Object.keys(states)[0] ?? ''
  const shape = { name: 'release', version: 3, initial, sameState: sameState ?? 'refuse' } as const
  return defineMachine<string, string>({ ...shape, states: { ...states, ...ends }, edges })
}

const plain = (state: string) => ({ [state]: { meaning: 'Busy.' } })
const bad = { failed: 'broken', cancelled: 'stopped' }

/** build → test → shipped, without a fix loop. */
const simple = defineRunMachine({
  machine: machineOf({ ...plain('build'), ...plain('test') }, [
    way('build', 'test'),
    way('test', 'shipped'),
    ...bothEnds('build', 'test'),
  ]),
  ...bad,
})

function created(machine = simple): RunScript {
  const script = new RunScript(machine)
  script.applyCommand({ kind: 'create' })
  return script
}

describe('a run machine is refused', () => {
  it('when the same state again would be a no-op', () => {
    const edges = [way('build', 'shipped'), ...bothEnds('build')]
    const machine = machineOf(plain('build'), edges, 'noop')
    expect(() => defineRunMachine({ machine, ...bad })).toThrow(DefinitionInvalid)
  })

  it('when some state that has not ended cannot fail or cannot be cancelled', () => {
    for (const end of ['broken', 'stopped']) {
      const all = [way('build', 'test'), way('test', 'shipped'), ...bothEnds('build', 'test')]
      const edges = all.filter((edge) => edge.from !== 'test' || edge.to !== end)
      const machine = machineOf({ ...plain('build'), ...plain('test') }, edges)
      const refusal = new RegExp(`"release": there is no edge from test to ${end}`)
      expect(() => defineRunMachine({ machine, ...bad })).toThrow(refusal)
    }
  })

  it('when its failed or cancelled state does not exist or has not ended', () => {
    const { machine } = simple
    for (const wrong of ['nowhere', 'test', 'toString']) {
      for (const part of ['failed', 'cancelled']) {
        expect(() => defineRunMachine({ machine, ...bad, [part]: wrong })).toThrow(
          DefinitionInvalid,
        )
      }
    }
  })

  it('when its fix loop names a state that the machine does not have', () => {
    const { machine } = simple
    const loop = { validating: 'build', fixing: 'test', passed: 'shipped' }
    expect(defineRunMachine({ machine, ...bad, fixLoop: loop }).fixLoop).toEqual(loop)
    for (const part of ['validating', 'fixing', 'passed']) {
      const fixLoop = { ...loop, [part]: 'mend' }
      const define = () => defineRunMachine({ machine, ...bad, fixLoop })
      expect(define).toThrow(/it has no state mend/)
    }
  })
})

describe('a machine without a fix loop', () => {
  it('runs from its initial state to its end, under its own name and version', () => {
    const script = created()
    expect(script.run).toMatchObject({
      run_state: 'build',
      machine: { name: 'release', version: 3 },
    })
    expect(answerOf(script.walk('test', 'shipped'))).toBe('facts')
    expect(answerOf(script.applyCommand({ kind: 'fail', reason: 'late' }))).toBe('E_RUN_ENDED')
  })

  it('has no guards, and no validation to record', () => {
    const error = errorOf(created().applyCommand({ kind: 'record-validation', ok: true }))
    expect(error.message).toBe('"validation" is recorded only in a machine with a fix loop')
  })

  it('ends in its own states, by command and by move', () => {
    const ways = [
      ['fail', 'broken', 'RUN_FAILED'] as const,
      ['cancel', 'stopped', 'RUN_CANCELLED'] as const,
    ]
    for (const [kind, to_state, type] of ways) {
      const moved = { type: 'RUN_STATE_CHANGED', data: { from_state: 'build', to_state } }
      const told = factsOf(created().applyCommand({ kind, reason: 'r' }))
      expect(told).toEqual([moved, { type, data: { reason: 'r' } }])
      expect(factsOf(created().walk(to_state))).toEqual([
        moved,
        { type, data: { reason: 'build' } },
      ])
    }
  })

  it('has nowhere to rewind to before a stable state was visited', () => {
    const states = { build: { meaning: 'Busy.', transitional: true }, ...plain('test') }
    const edges = [way('build', 'test'), way('test', 'shipped'), ...bothEnds('build', 'test')]
    const machine = defineRunMachine({ machine: machineOf(states, edges), ...bad })
    const error = errorOf(created(machine).applyCommand({ kind: 'rewind', reason: 'resume' }))
    expect(error.message).toBe('Run run-1 cannot be rewound: no stable state was visited')
  })

  it('rewinds to its initial state if that is stable', () => {
    const states = {
      build: { meaning: 'Ready.', stable: true },
      test: { meaning: 'Busy.', transitional: true },
    }
    const edges = [way('build', 'test'), way('test', 'shipped'), ...bothEnds('build', 'test')]
    const script = created(defineRunMachine({ machine: machineOf(states, edges), ...bad }))
    script.walk('test')
    const rewound = script.applyCommand({ kind: 'rewind', reason: 'resume' })
    const data = { from_state: 'test', to_state: 'build', reason: 'resume' }
    expect(factsOf(rewound)).toEqual([{ type: 'RESUME_REWIND', data }])
  })
})

describe('a machine with a fix loop of its own', () => {
  const loop = { validating: 'check', fixing: 'mend', passed: 'ready' }
  const states = { ...plain('check'), ...plain('mend'), ready: { meaning: 'Good.', stable: true } }
  const edges = [
    ...[way('check', 'mend'), way('mend', 'check'), way('check', 'ready'), way('ready', 'shipped')],
    ...[way('ready', 'check'), ...bothEnds('check', 'mend', 'ready')],
  ]
  const looped = defineRunMachine({ machine: machineOf(states, edges), ...bad, fixLoop: loop })

  it('guards its own states and counts its own fixes', () => {
    const script = new RunScript(looped)
    script.applyCommand({ kind: 'create', maxFixAttempts: 1 })
    expect(answerOf(script.walk('ready'))).toBe('E_GUARD_REFUSED')
    script.applyCommand({ kind: 'record-validation', ok: false })
    expect(answerOf(script.walk('mend', 'check'))).toBe('facts')
    expect(script.run).toMatchObject({ fix_attempts: 1, validation: null })
    script.applyCommand({ kind: 'record-validation', ok: false })
    script.walk('mend')
    expect(script.run.run_state).toBe('broken')
  })

  it('may come back to a stable state, and rewinds to the last visit of it', () => {
    const script = created(looped)
    for (let i = 0; i < 2; i++) {
      script.applyCommand({ kind: 'record-validation', ok: true })
      script.walk('ready', 'check')
    }
    expect(script.run.stable_trail).toEqual(['ready', 'ready'])
    script.applyCommand({ kind: 'rewind', reason: 'stale', to: 'ready' })
    expect(script.run).toMatchObject({ run_state: 'ready', stable_trail: ['ready', 'ready'] })
  })
})
