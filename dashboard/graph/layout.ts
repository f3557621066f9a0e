/**
 * The picture of a machine: states as boxes in columns and rows, edges as lines between them.
 *
 * 1. The happy path is the first row, from left to right: the shortest way to success in a
 *    lifecycle, otherwise the first edge of each state.
 * 2. Final and parked states are below the end of the happy path.
 * 3. Every other state is below the state from which it is first entered.
 * 4. A long happy path turns at the end of a row, and the next row goes back.
 * 5. An edge leaves and enters its boxes on the sides that face each other. Edges against the
 *    direction of reading run through lanes below all rows.
 *
 * A layout depends on the machine alone, so that it stays still while numbers change.
 */
import type { MachineData, MachineEdge } from '../machine-data.ts'

export interface Box {
  readonly state: string
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

export interface Line {
  readonly edge: MachineEdge
  readonly path: string
  /** The point of the arrow and the side that it enters. */
  readonly tip: { readonly x: number; readonly y: number; readonly side: Side }
  readonly label: { readonly x: number; readonly y: number; readonly anchor: 'middle' | 'start' }
}

export interface Layout {
  readonly width: number
  readonly height: number
  readonly boxes: readonly Box[]
  readonly lines: readonly Line[]
}

type Side = 'left' | 'right' | 'top' | 'bottom'

interface Cell {
  readonly column: number
  readonly row: number
}

const HEIGHT = 52
const GAP_X = 72
const GAP_Y = 46
const MARGIN = 12
const LANE = 15
const PORT = 13
const CORNER = 12
/** A longer happy path has several rows, whose boxes are closer to each other. */
const ROW_MAX = 8
const GAP_X_CLOSE = 34

/**
 * Lays out a machine, with the edges that `shows` accepts. Boxes do not depend on `shows`. They are
 * `close` to each other if edges have no labels.
 */
export function layOut(
  machine: MachineData,
  shows: (edge: MachineEdge) => boolean = () => true,
  close = false,
): Layout {
  const path = happyPath(machine)
  const cells = placeStates(machine, path)
  const gap = close || path.length > ROW_MAX ? GAP_X_CLOSE : GAP_X
  const longest = Math.max(...Object.keys(machine.states).map(roomOf))
  const width = Math.min(190, Math.max(126, 46 + longest))
  const boxes = new Map<string, Box>()
  const top = MARGIN + 22
  for (const [state, { column, row }] of cells) {
    const x = MARGIN + column * (width + gap)
    const y = top + row * (HEIGHT + GAP_Y)
    boxes.set(state, { state, x, y, width, height: HEIGHT })
  }
  const edges = joined(machine.edges).filter((edge) => edge.from !== edge.to && shows(edge))
  const drawn = drawEdges(edges, cells, boxes)
  const rows = Math.max(...[...cells.values()].map(({ row }) => row)) + 1
  const columns = Math.max(...[...cells.values()].map(({ column }) => column)) + 1
  return {
    width: 2 * MARGIN + columns * width + (columns - 1) * gap,
    height: top + rows * HEIGHT + (rows - 1) * GAP_Y + MARGIN + drawn.lanes * LANE,
    boxes: [...boxes.values()],
    lines: drawn.lines,
  }
}

/** About how wide a name is. Capitals are wider. */
function roomOf(state: string): number {
  return state.length * 7.6 + state.replaceAll(/[^A-Z_]/g, '').length * 1.7
}

/** One line for all edges between two states. */
function joined(edges: readonly MachineEdge[]): MachineEdge[] {
  const byEnds = new Map<string, MachineEdge>()
  for (const edge of edges) {
    const key = `${edge.from}\n${edge.to}`
    const known = byEnds.get(key)
    byEnds.set(key, known ? { ...known, on: [...known.on, ...edge.on] } : edge)
  }
  return [...byEnds.values()]
}

/** The states of the first row. */
function happyPath({ initial, states, edges }: MachineData): string[] {
  const goal = Object.keys(states).find((state) => states[state]?.role === 'succeeded')
  const way = goal === undefined ? undefined : shortest(initial, goal, edges)
  if (way !== undefined) return way
  const path = [initial]
  for (let at: string | undefined = initial; at !== undefined; ) {
    const from: string = at
    at = edges.find((edge) => edge.from === from && !path.includes(edge.to))?.to
    if (at !== undefined) path.push(at)
  }
  return path
}

function shortest(from: string, to: string, edges: readonly MachineEdge[]): string[] | undefined {
  const ways = new Map([[from, [from]]])
  const queue = [from]
  for (let at = queue.shift(); at !== undefined; at = queue.shift()) {
    const way = ways.get(at) as string[]
    if (at === to) return way
    for (const edge of edges) {
      if (edge.from !== at || edge.operator || ways.has(edge.to)) continue
      ways.set(edge.to, [...way, edge.to])
      queue.push(edge.to)
    }
  }
  return undefined
}

/** The cells of a happy path. The second row goes back from right to left, and so on. */
function pathCells(length: number): Cell[] {
  const rows = Math.ceil(length / ROW_MAX)
  const columns = Math.ceil(length / Math.max(1, rows))
  return Array.from({ length }, (_, i) => {
    const row = Math.floor(i / columns)
    const along = i % columns
    return { row, column: row % 2 === 0 ? along : columns - 1 - along }
  })
}

function placeStates(machine: MachineData, path: readonly string[]): Map<string, Cell> {
  const { states, edges } = machine
  const cells = new Map<string, Cell>()
  const taken = new Set<string>()
  const put = (state: string, column: number, row: number) => {
    let free = row
    while (taken.has(`${column},${free}`)) free++
    taken.add(`${column},${free}`)
    cells.set(state, { column, row: free })
  }
  const way = pathCells(path.length)
  for (const [i, state] of path.entries()) {
    const { column, row } = way[i] as Cell
    put(state, column, row)
  }
  const isEnd = (state: string) => {
    const { terminal, role } = states[state] ?? {}
    return terminal === true || role === 'parked' || ENDS.includes(role ?? '')
  }
  const last = way.at(-1)?.column ?? 0
  const endColumn = isEnd(path.at(-1) ?? '') ? last : last + 1
  const left = Object.keys(states).filter((state) => !cells.has(state))
  const rows = (way.at(-1)?.row ?? 0) + 1
  for (const [i, state] of left.filter(isEnd).entries()) {
    // Below a path of several rows there is room beside each other.
    if (rows > 1) put(state, last === 0 ? i : Math.max(0, last - i), rows)
    else put(state, endColumn, endColumn === last ? 1 : 0)
  }
  for (const state of left.filter((one) => !isEnd(one))) {
    // Definitions list the first way into a state first; a state without one is below the start.
    const into = edges.find((edge) => edge.to === state && cells.has(edge.from))
    const from = into && cells.get(into.from)
    const isDeep = from !== undefined && from.row > 0
    put(state, Math.max(0, (from?.column ?? 0) - (isDeep ? 1 : 0)), 1)
  }
  return cells
}

const ENDS: readonly string[] = ['succeeded', 'failed', 'cancelled']

interface Route {
  readonly edge: MachineEdge
  readonly out: Side
  readonly into: Side
  /** Runs in a lane below all rows. */
  readonly isLane: boolean
}

function routeOf(edge: MachineEdge, cells: ReadonlyMap<string, Cell>): Route {
  const from = cells.get(edge.from) as Cell
  const to = cells.get(edge.to) as Cell
  const across = to.column - from.column
  const down = to.row - from.row
  const route = (out: Side, into: Side, isLane = false): Route => ({ edge, out, into, isLane })
  if (across === 0) {
    if (Math.abs(down) > 1) return route('right', 'right')
    return down > 0 ? route('bottom', 'top') : route('top', 'bottom')
  }
  if (across > 0) {
    if (down === 0) return across === 1 ? route('right', 'left') : route('top', 'top')
    if (down < 0) return route('right', across === 1 ? 'left' : 'bottom')
    return across === 1 ? route('right', 'left') : route('bottom', 'left')
  }
  if (down === 0) return from.row === 0 ? route('top', 'top') : route('left', 'right')
  if (down < 0) return across === -1 ? route('left', 'bottom') : route('bottom', 'bottom', true)
  return route('bottom', 'right')
}

/** Where the edges of each side begin and end: straight ones in the middle, others beside them. */
class Ports {
  readonly #offsets = new Map<string, number>()

