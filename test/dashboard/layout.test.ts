// The picture of a machine, for every machine that the engine has.
import { describe, expect, it } from 'vitest'
import { cover, placeLabels } from '../../dashboard/graph/labels.ts'
import { layOut } from '../../dashboard/graph/layout.ts'
import { isSideEdge } from '../../dashboard/graph/side-edges.ts'
import { walkOf } from '../../dashboard/jobs/walk.ts'
import type { MachineData } from '../../dashboard/machine-data.ts'
import { indented } from '../../dashboard/ui/indented.ts'
import type { Fact } from '../../src/core/job/facts.ts'
import { LIFECYCLES } from '../../src/core/lifecycles/index.ts'
import { knownMachines } from '../../src/engine/machines.ts'

const machines = knownMachines(LIFECYCLES).map(({ kind, machine, roles }): MachineData => {
  const { name, version, initial, edges } = machine
  const states = [...machine.states].map(([state, spec]) => {
    const role = roles?.get(state)
    return [state, { ...spec, ...(role !== undefined && { role }) }]
  })
  return { name, kind, version, initial, states: Object.fromEntries(states), edges } as MachineData
})

describe.each(machines)('the layout of $name', (machine) => {
  const layout = layOut(machine)

  it('has a box for each state, and no two overlap', () => {
    expect(layout.boxes.map(({ state }) => state).sort()).toEqual(
      Object.keys(machine.states).sort(),
    )
    const overlaps = layout.boxes.flatMap((a, i) =>
      layout.boxes
        .slice(i + 1)
        .filter((b) => Math.abs(a.x - b.x) < a.width + 20 && Math.abs(a.y - b.y) < a.height + 20)
        .map((b) => `${a.state} ${b.state}`),
    )
    expect(overlaps).toEqual([])
    for (const { x, y, width, height } of layout.boxes) {
      expect(x >= 0 && y >= 0 && x + width <= layout.width).toBe(true)
      expect(y + height).toBeLessThanOrEqual(layout.height)
    }
  })

  it('has a line for each pair of states with an edge, which ends at a border of its box', () => {
    const pairs = new Set(
      machine.edges.filter(({ from, to }) => from !== to).map(({ from, to }) => `${from}>${to}`),
    )
    expect(new Set(layout.lines.map(({ edge }) => `${edge.from}>${edge.to}`))).toEqual(pairs)
    for (const { edge, tip, path } of layout.lines) {
      const box = layout.boxes.find(({ state }) => state === edge.to)
      if (box === undefined) throw new Error(edge.to)
      const isUpright = tip.x === box.x || tip.x === box.x + box.width
      const isFlat = tip.y === box.y || tip.y === box.y + box.height
      expect(isUpright || isFlat, `${edge.from} > ${edge.to}`).toBe(true)
      expect(path).not.toContain('NaN')
    }
  })

  it('does not move boxes when fewer edges are shown', () => {
    expect(layOut(machine, () => false).boxes).toEqual(layout.boxes)
  })
})

it('every state of a lifecycle that needs no operator is joined to others by an edge', () => {
  for (const machine of machines.filter(({ kind }) => kind === 'lifecycle')) {
    const drawn = machine.edges.filter((edge) => !isSideEdge(machine, edge))
    const ends = new Set(drawn.flatMap(({ from, to }) => [from, to]))
    const alone = Object.keys(machine.states).filter((state) => !ends.has(state))
    const others = alone.filter((state) => machine.states[state]?.role !== 'cancelled')
    expect(others, machine.name).toEqual([])
  }
})

it('no label of an edge covers another one in a lifecycle', () => {
  for (const machine of machines.filter(({ kind }) => kind === 'lifecycle')) {
    const { lines } = layOut(machine, (edge) => !isSideEdge(machine, edge))
    const marked = lines.map((line) => ({ line, mark: { label: line.edge.on[0] ?? '' } }))
    const labels = placeLabels(marked)
    expect(labels).toHaveLength(lines.length)
    const covered = labels.filter((a, i) => labels.slice(i + 1).some((b) => cover(a, b)))
    expect(covered, machine.name).toEqual([])
  }
})

it('the happy path of the standard lifecycle is the first row', () => {
  const standard = machines.find(({ name }) => name === 'standard') as MachineData
  const { boxes } = layOut(standard)
  const top = Math.min(...boxes.map(({ y }) => y))
  const row = boxes.filter(({ y }) => y === top).sort((a, b) => a.x - b.x)
  expect(row.map(({ state }) => state)).toEqual(['created', 'queued', 'running', 'succeeded'])
})

it('a walk counts states and edges, and the time spent', () => {
  const fact = (at: number, from: string | null, to: string, via?: string[]) =>
    ({ at, from, to, ...(via && { via }) }) as unknown as Fact
  const { states, edges } = walkOf([
    fact(0, null, 'queued', ['created']),
    fact(100, 'queued', 'running'),
    fact(150, 'running', 'running'),
    fact(300, 'running', 'retrying'),
    fact(1300, 'retrying', 'queued'),
    fact(1400, 'queued', 'running'),
  ])
  expect(states.get('queued')).toEqual({ times: 2, ms: 200 })
  expect(states.get('running')).toEqual({ times: 2, ms: 200 })
  expect(edges.get('queued\nrunning')).toEqual({ times: 2, ms: 200 })
  expect(edges.get('created\nqueued')).toEqual({ times: 1, ms: 0 })
  expect(edges.has('running\nrunning')).toBe(false)
})

describe('payloads', () => {
  it('keep every number and text as it is stored', () => {
    const text = '{"big":12345678901234567890.10,"e":1e400,"s":"a \\"{,}\\" b","l":[],"o":{}}'
    const shown = indented(text)
    expect(shown).toContain('"big": 12345678901234567890.10')
    expect(shown).toContain('"e": 1e400')
    expect(shown).toContain('"s": "a \\"{,}\\" b"')
    expect(shown).toContain('"l": []')
    expect(shown.replaceAll(/\s/g, '')).toBe(text.replaceAll(/\s/g, ''))
  })

  it('that are cut off or no JSON are shown all the same', () => {
    for (const text of ['{"a":[1,2', '"abc', 'hello', '', '}}}]]', '{"a":"\\']) {
      expect(indented(text).replaceAll(/\s/g, '')).toBe(text.replaceAll(/\s/g, ''))
    }
  })
})
