/**
 * What was made of what: artifacts and the work items between them. An item points to what it
 * wrote, and what it read points to the item. These are the edges by which the engine decides what
 * is stale (`src/core/run/staleness.ts`). Pure.
 */
import { entryOf, type Run } from '../../src/core/run/run.ts'
import {
  type Columns,
  columnsOf,
  type Drawn,
  layOutColumns,
  neighbours,
  type Size,
} from '../graph/columns.ts'

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
  const columns = columnsOf(sizesOf(graph), graph.links)
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

export interface PartBox extends Part {
  readonly id: string
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

export type LinkLine = Drawn<Link>

export interface GraphPicture extends Pick<Columns<Link>, 'width' | 'height' | 'lines'> {
  readonly boxes: readonly PartBox[]
}

/** Artifacts are in even columns, items in odd ones. */
const SIZES: Readonly<Record<Part['kind'], Size>> = {
  artifact: { width: 164, height: 30 },
  item: { width: 140, height: 24, least: 1 },
}
const DISTANCES = { gap: 34, row: 40 }

function sizesOf({ parts }: ArtifactGraph): ReadonlyMap<string, Size> {
  return new Map([...parts].map(([id, { kind }]) => [id, SIZES[kind]]))
}

/** Where everything is drawn. */
export function layOutParts(graph: ArtifactGraph): GraphPicture {
  const { boxes, ...rest } = layOutColumns(sizesOf(graph), graph.links, DISTANCES)
  const placed = [...boxes].map(([id, { x, y, width, height }]) => {
    return { ...(graph.parts.get(id) as Part), id, x, y, width, height }
  })
  return { ...rest, boxes: placed }
}