  constructor(routes: readonly Route[], boxes: ReadonlyMap<string, Box>) {
    const sides = new Map<string, { key: string; at: number; isStraight: boolean }[]>()
    const add = (state: string, side: Side, other: Box, key: string, isStraight: boolean) => {
      const name = `${state}\n${side}`
      const isUpright = side === 'left' || side === 'right'
      const at = isUpright ? other.y * 1e4 + other.x : other.x * 1e4 + other.y
      sides.set(name, [...(sides.get(name) ?? []), { key, at, isStraight }])
    }
    for (const [i, { edge, out, into }] of routes.entries()) {
      const [from, to] = [boxes.get(edge.from) as Box, boxes.get(edge.to) as Box]
      const isStraight = from.y === to.y ? out === 'right' && into === 'left' : from.x === to.x
      add(edge.from, out, to, `${i}>`, isStraight)
      add(edge.to, into, from, `${i}<`, isStraight)
    }
    for (const ends of sides.values()) {
      const sorted = ends.sort((a, b) => a.at - b.at)
      const straight = sorted.findIndex(({ isStraight }) => isStraight)
      const middle = straight === -1 ? (sorted.length - 1) / 2 : straight
      for (const [i, { key }] of sorted.entries()) this.#offsets.set(key, (i - middle) * PORT)
    }
  }

