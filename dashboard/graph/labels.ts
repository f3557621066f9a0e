/** The texts of edges, moved apart if they would cover each other. */
import type { Line } from './layout.ts'

export interface Label {
  readonly key: string
  readonly text: string
  readonly x: number
  readonly y: number
  readonly anchor: 'middle' | 'start'
}

const LETTER = 6.6
const HEIGHT = 15
const TRIES = 6

interface Marked {
  readonly line: Pick<Line, 'edge' | 'label'>
  readonly mark: { readonly label?: string } | undefined
}

/** In the order of the edges: a text that covers an earlier one goes below it. */
export function placeLabels(marked: readonly Marked[]): Label[] {
  const placed: Label[] = []
  for (const { line, mark } of marked) {
    if (mark?.label === undefined) continue
    const { x, y, anchor } = line.label
    const key = `${line.edge.from}>${line.edge.to}`
    const at = (tries: number): Label => {
      return { key, text: mark.label ?? '', x, y: y + tries * HEIGHT, anchor }
    }
    let label = at(0)
    for (let tries = 1; tries <= TRIES && placed.some((one) => cover(one, label)); tries++) {
      label = at(tries)
    }
    placed.push(label)
  }
  return placed
}

export function cover(a: Label, b: Label): boolean {
  const [left, right] = [spanOf(a), spanOf(b)]
  return left.from < right.to && right.from < left.to && Math.abs(a.y - b.y) < HEIGHT
}

/** About where a text is; fonts differ. */
function spanOf({ text, x, anchor }: Label) {
  const width = text.length * LETTER
  const from = anchor === 'middle' ? x - width / 2 : x
  return { from, to: from + width }
}
