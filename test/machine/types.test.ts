// The types of machines and lifecycles. `tsc` checks this file with all others: a line under
// `@ts-expect-error` that compiles is itself an error. The running test then shows that what the
// compiler refuses is refused to programs without types as well.
import type { CommandInvalid, Lifecycle, PawlError } from 'pawl'
import {
  allowedFrom,
  analyse,
  type Decision,
  DefinitionInvalid,
  defineLifecycle,
  defineMachine,
  type EdgeSpec,
  executionMachine,
  hardened,
  type JobTrigger,
  leased,
  type Machine,
  MachineUnsound,
  type Move,
  move,
  standard,
  task,
  workerMachine,
} from 'pawl/rules'
import { documentationRun, type RunMachine } from 'pawl/runs'
import { describe, expect, expectTypeOf, it } from 'vitest'

const lamp = defineMachine({
  name: 'lamp',
  version: 1,
  initial: 'off',
  sameState: 'noop',
  states: {
    off: { meaning: 'Dark.' },
    on: { meaning: 'Bright.' },
    broken: { meaning: 'Dark for good.', terminal: true },
  },
  edges: [
    { from: 'off', to: 'on', on: ['press', 'clap'] },
    { from: 'on', to: 'off', on: ['press'] },
    { from: 'on', to: 'broken', on: ['drop'] },
  ],
})

type LampState = 'off' | 'on' | 'broken'
type LampTrigger = 'press' | 'clap' | 'drop'

describe('the states and triggers of a machine', () => {
  it('are inferred from its definition', () => {
    expectTypeOf(lamp).toEqualTypeOf<Machine<LampState, LampTrigger>>()
    expectTypeOf(lamp.initial).toEqualTypeOf<LampState>()
    expectTypeOf(lamp.edges).toEqualTypeOf<readonly EdgeSpec<LampState, LampTrigger>[]>()
    expectTypeOf(analyse(lamp).terminal).toEqualTypeOf<readonly LampState[]>()
    expectTypeOf(allowedFrom(lamp, 'off')).toEqualTypeOf<LampState[]>()
    expect(lamp.initial).toBe('off')
  })

  it('are those of the answer to a move', () => {
    const answer = move(lamp, 'off', { on: 'press' })
    expectTypeOf(answer).toEqualTypeOf<Move<LampState, LampTrigger>>()
    if (answer.kind === 'edge') expectTypeOf(answer.edge.to).toEqualTypeOf<LampState>()
    expect(answer).toMatchObject({ kind: 'edge', edge: { to: 'on' } })
  })

  it('are known of the machines that ship', () => {
    expectTypeOf(executionMachine).toEqualTypeOf<
      Machine<
        'LEASED' | 'IN_PROGRESS' | 'COMMITTED' | 'DONE' | 'ABORTED',
        'start' | 'commit' | 'done' | 'abort'
      >
    >()
    expectTypeOf(workerMachine.initial).extract<'Draining'>().toEqualTypeOf<'Draining'>()
    expectTypeOf(workerMachine.initial).not.toEqualTypeOf<string>()
    expectTypeOf(documentationRun.failed).extract<'FIXING'>().toEqualTypeOf<'FIXING'>()
    expectTypeOf(documentationRun.failed).not.toEqualTypeOf<string>()
    expect(documentationRun.failed).toBe('FAILED')
  })

  it('are forgotten where a machine is one among others', () => {
    expectTypeOf(lamp).toExtend<Machine>()
    expectTypeOf(task).toExtend<Lifecycle>()
    expectTypeOf(documentationRun).toExtend<RunMachine>()
  })
})

