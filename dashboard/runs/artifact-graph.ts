/**
 * What was made of what: artifacts and the work items between them. An item points to what it
 * wrote, and what it read points to the item. These are the edges by which the engine decides what
 * is stale (`src/core/run/staleness.ts`). Pure.
 */
import { entryOf, type Run } from '../../src/core/run/run.ts'

interface Part {
  readonly kind: 'artifact' | 'item'
  readonly name: string
}

interface Link {
  readonly from: string
  readonly to: string
  /** The item read another version than there is now. */
  readonly hasChanged: boolean
}

export interface ArtifactGraph {
  /** By id. */
  readonly parts: ReadonlyMap<string, Part>
  readonly links: readonly Link[]
}

export const artifactId = (name: string) => `a ${name}`
export const itemId = (key: string) => `i ${key}`

/** All of a run. What no item reads or writes has no place in it. */
export function graphOf(run: Run): ArtifactGraph {
  const parts = new Map<string, Part>()
  const links: Link[] = []
  const link = (from: Part, to: Part, hasChanged = false) => {
    for (const part of [from, to]) parts.set(idOf(part), part)
    links.push({ from: idOf(from), to: idOf(to), hasChanged })
  }
  for (const [key, { inputs }] of Object.entries(run.work_items)) {
    for (const [name, sha256] of Object.entries(inputs)) {
      const now = entryOf(run.artifacts_index, name)
      if (now === undefined) continue
      link({ kind: 'artifact', name }, { kind: 'item', name: key }, now.sha256 !== sha256)
    }
  }
  for (const [name, { work_item: key }] of Object.entries(run.artifacts_index)) {
    if (key !== null) link({ kind: 'item', name: key }, { kind: 'artifact', name })
  }
  return { parts, links }
}

function idOf({ kind, name }: Part): string {
  return kind === 'artifact' ? artifactId(name) : itemId(name)
}

type Direction = 'from' | 'to'

function neighbours(links: readonly Link[], by: Direction): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const link of links) {
    const own = found.get(link[by])
    const other = by === 'from' ? link.to : link.from
    if (own === undefined) found.set(link[by], [other])
    else own.push(other)
  }
  return found
}

function reached(from: Iterable<string>, next: ReadonlyMap<string, readonly string[]>) {
  const seen = new Set(from)
  // A Set also iterates over what is added during the loop.
  for (const id of seen) for (const other of next.get(id) ?? []) seen.add(other)
  return seen
}

/** What these were made of, and what was made of them. */
export function around(graph: ArtifactGraph, ids: readonly string[]): ArtifactGraph {
  const kept = reached(ids, neighbours(graph.links, 'to'))
  for (const id of reached(ids, neighbours(graph.links, 'from'))) kept.add(id)
  return only(graph, kept)
}

/** The first parts, in the order in which they depend on each other. */
export function firstOf(graph: ArtifactGraph, most: number): ArtifactGraph {
  if (graph.parts.size <= most) return graph
  const columns = columnsOf(graph)
  const columnOf = (id: string) => columns.get(id) ?? 0
  const order = [...graph.parts.keys()].sort((a, b) => columnOf(a) - columnOf(b))
  return only(graph, new Set(order.slice(0, most)))
}

function only({ parts, links }: ArtifactGraph, kept: ReadonlySet<string>): ArtifactGraph {
  return {
    parts: new Map([...parts].filter(([id]) => kept.has(id))),
    links: links.filter(({ from, to }) => kept.has(from) && kept.has(to)),
  }
}

/**
 * The way from the changed artifact to one that is stale because of it, as ids; undefined if items
 * no longer connect them.
 */
export function wayBetween(
  { links }: ArtifactGraph,
  cause: string,
  stale: string,
): readonly string[] | undefined {
  const before = neighbours(links, 'to')
  const [from, to] = [artifactId(cause), artifactId(stale)]
  const next = new Map<string, string | undefined>([[to, undefined]])
  // A Map also iterates over what is added during the loop, so that the shortest way is found.
  for (const [id] of next) {
    if (id === from && next.size > 1) break
    for (const other of before.get(id) ?? []) if (!next.has(other)) next.set(other, id)
  }
  if (!next.has(from) || from === to) return undefined
  const way: string[] = []
  for (let id: string | undefined = from; id !== undefined; id = next.get(id)) way.push(id)
  return way
}

/**
 * The column of each part: artifacts are in even ones, items in odd ones, each after everything
 * that it was made of. An item that writes what it reads closes a circle; the link that closes it
 * does not count.
 */
