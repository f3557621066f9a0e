// Definitions of machines: fields that are unknown, or of another type, are refused by name.
import { defineLifecycle, defineMachine, standard } from 'pawl/rules'
import { defineRunMachine, documentationRun } from 'pawl/runs'
import { describe, expect, it } from 'vitest'

const lamp = {
  name: 'lamp',
  version: 1,
  initial: 'off',
  sameState: 'noop',
  states: { off: { meaning: 'Dark.' }, on: { meaning: 'Lit.', terminal: true } },
  edges: [{ from: 'off', to: 'on', on: ['turn'], because: 'It is dark.', operator: true }],
}
const { off, on } = lamp.states
const [edge] = lamp.edges

const roles = [...standard.roles].map(([name, role]) => [name, { role, meaning: 'A state.' }])
const job = {
  name: 'own',
  version: 1,
  initial: 'created',
  states: Object.fromEntries(roles) as object,
  edges: standard.machine.edges,
  crash: { spends: 'crash', delayMs: 'as-retry' },
}

describe('a definition', () => {
  it('with known fields is accepted', () => {
    expect(defineMachine(lamp as never).name).toBe('lamp')
    expect(defineLifecycle(job as never).name).toBe('own')
    expect(
      defineLifecycle({ ...job, crash: { spends: 'failure', delayMs: 5 } } as never).name,
    ).toBe('own')
  })

  it.each<[string, object, string]>([
    ['a field', { ...lamp, sattes: {} }, 'machine: "sattes" is not known'],
    ['sameState', { ...lamp, sameState: 'no' }, '"sameState" must be one of noop, refuse'],
    ['states', { ...lamp, states: [] }, '"states" must be'],
    ['edges', { ...lamp, edges: {} }, '"edges" must be an array'],
    ['a field of a state', { ...lamp, states: { off: { ...off, x: 1 }, on } }, 'state off: "x" is'],
    ['a meaning', { ...lamp, states: { off, on: { meaning: 5 } } }, 'state on: "meaning" must be'],
    ['a field of an edge', { ...lamp, edges: [{ ...edge, at: 1 }] }, 'edge off → on: "at" is not'],
    ['triggers', { ...lamp, edges: [{ ...edge, on: 'turn' }] }, '"on" must be an array'],
    ['a reason', { ...lamp, edges: [{ ...edge, because: 5 }] }, '"because" must be a string'],
  ])('of a machine is refused: %s', (_name, spec, message) => {
    expect(() => defineMachine(spec as never)).toThrow(message)
  })

  it.each<[string, object, string]>([
    ['a field', { ...job, retries: 3 }, 'lifecycle: "retries" is not known'],
    [
      'a role',
      { ...job, states: { a: { role: 'resting', meaning: '' } } },
      '"role" must be one of',
    ],
    [
      'a field of a crash rule',
      { ...job, crash: { ...job.crash, x: 1 } },
      'crash: "x" is not known',
    ],
    ['a delay', { ...job, crash: { ...job.crash, delayMs: 'soon' } }, '"delayMs" must be a number'],
  ])('of a lifecycle is refused: %s', (_name, spec, message) => {
    expect(() => defineLifecycle(spec as never)).toThrow(message)
  })

  it('of a run machine is refused', () => {
    const spec = { ...documentationRun, fixloop: {} }
    expect(() => defineRunMachine(spec as never)).toThrow('run machine: "fixloop" is not known')
  })
})
