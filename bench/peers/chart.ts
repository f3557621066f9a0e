/** A bar chart as SVG: a group of bars for each metric, the first of them Pawl's. */
import type { Compared } from './compare.ts'

const WIDTH = 760
const LABEL = 250
const BAR = 16
const GAP = 4
const HEAD = 26
const VALUE = 70
const FONT = 'font-family="system-ui, sans-serif" font-size="12"'

interface Bar {
  readonly label: string
  readonly value: number
  readonly isOwn: boolean
}

/** Draws the metrics; bars of one metric share a scale, since metrics differ widely. */
export function chartOf(title: string, compared: readonly Compared[]): string {
  const names = [...new Set(compared.map(({ metric }) => metric.name))]
  const parts: string[] = []
  let y = HEAD
  for (const name of names) {
    const own = compared.filter(({ metric }) => metric.name === name)
    const bars = barsOf(own)
    const most = Math.max(...bars.map(({ value }) => value))
    parts.push(text(0, y + 14, name, 'font-weight="600"'))
    y += HEAD - 4
    for (const bar of bars) {
      parts.push(...drawn(bar, most, y))
      y += BAR + GAP
    }
    y += GAP * 2
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" ${FONT} role="img">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${y}" fill="#fff"/>`,
    text(0, 16, title, 'font-size="14" font-weight="700"'),
    ...parts,
    '</svg>',
    '',
  ].join('\n')
}

function barsOf(compared: readonly Compared[]): Bar[] {
  const [first] = compared
  if (first === undefined) return []
  const peers = compared.map(({ result }) => {
    return { label: result.peerName, value: result.peer, isOwn: false }
  })
  return [{ label: 'Pawl', value: first.result.pawl, isOwn: true }, ...peers]
}

function drawn({ label, value, isOwn }: Bar, most: number, y: number): string[] {
  const width = Math.max(1, Math.round((value / most) * (WIDTH - LABEL - VALUE)))
  const fill = isOwn ? '#2457c5' : '#9aa5b1'
  return [
    text(LABEL - 8, y + 12, label, 'text-anchor="end"'),
    `<rect x="${LABEL}" y="${y}" width="${width}" height="${BAR}" fill="${fill}"/>`,
    text(LABEL + width + 6, y + 12, value.toLocaleString('en-US')),
  ]
}

function text(x: number, y: number, content: string, attributes = ''): string {
  return `<text x="${x}" y="${y}" fill="#1c2530" ${attributes}>${escaped(content)}</text>`
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