function columnsOf({ parts, links }: ArtifactGraph): ReadonlyMap<string, number> {
  const before = neighbours(links, 'to')
  const columns = new Map<string, number>()
  /** How many sources of a part were looked at; a part with an entry and no column is open. */
  const looked = new Map<string, number>()
  const visit = (start: string) => {
    const stack = [start]
    for (let id = stack.at(-1); id !== undefined; id = stack.at(-1)) {
      const sources = before.get(id) ?? []
      const source = sources[looked.get(id) ?? 0]
      if (source === undefined) {
        stack.pop()
        if (!columns.has(id)) columns.set(id, columnAfter(sources))
        if (columns.get(id) === 0 && parts.get(id)?.kind === 'item') columns.set(id, 1)
        continue
      }
      looked.set(id, (looked.get(id) ?? 0) + 1)
      if (!looked.has(source)) stack.push(source)
    }
  }
  const columnAfter = (sources: readonly string[]) =>
    sources.reduce((most, one) => Math.max(most, (columns.get(one) ?? -1) + 1), 0)
  for (const id of parts.keys()) visit(id)
  return columns
}

export interface PartBox extends Part {
  readonly id: string
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

export interface LinkLine extends Link {
  readonly path: string
  readonly tip: { readonly x: number; readonly y: number }
}

export interface GraphPicture {
  readonly width: number
  readonly height: number
  readonly boxes: readonly PartBox[]
  readonly lines: readonly LinkLine[]
}

const WIDTHS = { artifact: 164, item: 140 } as const
const HEIGHTS = { artifact: 30, item: 24 } as const
const GAP = 34
const ROW = 40
const MARGIN = 6
const SWEEPS = 5

/** Where everything is drawn: columns from left to right, and rows near what they come from. */
export function layOutParts(graph: ArtifactGraph): GraphPicture {
  const columns = ordered(graph)
  const most = Math.max(1, ...columns.map((column) => column.length))
  const boxes = new Map<string, PartBox>()
  let x = MARGIN
  for (const column of columns) {
    const top = MARGIN + ((most - column.length) * ROW) / 2
    let widest = 0
    for (const [row, id] of column.entries()) {
      const part = graph.parts.get(id) as Part
      const [width, height] = [WIDTHS[part.kind], HEIGHTS[part.kind]]
      boxes.set(id, { ...part, id, x, y: top + row * ROW + (ROW - height) / 2, width, height })
      widest = Math.max(widest, width)
    }
    x += widest + GAP
  }
  const lines = graph.links.map((link) => lineOf(link, boxes))
  return {
    ...{ width: x - GAP + MARGIN, height: most * ROW + 2 * MARGIN },
    ...{ boxes: [...boxes.values()], lines },
  }
}

/** Each column in the order of the mean place of its neighbours, so that few lines cross. */
function ordered(graph: ArtifactGraph): string[][] {
  const byColumn = new Map<number, string[]>()
  const at = columnsOf(graph)
  for (const id of [...graph.parts.keys()].sort()) {
    const column = at.get(id) ?? 0
    byColumn.set(column, [...(byColumn.get(column) ?? []), id])
  }
  const columns = [...byColumn].sort(([a], [b]) => a - b).map(([, ids]) => ids)
  const sides = [neighbours(graph.links, 'to'), neighbours(graph.links, 'from')] as const
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const place = new Map(columns.flatMap((ids) => ids.map((id, row) => [id, row / ids.length])))
    const side = sides[sweep % 2] as ReadonlyMap<string, readonly string[]>
    const mean = (id: string) => {
      const near = (side.get(id) ?? []).flatMap((one) => place.get(one) ?? [])
      if (near.length === 0) return place.get(id) ?? 0
      return near.reduce((sum, one) => sum + one, 0) / near.length
    }
    for (const ids of columns) {
      const means = new Map(ids.map((id) => [id, mean(id)]))
      ids.sort((a, b) => (means.get(a) ?? 0) - (means.get(b) ?? 0))
    }
  }
  return columns
}

function lineOf(link: Link, boxes: ReadonlyMap<string, PartBox>): LinkLine {
  const [from, to] = [boxes.get(link.from) as PartBox, boxes.get(link.to) as PartBox]
  const isBack = to.x <= from.x
  const start = { x: from.x + (isBack ? 0 : from.width), y: from.y + from.height / 2 }
  const tip = { x: to.x + (isBack ? to.width : 0), y: to.y + to.height / 2 }
  const bend = Math.max(GAP / 2, Math.abs(tip.x - start.x) / 2) * (isBack ? -1 : 1)
  // A circle between neighbours would be drawn over the line of the other direction.
  const sag = isBack ? ROW / 2 : 0
  const [a, b] = [start.y + sag, tip.y + sag]
  const curve = `C${start.x + bend} ${a} ${tip.x - bend} ${b} ${tip.x} ${tip.y}`
  const path = `M${start.x} ${start.y}${curve}`
  return { ...link, path, tip }
}