describe('the compiler refuses', () => {
  it('a move from or to a state that the machine does not have', () => {
    // @ts-expect-error 'dim' is no state
    expect(move(lamp, 'off', { to: 'dim' }).kind).toBe('invalid')
    // @ts-expect-error 'dim' is no state
    expect(move(lamp, 'dim', { to: 'off' }).kind).toBe('invalid')
    // @ts-expect-error 'dim' is no state
    expect(allowedFrom(lamp, 'dim')).toEqual([])
  })

  it('a move on a trigger that the machine does not have', () => {
    // @ts-expect-error 'kick' is no trigger
    expect(move(lamp, 'off', { on: 'kick' }).kind).toBe('invalid')
    // @ts-expect-error a state is no trigger
    expect(move(lamp, 'off', { on: 'off' }).kind).toBe('invalid')
  })

  it('an initial state that is not declared', () => {
    const define = () =>
      defineMachine({
        name: 'lamp',
        version: 1,
        // @ts-expect-error 'dim' is no state
        initial: 'dim',
        sameState: 'noop',
        states: { off: { meaning: 'Dark.', terminal: true } },
        edges: [],
      })
    expect(define).toThrow(MachineUnsound)
  })

  it('an edge from or to a state that is not declared', () => {
    const define = () =>
      defineMachine({
        name: 'lamp',
        version: 1,
        initial: 'off',
        sameState: 'noop',
        states: { off: { meaning: 'Dark.', terminal: true } },
        edges: [
          // @ts-expect-error 'dim' is no state
          { from: 'off', to: 'dim', on: ['turn'] },
          // @ts-expect-error 'dim' is no state
          { from: 'dim', to: 'off', on: ['turn'] },
        ],
      })
    expect(define).toThrow(MachineUnsound)
  })

  it('a way of its own with the same state', () => {
    const define = () =>
      defineMachine({
        name: 'lamp',
        version: 1,
        initial: 'off',
        // @ts-expect-error a machine repeats its state or refuses to
        sameState: 'maybe',
        states: { off: { meaning: 'Dark.', terminal: true } },
        edges: [],
      })
    expect(define).toThrow(DefinitionInvalid)
  })

  it('a change of a machine', () => {
    // @ts-expect-error machines are read only
    expect(() => (lamp.version = 2)).toThrow(TypeError)
    // @ts-expect-error its states cannot be added to
    const add = lamp.states.set
    expect(add).toBeTypeOf('function')
  })
})

describe('a lifecycle', () => {
  const states = {
    todo: { role: 'ready', meaning: 'To do.' },
    doing: { role: 'held', meaning: 'Being done.' },
    done: { role: 'succeeded', meaning: 'Done.' },
    lost: { role: 'failed', meaning: 'Lost.' },
  } as const

  it('has the states of its definition and the triggers of all jobs', () => {
    const own = defineLifecycle({
      name: 'own',
      version: 1,
      initial: 'todo',
      states,
      edges: [
        { from: 'todo', to: 'doing', on: ['claim'] },
        { from: 'doing', to: 'done', on: ['succeed'] },
        { from: 'doing', to: 'lost', on: ['fail', 'give-up', 'reject', 'cancel'] },
        { from: 'doing', to: 'todo', on: ['expire', 'release'] },
      ],
    })
    expectTypeOf(own).toEqualTypeOf<Lifecycle<'todo' | 'doing' | 'done' | 'lost', false>>()
    expectTypeOf(standard.canWait).toEqualTypeOf<true>()
    expectTypeOf(leased.canWait).toEqualTypeOf<false>()
    expect([standard.canWait, leased.canWait, own.canWait]).toEqual([true, false, false])
    expectTypeOf(own.ready).toEqualTypeOf<'todo' | 'doing' | 'done' | 'lost'>()
    expectTypeOf(task.machine).toEqualTypeOf<
      Machine<'pending' | 'running' | 'done' | 'error', JobTrigger>
    >()
    expectTypeOf(hardened.parked).extract<undefined>().toEqualTypeOf<undefined>()
    expect(own.ready).toBe('todo')
  })

  it('takes no trigger from outside the vocabulary, no unknown role and no unknown state', () => {
    const define = () =>
      defineLifecycle({
        name: 'own',
        version: 1,
        // @ts-expect-error 'started' is no state
        initial: 'started',
        // @ts-expect-error 'resting' is no role
        states: { ...states, asleep: { role: 'resting', meaning: 'Asleep.' } },
        edges: [
          // @ts-expect-error 'snore' is no trigger of jobs
          { from: 'todo', to: 'doing', on: ['snore'] },
          // @ts-expect-error 'started' is no state
          { from: 'doing', to: 'started', on: ['succeed'] },
        ],
      })
    expect(define).toThrow(DefinitionInvalid)
  })
})

describe('a decision', () => {
  it('is a fact, the same or a refusal, and a refusal is an error with a code', () => {
    expectTypeOf<Decision['kind']>().toEqualTypeOf<'fact' | 'same' | 'rejected'>()
    expectTypeOf<Extract<Decision, { kind: 'rejected' }>['error']>().toEqualTypeOf<PawlError>()
    expectTypeOf<CommandInvalid['code']>().toEqualTypeOf<'E_COMMAND_INVALID'>()
    expectTypeOf<PawlError['code']>().toEqualTypeOf<string>()
  })
})
