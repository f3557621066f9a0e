// Pictures and tables as exact text, and what `analyse` tells of a graph.
import {
  analyse,
  defineMachine,
  LIFECYCLES,
  leased,
  toDot,
  toMarkdown,
  toMermaid,
} from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { markdownTable } from '../../src/core/machine/render.ts'

const parcel = defineMachine({
  name: 'parcel',
  version: 1,
  initial: 'in-hand',
  sameState: 'noop',
  states: {
    'in-hand': { meaning: 'Held | carried.', stable: true },
    Moving: { meaning: 'On its way.', transitional: true },
    gone: { meaning: 'Delivered.', terminal: true },
  },
  edges: [
    { from: 'in-hand', to: 'Moving', on: ['send', 'throw'] },
    { from: 'Moving', to: 'gone', on: ['arrive'] },
    { from: 'Moving', to: 'in-hand', on: ['turn-back'], because: 'roads | bridges close' },
    { from: 'gone', to: 'in-hand', on: ['recall'], operator: true },
    { from: 'in-hand', to: 'gone', on: ['lose'], operator: true, because: 'it happens' },
  ],
})

describe('a machine is drawn', () => {
  it('as a Mermaid diagram that marks added and operator edges', () => {
    expect(toMermaid(parcel)).toBe(
      [
        'stateDiagram-v2',
        '  state "in-hand" as s0',
        '  state "Moving" as s1',
        '  state "gone" as s2',
        '  [*] --> s0',
        '  s0 --> s1: send, throw',
        '  s1 --> s2: arrive',
        '  s1 --> s0: turn-back +',
        '  s2 --> s0: recall (operator)',
        '  s0 --> s2: lose + (operator)',
        '  s2 --> [*]',
        '',
      ].join('\n'),
    )
  })

  it('in Mermaid under its own names, where Mermaid can read them', () => {
    const { machine } = leased
    expect(toMermaid(machine)).not.toContain(' as ')
    expect(toMermaid(machine)).toContain(`  [*] --> ${machine.initial}\n`)
  })

  it('as a Graphviz graph with dashed added edges and double terminal states', () => {
    expect(toDot(parcel)).toBe(
      [
        'digraph "parcel" {',
        '  rankdir=LR',
        '  "in-hand" [shape=box]',
        '  "Moving" [shape=box]',
        '  "gone" [shape=box, peripheries=2]',
        '  "in-hand" -> "Moving" [label="send, throw"]',
        '  "Moving" -> "gone" [label="arrive"]',
        '  "Moving" -> "in-hand" [label="turn-back +", style=dashed]',
        '  "gone" -> "in-hand" [label="recall (operator)"]',
        '  "in-hand" -> "gone" [label="lose + (operator)", style=dashed]',
        '}',
        '',
      ].join('\n'),
    )
  })

  it('as two Markdown tables in which bars are escaped', () => {
    expect(toMarkdown(parcel)).toBe(
      [
        '| state | kind | meaning |',
        '| --- | --- | --- |',
        '| `in-hand` | initial, stable | Held \\| carried. |',
        '| `Moving` | transitional | On its way. |',
        '| `gone` | terminal | Delivered. |',
        '',
        '| edge | triggers | who | origin |',
        '| --- | --- | --- | --- |',
        '| `in-hand` → `Moving` | send, throw |  | documented |',
        '| `Moving` → `gone` | arrive |  | documented |',
        '| `Moving` → `in-hand` | turn-back |  | added: roads \\| bridges close |',
        '| `gone` → `in-hand` | recall | operator | documented |',
        '| `in-hand` → `gone` | lose | operator | added: it happens |',
        '',
      ].join('\n'),
    )
  })

  it('the same way every time', () => {
    for (const draw of [toMermaid, toDot, toMarkdown]) expect(draw(parcel)).toBe(draw(parcel))
  })

  it('with each state and edge once, for every lifecycle that ships', () => {
    for (const { machine } of LIFECYCLES) {
      const arrows = toMermaid(machine).match(/^ {2}\w+ --> \w+: /gm) ?? []
      expect(new Set(arrows).size).toBe(machine.edges.length)
      expect(toDot(machine).match(/ -> /g)).toHaveLength(machine.edges.length)
      const rows = toMarkdown(machine).match(/^\| `/gm)
      expect(rows).toHaveLength(machine.states.size + machine.edges.length)
    }
  })
})

describe('a drawing keeps apart what is apart', () => {
  const twins = defineMachine({
    name: 'twins',
    version: 1,
    initial: 'a-b',
    sameState: 'noop',
    states: {
      'a-b': { meaning: 'The one.' },
      a_b: { meaning: 'The other.', terminal: true },
    },
    edges: [{ from: 'a-b', to: 'a_b', on: ['go'] }],
  })

  it('states whose names differ by a hyphen and an underscore alone', () => {
    const [, from, to] = /^ {2}(\S+) --> (\w+): go$/m.exec(toMermaid(twins)) ?? []
    expect(from).toBeDefined()
    expect(from).not.toBe(to)
    expect(toDot(twins)).toContain('"a-b" -> "a_b"')
  })

  it('rows of a table, whatever text is in their cells', () => {
    const wordy = defineMachine({
      name: 'wordy',
      version: 1,
      initial: 'one',
      sameState: 'noop',
      states: {
        one: { meaning: 'In two\nlines.' },
        two: { meaning: 'With\r\nothers.', terminal: true },
      },
      edges: [{ from: 'one', to: 'two', on: ['go'], because: 'there is\nmore to say' }],
    })
    const lines = toMarkdown(wordy).trimEnd().split('\n')
    expect(lines.filter((line) => !/^\|.*\|$/.test(line))).toEqual([''])
    expect(lines).toHaveLength(4 + 1 + 3)
    expect(lines[3]).toContain('| With others. |')
  })

  it('cells of a table, whatever bars are in them', () => {
    expect(markdownTable(['a|b', 'c'], [['||', 'd']])).toBe(
      '| a\\|b | c |\n| --- | --- |\n| \\|\\| | d |\n',
    )
    expect(markdownTable(['only', 'head'], [])).toBe('| only | head |\n| --- | --- |\n')
  })
})

describe('the analysis of a machine', () => {
  it('lists terminal, stable and transitional states, in the order of the definition', () => {
    expect(analyse(parcel)).toMatchObject({
      terminal: ['gone'],
      stable: ['in-hand'],
      transitional: ['Moving'],
      endless: [],
      deterministic: true,
    })
  })

  it('says for each state what can still come after it, itself aside', () => {
    const { reachable } = analyse(parcel)
    const sorted = [...reachable].map(([from, after]) => [from, after.toSorted()])
    expect(sorted).toEqual([
      ['in-hand', ['Moving', 'gone']],
      ['Moving', ['gone', 'in-hand']],
      ['gone', ['Moving', 'in-hand']],
    ])
  })

  const trap = defineMachine({
    name: 'trap',
    version: 1,
    initial: 'start',
    sameState: 'noop',
    states: {
      start: { meaning: 'The start.' },
      round: { meaning: 'Round.' },
      about: { meaning: 'And about.' },
      out: { meaning: 'Out.', terminal: true },
    },
    edges: [
      { from: 'start', to: 'out', on: ['leave'] },
      { from: 'start', to: 'round', on: ['enter'] },
      { from: 'round', to: 'about', on: ['turn'] },
      { from: 'about', to: 'round', on: ['turn'] },
    ],
  })

  it('finds the states from which no end can be reached any more', () => {
    expect(analyse(trap).endless).toEqual(['round', 'about'])
    expect(analyse(trap).reachable.get('round')).toEqual(['about'])
    expect(analyse(trap).reachable.get('out')).toEqual([])
  })

  it('sees when one trigger leads to two states, which no defined machine allows', () => {
    const edges = [...trap.edges, { from: 'start', to: 'about', on: ['enter'] } as const]
    expect(analyse({ ...trap, edges }).deterministic).toBe(false)
  })

  it('finds no state of a lifecycle from which its job could not end', () => {
    for (const { machine } of LIFECYCLES) {
      expect(analyse(machine).endless).toEqual([])
      expect(analyse(machine).deterministic).toBe(true)
    }
  })
})
