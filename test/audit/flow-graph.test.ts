// The graph of a flow: what is folded, when dependencies arrived, and what decides its end.
import { describe, expect, it } from 'vitest'
import { type FlowGraph, graphOf } from '../../src/audit/flow-folding.ts'
import { boxSays, boxTitle, edgeSays, flowMermaid } from '../../src/audit/flow-mermaid.ts'
import { type FlowPoint, FlowPoints, momentsOf, statusOf } from '../../src/audit/flow-points.ts'
import type { Job } from '../../src/core/job/job.ts'
import { type AfterGroup, LINKS } from '../../src/core/job/links.ts'
import { LIFECYCLES } from '../../src/core/lifecycles/index.ts'

function point(n: number, type: string, more: Partial<FlowPoint> = {}): FlowPoint {
  const times = { createdAt: 1000, releasedAt: 1000, startedAt: null, endedAt: null }
  return { n, id: `job-${n}`, type, status: 'ready', ...times, after: [], ...more }
}

function group(of: AfterGroup['of'], more: Partial<AfterGroup> = {}): AfterGroup[] {
  return [{ name: 'pages', of, need: 'success', list: true, ...more }]
}

function ended(from: number, to: number): Partial<FlowPoint> {
  return { status: 'succeeded', startedAt: from, endedAt: to }
}

const WAITS = { status: 'waits', releasedAt: null } as const

/** Two pages and a bill, then a report. */
function small(): FlowPoint[] {
  return [
    point(0, 'render', ended(1100, 1500)),
    point(1, 'render', ended(1100, 4000)),
    point(2, 'invoice', { status: 'running', startedAt: 1200 }),
    point(3, 'report', {
      ...WAITS,
      after: [...group([[0, 1]]), ...group([2], { name: 'bill', list: false })],
    }),
  ]
}

function boxOf({ boxes }: FlowGraph, type: string) {
  return boxes.find((box) => box.type === type)
}

