/**
 * The layout of a graph without a direction of its own, such as artifacts and flows: columns from
 * left to right, each part after everything that leads to it, and rows near their neighbours. Pure.
 */
export interface Link {
  readonly from: string
  readonly to: string
}

/** How much room a part needs. */
export interface Size {
  readonly width: number
  readonly height: number
  /** Its column if nothing leads to it; 0 if absent. */
  readonly least?: number
}

export interface Placed extends Size {
  readonly x: number
  readonly y: number
}

interface Point {
  readonly x: number
  readonly y: number
}

export type Drawn<L extends Link> = L & {
  readonly path: string
  readonly tip: Point
  /** Where a label has room. */
  readonly middle: Point
}

export interface Columns<L extends Link> {
  readonly width: number
  readonly height: number
  readonly boxes: ReadonlyMap<string, Placed>
  readonly lines: readonly Drawn<L>[]
}

/** Distances: between columns, and between the middles of rows. */
export interface Distances {
  readonly gap: number
  readonly row: number
}

const MARGIN = 6
const SWEEPS = 5

export function neighbours(links: readonly Link[], by: 'from' | 'to'): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const link of links) {
    const own = found.get(link[by])
    const other = by === 'from' ? link.to : link.from
    if (own === undefined) found.set(link[by], [other])
    else own.push(other)
  }
  return found
}

/**
 * The column of each part, after those of everything that leads to it. If links close a circle, the
 * one that closes it does not count.
 */
export function columnsOf(
  parts: ReadonlyMap<string, Pick<Size, 'least'>>,
  links: readonly Link[],
): ReadonlyMap<string, number> {
  const before = neighbours(links, 'to')
  const columns = new Map<string, number>()
  /** How many sources of a part were looked at; a part with an entry and no column is open. */
  const looked = new Map<string, number>()
  const columnAfter = (sources: readonly string[]) =>
    sources.reduce((most, one) => Math.max(most, (columns.get(one) ?? -1) + 1), 0)
  const visit = (start: string) => {
    const stack = [start]
    for (let id = stack.at(-1); id !== undefined; id = stack.at(-1)) {
      const sources = before.get(id) ?? []
      const source = sources[looked.get(id) ?? 0]
      if (source === undefined) {
        stack.pop()
        if (!columns.has(id)) columns.set(id, columnAfter(sources))
        if (columns.get(id) === 0) columns.set(id, parts.get(id)?.least ?? 0)
        continue
      }
      looked.set(id, (looked.get(id) ?? 0) + 1)
      if (!looked.has(source)) stack.push(source)
    }
  }
  for (const id of parts.keys()) visit(id)
  return columns
}

/** Where everything is drawn. */
export function layOutColumns<L extends Link>(
  parts: ReadonlyMap<string, Size>,
  links: readonly L[],
  distances: Distances,
): Columns<L> {
  const { gap, row: step } = distances
  const columns = ordered(parts, links)
  const most = Math.max(1, ...columns.map((column) => column.length))
  const boxes = new Map<string, Placed>()
  let x = MARGIN
  for (const column of columns) {
    const top = MARGIN + ((most - column.length) * step) / 2
    let widest = 0
    for (const [row, id] of column.entries()) {
      const size = parts.get(id) as Size
      boxes.set(id, { ...size, x, y: top + row * step + (step - size.height) / 2 })
      widest = Math.max(widest, size.width)
    }
    x += widest + gap
  }
  const lines = links.map((link) => lineOf(link, boxes, distances))
  return { width: x - gap + MARGIN, height: most * step + 2 * MARGIN, boxes, lines }
}

/** Each column in the order of the mean place of its neighbours, so that few lines cross. */
function ordered(parts: ReadonlyMap<string, Size>, links: readonly Link[]): string[][] {
  const byColumn = new Map<number, string[]>()
  const at = columnsOf(parts, links)
  for (const id of [...parts.keys()].sort()) {
    const column = at.get(id) ?? 0
    const own = byColumn.get(column)
    if (own === undefined) byColumn.set(column, [id])
    else own.push(id)
  }
  const columns = [...byColumn].sort(([a], [b]) => a - b).map(([, ids]) => ids)
  const sides = [neighbours(links, 'to'), neighbours(links, 'from')] as const
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

function lineOf<L extends Link>(
  link: L,
  boxes: ReadonlyMap<string, Placed>,
  { gap, row }: Distances,
): Drawn<L> {
  const [from, to] = [boxes.get(link.from) as Placed, boxes.get(link.to) as Placed]
  const isBack = to.x <= from.x
  const start = { x: from.x + (isBack ? 0 : from.width), y: from.y + from.height / 2 }
  const tip = { x: to.x + (isBack ? to.width : 0), y: to.y + to.height / 2 }
  const bend = Math.max(gap / 2, Math.abs(tip.x - start.x) / 2) * (isBack ? -1 : 1)
  // A circle between neighbours would be drawn over the line of the other direction.
  const sag = isBack ? row / 2 : 0
  const [a, b] = [start.y + sag, tip.y + sag]
  const curve = `C${start.x + bend} ${a} ${tip.x - bend} ${b} ${tip.x} ${tip.y}`
  const middle = { x: (start.x + tip.x) / 2, y: (start.y + tip.y) / 2 }
  return { ...link, path: `M${start.x} ${start.y}${curve}`, tip, middle }
}
