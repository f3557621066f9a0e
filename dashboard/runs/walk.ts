/** The way of a run through its machine, and its work items in time, from its events. Pure. */
import type { RunEvent } from '../../src/core/run/events.ts'
import type { MachineData, MachineEdge } from '../machine-data.ts'

export interface Visits {
  times: number
  ms: number
}

export interface RunWalk {
  readonly states: ReadonlyMap<string, Visits>
  readonly edges: ReadonlyMap<string, Visits>
}

export function timeOf(stamp: string): number {
  return Date.parse(stamp)
}

/** The states and edges that these events have visited, and for how long. Rewinds are edges. */
export function walkOf(events: readonly RunEvent[]): RunWalk {
  const states = new Map<string, Visits>()
  const edges = new Map<string, Visits>()
  let since: number | undefined
  for (const { type, data, ts } of events) {
    const at = timeOf(ts)
    if (type === 'RUN_CREATED') visit(states, data.state, 0)
    if (type === 'RUN_STATE_CHANGED' || type === 'RESUME_REWIND') {
      const ms = since === undefined ? 0 : Math.max(0, at - since)
      visit(edges, `${data.from_state}\n${data.to_state}`, ms)
      // The entry into the first state may be before the events that are loaded.
      const left = states.get(data.from_state) ?? visit(states, data.from_state, 0)
      left.ms += ms
      visit(states, data.to_state, 0)
    }
    if (type === 'RUN_CREATED' || type === 'RUN_STATE_CHANGED' || type === 'RESUME_REWIND') {
      since = at
    }
  }
  return { states, edges }
}

function visit(map: Map<string, Visits>, key: string, ms: number): Visits {
  const known = map.get(key)
  const visits = { times: (known?.times ?? 0) + 1, ms: (known?.ms ?? 0) + ms }
  map.set(key, visits)
  return visits
}

/**
 * A machine for the picture of a run. Ends get the sign of their role, and edges to failed and
 * cancelled exist in every state, so that they are drawn only if the run took them.
 */
export function pictureOf(machine: MachineData): MachineData {
  const states = Object.entries(machine.states).map(([state, spec]) => {
    return [state, { ...spec, role: roleOf(state, spec.terminal === true, machine.initial) }]
  })
  const edges = machine.edges.map((edge): MachineEdge => {
    const role = endRole(edge.to)
    const isEnd = machine.states[edge.to]?.terminal === true && role !== 'succeeded'
    return isEnd ? { ...edge, because: edge.because ?? 'from every state' } : edge
  })
  return { ...machine, states: Object.fromEntries(states), edges }
}

function roleOf(state: string, isTerminal: boolean, initial: string) {
  if (isTerminal) return endRole(state)
  return state === initial ? 'idle' : 'held'
}

function endRole(state: string) {
  if (/cancel/i.test(state)) return 'cancelled'
  return /fail|error|abort/i.test(state) ? 'failed' : 'succeeded'
}

/** A machine that the server does not know: the states and edges that the run has visited. */
export function machineFrom(events: readonly RunEvent[], name: string): MachineData | undefined {
  const { states, edges } = walkOf(events)
  const [initial] = states.keys()
  if (initial === undefined) return undefined
  return {
    ...{ name, kind: 'run', version: 0, initial },
    states: Object.fromEntries([...states.keys()].map((state) => [state, {}])),
    edges: [...edges.keys()].map((key) => {
      const [from = '', to = ''] = key.split('\n')
      return { from, to, on: [] }
    }),
  }
}

/** One attempt at a work item. */
export interface ItemBar {
  readonly from: number
  /** Undefined while it runs, or if its process died. */
  readonly to: number | undefined
  readonly end: 'finished' | 'failed' | 'interrupted' | 'running'
  readonly because: string
}

export interface ItemRow {
  readonly key: string
  readonly bars: ItemBar[]
}

/** The attempts of each work item, in the order of their first start. */
export function itemRows(events: readonly RunEvent[]): ItemRow[] {
  const rows = new Map<string, ItemRow>()
  const end = (key: string, to: number, how: 'finished' | 'failed' | 'interrupted') => {
    const bars = rows.get(key)?.bars ?? []
    const last = bars.at(-1)
    if (last?.end === 'running') bars[bars.length - 1] = { ...last, to, end: how }
  }
  for (const { type, data, ts } of events) {
    const at = timeOf(ts)
    if (type === 'WORK_ITEM_FINISHED') end(data.key, at, 'finished')
    if (type === 'WORK_ITEM_FAILED') end(data.key, at, 'failed')
    if (type !== 'WORK_ITEM_STARTED') continue
    end(data.key, at, 'interrupted')
    const row = rows.get(data.key) ?? { key: data.key, bars: [] }
    row.bars.push({ from: at, to: undefined, end: 'running', because: data.because })
    rows.set(data.key, row)
  }
  return [...rows.values()]
}
