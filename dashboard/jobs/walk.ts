/** The way of a job through its machine, from its facts. Pure. */
import type { Fact } from '../../src/core/job/facts.ts'

export interface Visit {
  times: number
  ms: number
}

interface Walk {
  readonly states: ReadonlyMap<string, Visit>
  readonly edges: ReadonlyMap<string, Visit>
}

/** Which states and edges these facts have visited, and for how long. */
export function walkOf(facts: readonly Fact[]): Walk {
  const states = new Map<string, Visit>()
  const edges = new Map<string, Visit>()
  let since = facts[0]?.at ?? 0
  for (const [index, fact] of facts.entries()) {
    const path = [fact.from, ...(fact.via ?? []), fact.to]
    if (index === 0) visit(states, fact.via?.[0] ?? fact.to, 0)
    for (const [i, to] of path.slice(1).entries()) {
      const from = path[i]
      if (from === to && fact.via === undefined) continue
      const ms = i === 0 ? fact.at - since : 0
      if (from !== null && from !== undefined) {
        visit(edges, `${from}\n${to}`, ms)
        const left = states.get(from)
        if (left) left.ms += ms
        visit(states, to as string, 0)
      }
      since = fact.at
    }
  }
  return { states, edges }
}

function visit(map: Map<string, Visit>, key: string, ms: number): void {
  const known = map.get(key)
  map.set(key, { times: (known?.times ?? 0) + 1, ms: (known?.ms ?? 0) + ms })
}
