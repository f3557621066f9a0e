// What `defineMachine` refuses: every rule of soundness alone, several at once, and hostile names.
import {
  allowedFrom,
  analyse,
  defineMachine,
  type EdgeSpec,
  type MachineSpec,
  MachineUnsound,
  move,
  type StateSpec,
  toDot,
  toMarkdown,
  toMermaid,
} from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { findProblems } from '../../src/core/machine/soundness.ts'

const going: StateSpec = { meaning: 'Under way.' }
const over: StateSpec = { meaning: 'Over.', terminal: true }
const edge = (from: string, to: string, ...on: string[]): EdgeSpec => ({ from, to, on })

/** A sound machine, with one thing changed. */
const spec = (change: Partial<MachineSpec> = {}): MachineSpec => ({
  name: 'door',
  version: 1,
  initial: 'open',
  sameState: 'noop',
  states: { open: going, shut: going, gone: over },
  edges: [
    edge('open', 'shut', 'push'),
    edge('shut', 'open', 'pull'),
    edge('shut', 'gone', 'remove'),
  ],
  ...change,
})
const { edges } = spec()

describe('the definition of a machine', () => {
  it('passes when nothing is wrong with it', () => {
    expect(findProblems(spec())).toEqual([])
    expect(defineMachine(spec())).toMatchObject({ name: 'door', version: 1, initial: 'open' })
  })

  it.each<[why: string, change: Partial<MachineSpec>, problem: string]>([
    ['a name with a space', { name: 'a door' }, 'the name "a door" is not a plain word'],
    ['version 0', { version: 0 }, 'the version is not a whole number of at least 1'],
    ['version 1.5', { version: 1.5 }, 'the version is not a whole number of at least 1'],
    ['no version', { version: Number.NaN }, 'the version is not a whole number of at least 1'],
    ['an endless version', { version: 2 ** 53 }, 'the version is not a whole number of at least 1'],
    ['no states', { states: {}, edges: [] }, 'it has no states'],
    [
      'an initial state of no state',
      { initial: 'ajar' },
      'the initial state "ajar" is not declared',
    ],
    [
      'an edge from an undeclared state',
      { edges: [...edges, edge('ajar', 'open', 'pull')] },
      'ajar → open names the undeclared state "ajar"',
    ],
    [
      'an edge to an undeclared state',
      { edges: [...edges, edge('open', 'ajar', 'nudge')] },
      'open → ajar names the undeclared state "ajar"',
    ],
    [
      'an edge to a name that every object inherits',
      { edges: [...edges, edge('open', 'constructor', 'nudge')] },
      'open → constructor names the undeclared state "constructor"',
    ],
    [
      'a self-edge',
      { edges: [...edges, edge('open', 'open', 'nudge')] },
      'open → open is a self-edge: use sameState instead',
    ],
    [
      'the same edge twice',
      { edges: [...edges, edge('open', 'shut', 'slam')] },
      'open → shut is declared twice',
    ],
    [
      'an edge without a trigger',
      { edges: [...edges, edge('open', 'gone')] },
      'open → gone has no trigger',
    ],
    [
      'a trigger of two words',
      { edges: [...edges, edge('open', 'gone', 'take away')] },
      'the trigger "take away" is not a plain word',
    ],
    [
      'an added edge without a reason',
      { edges: [...edges, { ...edge('open', 'gone', 'remove'), because: '' }] },
      'open → gone was added without a reason',
    ],
    [
      'a state that nothing leads to',
      { states: { ...spec().states, lost: over } },
      'lost cannot be reached',
    ],
    [
      'a state that nothing leads out of',
      { states: { ...spec().states, gone: going } },
      'gone is not terminal, but no edge leaves it',
    ],
    [
      'an edge out of a terminal state',
      { edges: [...edges, edge('gone', 'open', 'rebuild')] },
      'gone → open leaves a terminal state and is not an operator edge',
    ],
    [
      'two targets for one trigger',
      { edges: [...edges, edge('open', 'gone', 'push')] },
      'open on push leads to both shut and gone',
    ],
    [
      'one trigger twice on an edge',
      { edges: [...edges, edge('open', 'gone', 'remove', 'remove')] },
      'open on remove leads to both gone and gone',
    ],
  ])('is refused with %s', (_why, change, problem) => {
    expect(findProblems(spec(change))).toEqual([problem])
    expect(() => defineMachine(spec(change))).toThrow(MachineUnsound)
  })

  it('is refused with every problem at once', () => {
    const broken = spec({
      name: '',
      version: -1,
      initial: 'ajar',
      edges: [edge('open', 'open'), edge('open', 'ajar', 'a b')],
    })
    const problems = [
      'the name "" is not a plain word',
      'the version is not a whole number of at least 1',
      'the initial state "ajar" is not declared',
      'open → open is a self-edge: use sameState instead',
      'open → open has no trigger',
      'open → ajar names the undeclared state "ajar"',
      'the trigger "a b" is not a plain word',
    ]
    expect(findProblems(broken)).toEqual(problems)
    try {
      defineMachine(broken)
      expect.unreachable()
    } catch (error) {
      expect(error).toBeInstanceOf(MachineUnsound)
      expect(error).toMatchObject({
        code: 'E_MACHINE_UNSOUND',
        message: `Machine "" is not sound: ${problems.join('; ')}`,
        hint: expect.stringContaining('the message lists every problem'),
        details: { machine: '', problems },
      })
    }
  })

  it('is refused with all problems of its graph at once', () => {
    const states = { open: going, shut: going, gone: over, lost: going, alone: over }
    const graph = [...edges, edge('gone', 'open', 'rebuild'), edge('open', 'gone', 'push')]
    expect(findProblems(spec({ states, edges: graph }))).toEqual([
      'gone → open leaves a terminal state and is not an operator edge',
      'lost cannot be reached',
      'lost is not terminal, but no edge leaves it',
      'alone cannot be reached',
      'open on push leads to both shut and gone',
    ])
  })

  it('lets operators, and nobody else, out of a terminal state', () => {
    const rebuild: EdgeSpec = { ...edge('gone', 'open', 'rebuild'), operator: true }
    expect(findProblems(spec({ edges: [...edges, rebuild] }))).toEqual([])
    const notReally: EdgeSpec = { ...rebuild, operator: false }
    expect(findProblems(spec({ edges: [...edges, notReally] }))).toHaveLength(1)
  })
})

