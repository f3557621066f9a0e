// What was made of what: the edges, the way on which an artifact became stale, and the picture.
import { describe, expect, it } from 'vitest'
import {
  around,
  artifactId,
  firstOf,
  graphOf,
  itemId,
  layOutParts,
  wayBetween,
} from '../../dashboard/runs/artifact-graph.ts'
import type { Artifact, Run, WorkItem } from '../../src/core/run/run.ts'

const STAMP = '2026-11-18T00:00:00.000Z'

function artifact(work_item: string | null, sha256 = 'now'): Artifact {
  const written = { path: 'p', sha256, schema_id: null, writer_worker: 'w', ts: STAMP }
  return { ...written, work_item, stale_because: null }
}

function item(inputs: Record<string, string>): WorkItem {
  const base = { status: 'finished', attempts: 1, code: null, worker: 'w', error: null } as const
  return { ...base, inputs, declared: [], started_at: STAMP, finished_at: STAMP }
}

/** By pairs, because `__proto__` is a name like any other. */
function runOf(
  artifacts: readonly (readonly [string, Artifact])[],
  items: readonly (readonly [string, WorkItem])[],
): Run {
  return {
    artifacts_index: Object.fromEntries(artifacts),
    work_items: Object.fromEntries(items),
  } as unknown as Run
}

const CHAIN = runOf(
  [
    ['text', artifact(null, 'new')],
    ['draft', artifact('write')],
    ['page', artifact('link')],
    ['other', artifact('look')],
    ['alone', artifact(null)],
  ],
  [
    ['write', item({ text: 'old', size: 'a parameter' })],
    ['link', item({ draft: 'now' })],
    ['look', item({})],
  ],
)

describe('the artifact graph', () => {
  it('has an edge for each artifact that an item read or wrote, and no parameters', () => {
    const { parts, links } = graphOf(CHAIN)
    expect(links).toEqual([
      { from: artifactId('text'), to: itemId('write'), hasChanged: true },
      { from: artifactId('draft'), to: itemId('link'), hasChanged: false },
      { from: itemId('write'), to: artifactId('draft'), hasChanged: false },
      { from: itemId('link'), to: artifactId('page'), hasChanged: false },
      { from: itemId('look'), to: artifactId('other'), hasChanged: false },
    ])
    expect([...parts.keys()]).not.toContain(artifactId('alone'))
  })

  it('finds the way from a changed artifact to a stale one, and none if there is none', () => {
    const graph = graphOf(CHAIN)
    expect(wayBetween(graph, 'text', 'page')).toEqual([
      artifactId('text'),
      itemId('write'),
      artifactId('draft'),
      itemId('link'),
      artifactId('page'),
    ])
    expect(wayBetween(graph, 'text', 'other')).toBeUndefined()
    expect(wayBetween(graph, 'gone', 'page')).toBeUndefined()
    expect(wayBetween(graph, 'page', 'page')).toBeUndefined()
  })

  it('shows only what an artifact was made of and what was made of it', () => {
    const near = around(graphOf(CHAIN), [artifactId('draft')])
    expect([...near.parts.keys()].sort()).toEqual(
      [...['draft', 'page', 'text'].map(artifactId), ...['link', 'write'].map(itemId)].sort(),
    )
    const [first] = firstOf(near, 1).parts.keys()
    expect(first).toBe(artifactId('text'))
  })

  it('draws each part after what it was made of', () => {
    const { boxes, lines } = layOutParts(graphOf(CHAIN))
    const x = new Map(boxes.map((box) => [box.id, box.x]))
    for (const { from, to } of lines) expect(x.get(from)).toBeLessThan(x.get(to) ?? 0)
    expect(new Set(boxes.map((box) => `${box.x} ${box.y}`)).size).toBe(boxes.length)
  })

  it('draws items that write what they read, and names of objects', () => {
    const names = ['__proto__', 'constructor', 'toString']
    const run = runOf(
      names.map((name) => [name, artifact(name)] as const),
      names.map((name) => [name, item({ [name === '__proto__' ? 'toString' : name]: 'now' })]),
    )
    const { boxes, lines } = layOutParts(graphOf(run))
    expect(boxes.map(({ name }) => name).sort()).toEqual([...names, ...names].sort())
    expect(lines).toHaveLength(6)
    expect(lines.every(({ path }) => !path.includes('NaN'))).toBe(true)
  })

  it('copes with a run of ten thousand items that depend on each other', () => {
    const keys = Array.from({ length: 10_000 }, (_, i) => `item ${i}`)
    const run = runOf(
      [['all', artifact('join')], ...keys.map((key) => [key, artifact(key)] as const)],
      [
        ['join', item(Object.fromEntries(keys.map((key) => [key, 'now'])))],
        ...keys.map((key, i) => [key, item(i === 0 ? {} : { [`item ${i - 1}`]: 'now' })] as const),
      ],
    )
    expect(layOutParts(firstOf(graphOf(run), 90)).boxes).toHaveLength(90)
    expect(wayBetween(graphOf(run), 'item 0', 'item 9999')).toHaveLength(19_999)
  })
})
