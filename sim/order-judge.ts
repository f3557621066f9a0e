/**
 * The judge of priorities (P15: no job is overtaken without end). It reads facts in the order of
 * the ledger, and computes the order of claims itself: by number, then by due time less the time by
 * which the job is ahead, then by age. When a claim takes a job, every job that could start and is
 * left behind must come later in that order.
 *
 * Only jobs that were due when they were created, and that no worker has taken yet, can be left
 * behind: when a later due time or a retry became ready is not in the ledger.
 */
import type { Fact } from 'pawl/rules'
import type { Judged, Told } from './checker.ts'
import { claimsOf, isStart } from './claims.ts'

interface Evidence {
  readonly told: readonly Told[]
  /** Every fact in the order of the ledger. */
  readonly ledger: readonly { readonly id: string; readonly seq: number }[]
  /** The jobs that are judged: all jobs of one queue, none of which has a limit or a group. */
  readonly isOrdered: (id: string) => boolean
}

/** The place of a job in its queue. */
interface Place {
  readonly age: number
  readonly priority: number
  readonly aheadMs: number
  readonly runAt: number
}

/** Judges the order of claims; counts those that a job won by being ahead. */
export function judgeOrder({ told, ledger, isOrdered }: Evidence): {
  readonly judged: Judged[]
  readonly overtakings: number
} {
  const factsOf = new Map(told.map(({ job, facts }) => [job.id, facts]))
  const entries = ledger.flatMap(({ id, seq }): { id: string; fact: Fact }[] => {
    const fact = factsOf.get(id)?.[seq - 1]
    return fact === undefined || !isOrdered(id) ? [] : [{ id, fact }]
  })
  const judged: Judged[] = []
  const places = new Map<string, Place>()
  const waiting = new Set<string>()
  let overtakings = 0
  for (const claim of claimsOf(entries)) {
    for (const { id, fact } of claim) {
      places.set(id, placeAfter(places.get(id) ?? { ...FIRST, age: places.size }, fact))
      const isDue = (fact.runAt ?? Number.POSITIVE_INFINITY) <= fact.at
      if (fact.trigger === 'create' && isDue) waiting.add(id)
      else if (fact.trigger !== 'prioritise') waiting.delete(id)
    }
    for (const entry of claim.filter(isStart)) {
      const own = places.get(entry.id) as Place
      for (const other of waiting) {
        const place = places.get(other) as Place
        if (place.runAt > entry.fact.at) continue
        if (isBefore(place, own)) {
          const what = `is claimed before ${other}, whose turn it is`
          judged.push({ promise: 'P15', job: entry.id, what, facts: [entry.fact] })
        } else if (isBefore({ ...place, aheadMs: 0 }, { ...own, aheadMs: 0 })) overtakings++
      }
    }
  }
  return { judged, overtakings }
}

const FIRST = { priority: 0, aheadMs: 0, runAt: 0 } as const

function placeAfter(before: Place, fact: Fact): Place {
  return {
    age: before.age,
    priority: fact.priority ?? before.priority,
    aheadMs: fact.aheadMs ?? before.aheadMs,
    runAt: fact.runAt ?? before.runAt,
  }
}

function isBefore(a: Place, b: Place): boolean {
  const byTime = a.runAt - a.aheadMs - (b.runAt - b.aheadMs)
  return (a.priority - b.priority || byTime || a.age - b.age) < 0
}