  point(box: Box, side: Side, key: string): { x: number; y: number } {
    const limit = (size: number) => size / 2 - 8
    const offset = this.#offsets.get(key) ?? 0
    const clamp = (size: number) => Math.max(-limit(size), Math.min(limit(size), offset))
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
    if (side === 'left') return { x: box.x, y: y + clamp(box.height) }
    if (side === 'right') return { x: box.x + box.width, y: y + clamp(box.height) }
    if (side === 'top') return { x: x + clamp(box.width), y: box.y }
    return { x: x + clamp(box.width), y: box.y + box.height }
  }
}

function drawEdges(
  edges: readonly MachineEdge[],
  cells: ReadonlyMap<string, Cell>,
  boxes: ReadonlyMap<string, Box>,
): { lines: Line[]; lanes: number } {
  const routes = edges.map((edge) => routeOf(edge, cells))
  const ports = new Ports(routes, boxes)
  const floor = Math.max(...[...boxes.values()].map(({ y, height }) => y + height))
  let lanes = 0
  const lines = routes.map((route, i) => {
    const { edge, out, into, isLane } = route
    if (isLane) lanes++
    const start = ports.point(boxes.get(edge.from) as Box, out, `${i}>`)
    const end = ports.point(boxes.get(edge.to) as Box, into, `${i}<`)
    return lineOf(route, start, end, floor + lanes * LANE)
  })
  return { lines, lanes }
}

interface Point {
  readonly x: number
  readonly y: number
}

function lineOf({ edge, out, into, isLane }: Route, a: Point, b: Point, lane: number): Line {
  const tip = { ...b, side: into }
  const middle = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 }
  const made = (path: string, x: number, y: number, anchor: 'middle' | 'start' = 'middle') => ({
    ...{ edge, path, tip, label: { x, y, anchor } },
  })
  const r = CORNER
  if (isLane) {
    const down = `M${a.x} ${a.y}V${lane - r}Q${a.x} ${lane} ${a.x - r} ${lane}`
    const path = `${down}H${b.x + r}Q${b.x} ${lane} ${b.x} ${lane - r}V${b.y}`
    return made(path, middle.x, lane - 4)
  }
  if (out === 'top' && into === 'top') {
    const rise = Math.min(a.y, b.y) - 20
    return made(`M${a.x} ${a.y}C${a.x} ${rise} ${b.x} ${rise} ${b.x} ${b.y}`, middle.x, rise + 1)
  }
  if (out === 'right' && into === 'right') {
    const side = Math.max(a.x, b.x) + 26
    return made(`M${a.x} ${a.y}C${side} ${a.y} ${side} ${b.y} ${b.x} ${b.y}`, side, middle.y)
  }
  if (out === 'right' && into === 'left') {
    if (a.y === b.y) return made(`M${a.x} ${a.y}H${b.x}`, middle.x, a.y - 7)
    const half = (b.x - a.x) / 2
    return made(
      `M${a.x} ${a.y}C${a.x + half} ${a.y} ${b.x - half} ${b.y} ${b.x} ${b.y}`,
      middle.x,
      middle.y - 5,
    )
  }
  if (out === 'left' && into === 'right') return made(`M${a.x} ${a.y}H${b.x}`, middle.x, a.y - 7)
  if (out === 'left' && into === 'bottom') {
    const path = `M${a.x} ${a.y}H${b.x + r}Q${b.x} ${a.y} ${b.x} ${a.y - r}V${b.y}`
    return made(path, b.x + 8, b.y + 26, 'start')
  }
  if (out === 'bottom' && into === 'left') {
    const path = `M${a.x} ${a.y}V${b.y - r}Q${a.x} ${b.y} ${a.x + r} ${b.y}H${b.x}`
    return made(path, b.x - 30, b.y - 6)
  }
  if (out === 'bottom' && into === 'right') {
    const path = `M${a.x} ${a.y}V${b.y - r}Q${a.x} ${b.y} ${a.x - r} ${b.y}H${b.x}`
    return made(path, b.x + 30, b.y - 6)
  }
  if (out === 'right' && into === 'bottom') {
    const path = `M${a.x} ${a.y}H${b.x - r}Q${b.x} ${a.y} ${b.x} ${a.y - r}V${b.y}`
    return made(path, b.x + 8, b.y + 26, 'start')
  }
  if (a.x === b.x) return made(`M${a.x} ${a.y}V${b.y}`, a.x + 8, middle.y + 4, 'start')
  const path = `M${a.x} ${a.y}C${a.x} ${middle.y} ${b.x} ${middle.y} ${b.x} ${b.y}`
  return made(path, middle.x + 8, middle.y + 4, 'start')
}
