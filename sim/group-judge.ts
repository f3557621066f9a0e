/**
 * The judge of groups (P13). It reads facts in the order of the ledger and knows from the plan of
 * each job which group it has; it uses nothing of the engine's own rules.
 *
 *   strict   When a job starts, no other job of its group runs, and every job of the group that was
 *            enqueued earlier has committed or ended; a parked one may be skipped if the type says
 *            so.
 *   turns    While a group of weight w has a job that could start, at most Σw' other jobs start
 *            between its i-th start and its (i+w)-th, where Σw' is the sum of the weights of the
 *            other groups. The same holds from the moment at which it begins to wait.
 */
import type { Priority } from 'pawl'
import type { Fact } from 'pawl/rules'
import type { Judged, Told } from './checker.ts'
import { claimsOf, isStart } from './claims.ts'

/** What a job of a group will do. */
export interface GroupPlan {
  readonly n: number
  /** Jobs of a `line` have no group: they are claimed by priority. */
  readonly kind: 'turn' | 'strict' | 'line'
  readonly key: number
  readonly ms: number
  readonly fails: number
  readonly priority: Priority
  readonly delayMs: number
}

interface Evidence {
  readonly told: readonly Told[]
  /** Every fact in the order of the ledger. */
  readonly ledger: readonly { readonly id: string; readonly seq: number }[]
  readonly planOf: ReadonlyMap<string, GroupPlan>
  /** The weight of each group that takes turns, by its key. */
  readonly weights: readonly number[]
  readonly isSkipping: boolean
}

interface Entry {
  readonly id: string
  readonly fact: Fact
  readonly plan: GroupPlan
}

/** Judges the groups of a store in which nothing goes on any more. */
export function judgeGroups(evidence: Evidence): {
  readonly judged: Judged[]
  readonly starts: number
} {
  const factsOf = new Map(evidence.told.map(({ job, facts }) => [job.id, facts]))
  const entries = evidence.ledger.flatMap(({ id, seq }): Entry[] => {
    const [fact, plan] = [factsOf.get(id)?.[seq - 1], evidence.planOf.get(id)]
    return fact === undefined || plan === undefined ? [] : [{ id, fact, plan }]
  })
  const strict = new StrictGroups(evidence.isSkipping)
  for (const entry of entries) if (entry.plan.kind === 'strict') strict.follow(entry)
  const turns = entries.filter(({ plan }) => plan.kind === 'turn')
  const judged = [...strict.judged, ...judgeTurns(turns, evidence.weights)]
  return { judged, starts: entries.filter(isStart).length }
}

/** Whether the fact ends the execution. */
function isStop({ fact }: Entry): boolean {
  const last = fact.execution?.statuses.at(-1)
  return last === 'COMMITTED' || last === 'DONE' || last === 'ABORTED'
}

function hasEnded({ fact }: Entry): boolean {
  return fact.outcome !== undefined || fact.execution?.statuses.includes('COMMITTED') === true
}

/** One at a time, in the order of enqueueing. */
class StrictGroups {
  readonly judged: Judged[] = []
  readonly #isSkipping: boolean
  /** The jobs that hold each group, in the order of their creation. */
  readonly #line = new Map<number, string[]>()
  readonly #running = new Map<number, string>()
  readonly #parked = new Set<string>()

  constructor(isSkipping: boolean) {
    this.#isSkipping = isSkipping
  }

  follow(entry: Entry): void {
    const { id, fact, plan } = entry
    const line = this.#line.get(plan.key) ?? []
    this.#line.set(plan.key, line)
    if (fact.trigger === 'create') line.push(id)
    if (isStart(entry)) this.#start(entry, line)
    if (isStop(entry) && this.#running.get(plan.key) === id) this.#running.delete(plan.key)
    const isParked = fact.to === 'quarantined' || typeof fact.blockedReason === 'string'
    if (isParked) this.#parked.add(id)
    else this.#parked.delete(id)
    if (hasEnded(entry) && line.includes(id)) line.splice(line.indexOf(id), 1)
  }

  #start({ id, fact, plan }: Entry, line: readonly string[]): void {
    const running = this.#running.get(plan.key)
    if (running !== undefined) this.#blame(id, fact, `starts while ${running} of its group runs`)
    this.#running.set(plan.key, id)
    const ahead = line.slice(0, line.indexOf(id))
    const overtaken = ahead.find((other) => !(this.#isSkipping && this.#parked.has(other)))
    if (overtaken !== undefined) this.#blame(id, fact, `overtakes ${overtaken} of its group`)
  }

  #blame(job: string, fact: Fact, what: string): void {
    this.judged.push({ promise: 'P13', job, what, facts: [fact] })
  }
}

/** What a group that takes turns has seen since it waits without a pause. */
interface Waiting {
  /** Jobs that could start and have not been claimed yet. */
  readonly ready: Set<string>
  /** How many jobs of other groups have started since each of its last w starts. */
  readonly since: number[]
}

/**
 * Follows only jobs before their first start: whether a retry could start is not in the ledger.
 * The order of starts within one claim is not known, so those of the same claim do not count.
 */
function judgeTurns(entries: readonly Entry[], weights: readonly number[]): Judged[] {
  const found: Judged[] = []
  const groups = weights.map((): Waiting => ({ ready: new Set(), since: [] }))
  const others = weights.map((own) => weights.reduce((sum, weight) => sum + weight, 0) - own)
  for (const claim of claimsOf(entries)) {
    const started = claim.filter(isStart)
    for (const [key, group] of groups.entries()) {
      const own = started.filter(({ plan }) => plan.key === key)
      const weight = weights[key] as number
      if (group.ready.size > 0 && own.length === 0) {
        for (const i of group.since.keys()) (group.since[i] as number) += started.length
        const first = group.since[0] ?? 0
        if (first > (others[key] as number)) {
          const what = `the group k${key} of weight ${weight} waits while ${first} others start`
          found.push({ promise: 'P13', job: [...group.ready][0] as string, what, facts: [] })
          group.since.splice(0, group.since.length, 0)
        }
      }
      for (const _ of own) group.since.push(0)
      while (group.since.length > weight) group.since.shift()
      for (const { id, fact, plan } of claim) {
        if (plan.key !== key) continue
        if (fact.trigger === 'create') group.ready.add(id)
        else group.ready.delete(id)
      }
      // It begins to wait, or has nothing that could start.
      if (group.ready.size === 0) group.since.splice(0)
      else if (group.since.length === 0) group.since.push(0)
    }
  }
  return found
}