describe('the graph of a flow', () => {
  it('has a box for each node of a small flow, and an edge for each dependency', () => {
    const { boxes, edges, critical } = graphOf(small())
    expect(boxes.map(({ id, job, count }) => [id, job, count])).toEqual([
      ['n0', 'job-0', 1],
      ['n1', 'job-1', 1],
      ['n2', 'job-2', 1],
      ['n3', 'job-3', 1],
    ])
    expect(edges.map(({ from, to, names, at, open }) => [from, to, names, at, open])).toEqual([
      ['n0', 'n3', ['pages'], 1500, 0],
      ['n1', 'n3', ['pages'], 4000, 0],
      ['n2', 'n3', ['bill'], null, 1],
    ])
    // The bill has not arrived: it holds the report up, whenever the pages came.
    expect(critical).toEqual([2, 3])
    expect(edges.map((edge) => edge.critical)).toEqual([false, false, true])
  })

  it('marks the chain of nodes that arrived last', () => {
    const nodes = small().map((node) => {
      if (node.n === 2) return { ...node, ...ended(1200, 3000) }
      return node.n === 3 ? { ...node, ...ended(4100, 5000), releasedAt: 4000 } : node
    })
    expect(graphOf(nodes).critical).toEqual([1, 3])
    expect(graphOf([]).critical).toEqual([])
  })

  it('folds ten thousand members into one box', () => {
    const nodes = [
      point(0, 'publish', { ...WAITS, after: group('members') }),
      ...Array.from({ length: 10_000 }, (_, i) =>
        point(i + 1, 'render', i < 9990 ? ended(1000 + i, 2000 + i) : {}),
      ),
    ]
    nodes[5] = point(5, 'render', { status: 'failed', startedAt: 1, endedAt: 2 })
    const graph = graphOf(nodes)
    expect(graph.boxes).toHaveLength(2)
    expect(boxOf(graph, 'render')).toMatchObject({
      count: 10_000,
      job: null,
      statuses: { succeeded: 9989, ready: 10, failed: 1 },
      first: 1,
      last: 10_000,
      startedAt: 1,
      endedAt: null,
    })
    expect(graph.edges).toMatchObject([{ count: 10_000, open: 10, failed: 1, at: null }])
    expect(edgeSays(graph.edges[0] as never, 0)).toBe('1 of 10000 failed')
    expect(graphOf(nodes, { unfolded: true }).boxes).toHaveLength(10_001)
  })

  it('folds pairs by what they wait for, and keeps small classes as nodes', () => {
    const pairs = Array.from({ length: 30 }, (_, i) => point(i, 'page')).concat(
      Array.from({ length: 30 }, (_, i) => point(i + 30, 'print', { after: group([i]) })),
    )
    const graph = graphOf([...pairs, point(60, 'tidy', { after: group([[30, 59]]) })])
    expect(graph.boxes.map(({ type, count }) => [type, count])).toEqual([
      ['page', 30],
      ['print', 30],
      ['tidy', 1],
    ])
    expect(graph.edges.map(({ from, to, count }) => [from, to, count])).toEqual([
      ['c0', 'c1', 30],
      ['c1', 'n60', 30],
    ])
  })

  it('stays readable without a circle if no two nodes are alike', () => {
    const chain = Array.from({ length: 3000 }, (_, i) =>
      point(i, `type ${i % 7}`, i === 0 ? {} : { after: group([i - 1]) }),
    )
    const { boxes, edges } = graphOf(chain)
    expect(boxes.length).toBeLessThanOrEqual(40)
    expect(boxes.reduce((sum, { count }) => sum + count, 0)).toBe(3000)
    expect(boxTitle(boxes[0] as never)).toBe('type 0 and 6 more types ×150')
    const order = boxes.map(({ id }) => id)
    for (const { from, to } of edges) expect(order.indexOf(from)).toBeLessThan(order.indexOf(to))
  })

  it('folds by type and depth if there are many classes', () => {
    const first = Array.from({ length: 60 }, (_, i) => point(i, `kind ${i}`))
    const second = first.map((_, i) => point(60 + i, 'same', { after: group([i]) }))
    const third = second.map((_, i) => point(120 + i, 'last', { after: group([60 + i]) }))
    const { boxes } = graphOf([...first.map((one) => ({ ...one, type: 'x' })), ...second, ...third])
    expect(boxes.map(({ type, count }) => [type, count])).toEqual([
      ['x', 60],
      ['same', 60],
      ['last', 60],
    ])
    expect(graphOf([...first, ...second, ...third]).boxes.map(({ count }) => count)).toEqual([
      ...[60, 60, 60],
    ])
  })

  it('keeps its boxes at another time, and says what did not exist', () => {
    const now = small()
    const then = [
      point(0, 'render', { status: 'running', startedAt: 1100 }),
      point(2, 'invoice'),
      point(3, 'report', { ...WAITS, after: now[3]?.after ?? [] }),
    ]
    const { boxes, edges } = graphOf(now, { then })
    expect(boxes.map(({ statuses }) => statuses)).toEqual([
      { running: 1 },
      { later: 1 },
      { ready: 1 },
      { waits: 1 },
    ])
    expect(edges.map(({ at }) => at)).toEqual([null, null, null])
  })

  it('ignores dependencies that retention has removed', () => {
    const left = small().slice(1)
    const points = new FlowPoints(left)
    expect(points.dependencies(left[2] as FlowPoint).map(({ n }) => n)).toEqual([1, 2])
  })

  it('does not count a callback that was not needed', () => {
    const skipped = { status: 'cancelled', endedAt: 9000 } as const
    const nodes = [
      point(0, 'tidy', { ...ended(5000, 6000), after: group('members', { need: 'end' }) }),
      point(1, 'alarm', { ...skipped, after: group('members', { need: 'failure' }) }),
      point(2, 'render', ended(1000, 2000)),
      point(3, 'render', ended(1000, 4000)),
    ]
    expect(graphOf(nodes).critical).toEqual([3, 0])
  })
})

