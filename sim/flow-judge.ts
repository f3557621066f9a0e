/**
 * The judge of flows (P19). It reads the ledger alone: which dependencies a job has follows from
 * its first fact, and their state at a moment follows from their facts.
 */
import type { Fact } from 'pawl/rules'
import type { Judged, Told } from './checker.ts'
import type { PlannedFlow } from './flow-plans.ts'

type AfterGroup = NonNullable<Fact['after']>['groups'][number]
type NodeRange = Exclude<AfterGroup['of'], 'members'>[number]
/** Jobs by flow, or by parent and invoke, and number. */
type Places = ReadonlyMap<string, ReadonlyMap<number, Told>>

/** The bit of `links` that says that a job waits for others. */
const WAITS = 2

/** How many jobs were released, and what is wrong with any of them. */
export function judgeFlows(
  told: readonly Told[],
  plans: readonly PlannedFlow[],
  healedAt: number,
): { readonly judged: Judged[]; readonly released: number } {
  const places = placesOf(told)
  const judged = [
    ...plans.flatMap((plan) => judgeCreation(plan, places)),
    ...told.flatMap((one) => judgeRelease(one, places, healedAt)),
    ...told.flatMap((one) => judgeChild(one, told, healedAt)),
  ]
  return { judged, released: told.flatMap(({ facts }) => facts.filter(isRelease)).length }
}

/** The fact after which a job waits no more; an arrival, or the redrive of a failed job. */
function isRelease({ seq, links }: Fact): boolean {
  return seq > 1 && links !== undefined && (links & WAITS) === 0
}

function placesOf(told: readonly Told[]): Places {
  const places = new Map<string, Map<number, Told>>()
  for (const one of told) {
    const { node } = one.job
    if (node === null) continue
    const place = placeOf(one)
    places.set(place, (places.get(place) ?? new Map<number, Told>()).set(node, one))
  }
  return places
}

function placeOf({ job, facts }: Told): string {
  return `${job.flow}${facts[0]?.as === undefined ? '' : `/${facts[0].as}`}`
}

/** A flow is created whole or not at all, and what was acknowledged is there. */
function judgeCreation({ request, known, isCreated }: PlannedFlow, places: Places): Judged[] {
  const count = places.get(request.id)?.size ?? 0
  const least = isCreated ? Math.max(known, request.nodes.length) : 0
  if (count < least) return [blame(request.id, `${least} nodes were acknowledged, ${count} exist`)]
  const isPart = count > 0 && count < request.nodes.length
  return isPart ? [blame(request.id, `only ${count} of its nodes were created`)] : []
}

/** A job that waits starts when everything has come out as it needs, and not before. */
function judgeRelease(one: Told, places: Places, healedAt: number): Judged[] {
  const { job, facts } = one
  const after = facts[0]?.after
  if (after === undefined || job.flow === null) return []
  const release = facts.find(isRelease)
  const claim = facts.find(({ trigger }) => trigger === 'claim')
  if (claim !== undefined && (release === undefined || release.seq > claim.seq)) {
    return [blame(job.id, 'was claimed before it was released', facts)]
  }
  if (release === undefined) return judgeWaiting(one, places, healedAt)
  return groupsUntil(one, places, release.at).flatMap(({ name, isAsNeeded }) =>
    isAsNeeded ? [] : [blame(job.id, `was released, and ${name} had come out otherwise`, facts)],
  )
}

/** A person gave up a job that waits; then something that it needs must have been missing. */
function judgeWaiting(one: Told, places: Places, healedAt: number): Judged[] {
  const { job, facts } = one
  const end = facts.at(-1)
  if (end?.operator === undefined || end.outcome !== 'cancelled') return []
  const at = end.at - LATE_MS
  const groups = groupsUntil(one, places, at)
  if (at < healedAt || groups.some(({ isAsNeeded }) => !isAsNeeded)) return []
  return [blame(job.id, 'was left waiting, although all had come out as it needs', facts)]
}

/** The dependencies of a job, and whether each group had come out as needed at a time. */
function groupsUntil(one: Told, places: Places, at: number) {
  const nodes = places.get(placeOf(one)) ?? new Map<number, Told>()
  return (one.facts[0]?.after?.groups ?? []).map((group) => {
    const awaited = numbersOf(group, nodes).map((n) => nodes.get(n))
    const stood = awaited.map((each) => outcomesUntil(each?.facts ?? [], at))
    return { name: group.name, isAsNeeded: isAsNeeded(group, stood) }
  })
}

function isAsNeeded({ need }: AfterGroup, stood: readonly (readonly string[])[]): boolean {
  if (need === 'failure') return stood.some((ends) => ends.some((end) => end !== 'succeeded'))
  if (need === 'end') return stood.every((ends) => ends.length > 0)
  return stood.every((ends) => ends.includes('succeeded'))
}

function numbersOf({ of }: AfterGroup, nodes: ReadonlyMap<number, Told>): number[] {
  if (of !== 'members') return of.flatMap((range) => numbersIn(range))
  const isMember = (n: number) => nodes.get(n)?.facts[0]?.after === undefined
  return [...nodes.keys()].filter(isMember)
}

function numbersIn(range: NodeRange): number[] {
  if (typeof range === 'number') return [range]
  const [first, last] = range
  return Array.from({ length: last - first + 1 }, (_, i) => first + i)
}

/** How a job had ended until a time, once for each time that it ended. */
function outcomesUntil(facts: readonly Fact[], at: number): string[] {
  return facts.flatMap((fact) => (fact.at <= at && fact.outcome ? [fact.outcome] : []))
}

/** Once its parent has ended without success, a child does not start any more. */
function judgeChild({ job, facts }: Told, told: readonly Told[], healedAt: number): Judged[] {
  if (facts[0]?.as === undefined) return []
  const parent = told.find(({ job: { id } }) => id === job.flow)
  if (parent === undefined) return [blame(job.id, 'has no parent', facts)]
  const end = parent.facts.findLast(({ outcome }) => outcome !== undefined && outcome !== null)
  if (end === undefined || parent.job.outcome === 'succeeded') return []
  const late = Math.max(end.at, healedAt) + LATE_MS
  const isLate = facts.some(({ trigger, at }) => trigger === 'claim' && at > late)
  return isLate ? [blame(job.id, 'was claimed long after its parent had ended', facts)] : []
}

/** After the faults, the children of an ended parent are cancelled within this time. */
const LATE_MS = 20_000

function blame(job: string, what: string, facts: readonly Fact[] = []): Judged {
  return { promise: 'P19', job, what, facts }
}