describe('the names in a machine', () => {
  const hostile = [
    '',
    ' ',
    '__proto__',
    '_open',
    '-open',
    '1st',
    'a b',
    'a"b',
    "a'b",
    'a\\b',
    'a|b',
    'a\nb',
    'open\n',
    'open\0',
    'open;',
    'ouvert·é',
    '→',
    '<b>',
    'x'.repeat(65),
  ]

  it.each(hostile)('cannot be %j, of the machine, a state or a trigger', (name) => {
    expect(findProblems(spec({ name }))).toEqual([`the name "${name}" is not a plain word`])
    // A computed key is the one way to an own property of the name __proto__.
    const states = { ...spec().states, [name]: over }
    expect(Object.hasOwn(states, name)).toBe(true)
    expect(findProblems(spec({ states, edges: [...edges, edge('open', name, 'nudge')] }))).toEqual([
      `the state name "${name}" is not a plain word`,
    ])
    expect(findProblems(spec({ edges: [...edges, edge('open', 'gone', name)] }))).toEqual([
      `the trigger "${name}" is not a plain word`,
    ])
  })

  it.each(['constructor', 'toString', 'hasOwnProperty', 'x'.repeat(64), 'a-b_C9', 'Z'])(
    'may be %s, and it means that state alone',
    (name) => {
      const machine = defineMachine(
        spec({
          name,
          states: { ...spec().states, [name]: over },
          edges: [...edges, edge('open', name, name)],
        }),
      )
      expect(move(machine, 'open', { to: name }).kind).toBe('edge')
      expect(move(machine, 'open', { on: name })).toMatchObject({ edge: { to: name } })
      expect(move(machine, 'shut', { to: name }).kind).toBe('invalid')
      expect(move(machine, name, { to: name })).toEqual({ kind: 'same', state: name })
    },
  )
})

describe('the size of a machine', () => {
  const ring = (size: number, fans: number): MachineSpec => {
    const names = Array.from({ length: size }, (_, i) => `s${i}`)
    const all = names.flatMap((from, i) =>
      Array.from({ length: fans }, (_, k) => edge(from, `s${(i + k + 1) % size}`, `t${k}`)),
    )
    const states = Object.fromEntries(names.map((name) => [name, going]))
    return spec({ initial: 's0', states, edges: all })
  }

  it('is bounded by 256 states', () => {
    expect(findProblems(ring(256, 1))).toEqual([])
    expect(findProblems(ring(257, 1))).toEqual(['it has more than 256 states'])
  })

  it('is bounded by 4096 edges', () => {
    const full = ring(256, 16)
    expect(findProblems(full)).toEqual([])
    const one = edge('s0', 's100', 'once-more')
    expect(findProblems({ ...full, edges: [...full.edges, one] })).toEqual([
      'it has more than 4096 edges',
    ])
  })
})

describe('a machine of a user', () => {
  const light = defineMachine({
    name: 'traffic-light',
    version: 3,
    initial: 'red',
    sameState: 'refuse',
    states: {
      red: { meaning: 'Stop.' },
      green: { meaning: 'Go.' },
      off: { meaning: 'Out of order.', terminal: true },
    },
    edges: [
      { from: 'red', to: 'green', on: ['change'] },
      { from: 'green', to: 'red', on: ['change', 'button'] },
      { from: 'red', to: 'off', on: ['break'] },
      { from: 'off', to: 'red', on: ['mend'], operator: true, because: 'somebody came' },
    ],
  })

  it('moves by state and by trigger, and refuses the rest', () => {
    expect(move(light, 'red', { to: 'green' })).toMatchObject({ kind: 'edge' })
    expect(move(light, 'green', { on: 'button' })).toMatchObject({ edge: { to: 'red' } })
    expect(move(light, 'off', { on: 'mend' })).toMatchObject({ edge: { operator: true } })
    expect(move(light, 'red', { to: 'red' })).toMatchObject({ kind: 'invalid' })
    expect(move(light, 'red', { on: 'button' })).toMatchObject({ kind: 'invalid' })
    expect(allowedFrom(light, 'red')).toEqual(['green', 'off'])
  })

  it('is analysed and drawn', () => {
    expect(analyse(light)).toMatchObject({ terminal: ['off'], endless: [], deterministic: true })
    expect(toMermaid(light)).toContain('red --> green: change')
    expect(toDot(light)).toContain('"green" -> "red" [label="change, button"]')
    expect(toMarkdown(light)).toContain('| `off` | terminal | Out of order. |')
  })

  it('cannot be changed once it is defined', () => {
    expect(Object.isFrozen(light)).toBe(true)
    expect(() => Object.assign(light, { initial: 'off' })).toThrow(TypeError)
  })
})