describe('the moments of a flow', () => {
  it('are the times at which something happened, each once', () => {
    expect(momentsOf(small())).toEqual([1000, 1100, 1200, 1500, 4000])
  })

  it('are a selection with both ends if there are many', () => {
    const many = Array.from({ length: 5000 }, (_, i) => point(i, 'x', ended(2000 + i, 8000 + i)))
    const moments = momentsOf(many)
    expect([moments.length, moments[0], moments.at(-1)]).toEqual([240, 1000, 12_999])
  })
})

describe('the status of a node', () => {
  const standard = LIFECYCLES.find(({ name }) => name === 'standard')
  const job = (more: object) =>
    ({
      ...{
        outcome: null,
        blockedReason: null,
        execution: null,
        links: 0,
        runAt: 5,
        state: 'queued',
      },
      ...more,
    }) as unknown as Job
  const cases: [string, object, string][] = [
    ['ended', { outcome: 'failed' }, 'failed'],
    ['parked by a failed dependency', { blockedReason: 'dependency_failed', links: 2 }, 'parked'],
    ['parked by its state', { state: 'quarantined', runAt: null }, 'parked'],
    ['running', { state: 'running', execution: { status: 'IN_PROGRESS' } }, 'running'],
    ['waiting for other jobs', { links: LINKS.waits, runAt: null }, 'waits'],
    ['waiting for a signal', { state: 'waiting', runAt: null }, 'waits'],
    ['due later', { runAt: 11 }, 'scheduled'],
    ['due', { runAt: 10 }, 'ready'],
  ]
  it.each(cases)('of a job that is %s', (_, more, status) => {
    expect(statusOf(job(more), standard, 10)).toBe(status)
  })

  it('does not need a lifecycle that this process does not know', () => {
    expect(statusOf(job({}), undefined, 10)).toBe('ready')
  })
})

describe('the diagram of a flow', () => {
  it('has a line for each box and edge, and marks the critical path', () => {
    expect(flowMermaid(graphOf(small()), 1000)).toBe(`flowchart LR
  b0["render #35;0<br/>succeeded in 400ms"]
  b1["render #35;1<br/>succeeded in 2.9s"]
  b2["invoice #35;2<br/>running"]
  b3["report #35;3<br/>waits"]
  b0 -->|"+500ms"| b3
  b1 -->|"+3s"| b3
  b2 ==> b3
  classDef critical stroke-width:3px
  class b2,b3 critical
`)
  })

  it('escapes names of job types', () => {
    const name = '"]; click b0 href "javascript:alert(1)" <b>\n'
    const text = flowMermaid(graphOf([point(0, name), point(1, 'x'.repeat(200))]), 0)
    expect(text.split('\n').slice(1, 3)).toEqual([
      expect.stringMatching(/^ {2}b0\["#34;#93;#59; click b0 href #34;javascript:alert#40;1#41;/),
      `  b1["${'x'.repeat(60)}<br/>ready"]`,
    ])
  })

  it('says how many of a box stand how, and what failed', () => {
    const nodes = [
      point(0, 'a', { status: 'failed', startedAt: 1000, endedAt: 2000 }),
      point(1, 'b', { status: 'parked', after: group([0]) }),
      point(2, 'c', { ...WAITS, after: group([0], { need: 'end' }) }),
    ]
    const { boxes, edges } = graphOf(nodes)
    expect(boxes.map(boxSays)).toEqual(['failed in 1s', 'parked', 'waits'])
    expect(edges.map((edge) => edgeSays(edge, 1000))).toEqual(['failed', '+1s'])
    expect(flowMermaid(graphOf(nodes), 1000)).toMatch(/b0 (-\.->|==>)\|"\+1s"\| b2/)
  })
})
