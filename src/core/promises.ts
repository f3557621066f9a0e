/**
 * The promises as predicates over plain records. Tests, the simulator and the doctor share them.
 * Each predicate reads the facts of one job (P9 also reads its row) and returns the violations.
 * Predicates never throw on damaged records. They do not use `decide`, and only P9 uses `evolve`,
 * because P9 is about the fold.
 *
 *   P2   every change is an edge of the lifecycle, or forced or repaired by a named operator
 *   P3   at most one execution reaches COMMITTED
 *   P4   every write by a worker carries the claim of its attempt, before the lease expires
 *   P5   attempts only increase, and each budget keeps its bound
 *   P6   an ended job changes only by operator edges; a succeeded job never changes
 *   P7   no lease was recovered before it expired
 *   P9   the row is the fold of the ledger, apart from volatile fields
 *   P11  no claim before the due time, and no retry outside the bounds of its policy
 *   P18  a signal is received once, in order, or stays unread
 *   P19  no worker takes a job while it waits for others
 *
 * Facts before a migration are checked against the version of the lifecycle that was in force.
 *
 * A repair fact with `rebased` states the complete job. Checking starts there: what was wrong
 * before was already reported, and the operator named in the repair has accepted it.
 */
import { encode } from './canonical-json.ts'
import { executionMachine } from './execution.ts'
import { fold } from './job/evolve.ts'
import { type Budget, type Fact, hopsOf, sinceRebase } from './job/facts.ts'
import { DAMAGED } from './job/isolate.ts'
import { isCommitted, type Job } from './job/job.ts'
import { findLinkFaults } from './job/link-promise.ts'
import { findWaitFaults } from './job/wait-promise.ts'
import { type JobTrigger, type Lifecycle, outcomeOf } from './lifecycles/lifecycle.ts'
import { isSameToScheduler, migratedState } from './lifecycles/migration.ts'
import { move } from './machine/move.ts'
import { DELAY_MAX_MS, type JobPolicy, retryDelayBounds } from './retry.ts'
import type { RunEvent } from './run/events.ts'
import type { RunMachine } from './run/machine.ts'

/** A broken promise, with the fact that shows it. */
export interface Violation {
  readonly promise: 'P2' | 'P3' | 'P4' | 'P5' | 'P6' | 'P7' | 'P9' | 'P11' | 'P18' | 'P19'
  readonly seq: number
  readonly what: string
}

/**
 * `others` are further known versions of the lifecycle, for facts before a migration. Facts of an
 * unknown version are not checked.
 */
type Predicate = (
  lifecycle: Lifecycle,
  facts: readonly Fact[],
  others?: readonly Lifecycle[],
) => Violation[]

/** A repair fact that later facts build on. */
type Rebase = Fact & { readonly rebased: Job }

/** Returns the lifecycle that decided a fact; `undefined` if its version is unknown. */
type Rules = (fact: Fact) => Lifecycle | undefined

type Check = (rules: Rules, facts: readonly Fact[], base?: Rebase) => Violation[]

/** Records that are too damaged to be checked break the promise too. */
function predicate(promise: Violation['promise'], check: Check): Predicate {
  return (lifecycle, facts, others = []) => {
    try {
      const rules = rulesOf(lifecycle, facts, others)
      const [first, ...rest] = sinceRebase(facts)
      if (first?.rebased === undefined) return check(rules, facts)
      return check(rules, rest, first as Rebase)
    } catch (error) {
      return [{ promise, seq: 0, what: `cannot be checked: ${String(error)}` }]
    }
  }
}

/** A migration is the last fact of the version that it leaves. */
function rulesOf(
  lifecycle: Lifecycle,
  facts: readonly Fact[],
  others: readonly Lifecycle[],
): Rules {
  const migrations = facts.filter(({ migrated }) => migrated !== undefined)
  if (migrations.length === 0) return () => lifecycle
  const known = [lifecycle, ...others.filter(({ name }) => name === lifecycle.name)]
  const find = (wanted?: number) => known.find(({ version }) => version === wanted)
  return ({ seq }) => {
    const ahead = migrations.find((migration) => migration.seq >= seq)
    return find(ahead === undefined ? migrations.at(-1)?.migrated?.to : ahead.migrated?.from)
  }
}

/** P2: states and executions move along their edges, and `seq` has no gaps. */
export const checkP2 = predicate('P2', (rules, facts, base) => {
  const violations: Violation[] = []
  const report = (seq: number, what: string) => violations.push({ promise: 'P2', seq, what })
  for (const what of base === undefined ? [] : rebaseProblems(rules(base), base)) {
    report((base as Rebase).seq, what)
  }
  let state = base?.to ?? null
  for (const [i, fact] of facts.entries()) {
    const due = (base?.seq ?? 0) + i + 1
    if (fact.seq !== due) report(fact.seq, `seq ${due} is missing`)
    if (fact.from !== state) report(fact.seq, `starts in ${fact.from}, not in ${state}`)
    state = fact.to
    const lifecycle = rules(fact)
    if (fact.migrated !== undefined) {
      const next = rules({ ...fact, seq: fact.seq + 1 })
      const problems = migrationProblems(lifecycle, next, fact, fact.migrated)
      for (const what of problems) report(fact.seq, what)
      continue
    }
    if (lifecycle === undefined) continue
    const begins = fact.via?.[0] ?? fact.to
    if (fact.from === null && begins !== lifecycle.machine.initial) {
      report(fact.seq, `begins in ${begins}`)
    }
    const offTable = fact.trigger === 'force' || fact.trigger === 'repair'
    const problems = offTable ? forceProblems(lifecycle, fact) : hopProblems(lifecycle, fact)
    for (const what of problems) report(fact.seq, what)
    const isMoved = fact.from !== fact.to || fact.via !== undefined
    const outcome = isMoved ? outcomeOf(lifecycle.roles.get(fact.to)) : undefined
    if (fact.outcome !== outcome) report(fact.seq, `ends ${fact.outcome}, not ${outcome}`)
  }
  return [...violations, ...executionViolations(facts, base)]
})

/** A migration must lead to the mapped state of the later version, and must not end the job. */
function migrationProblems(
  before: Lifecycle | undefined,
  next: Lifecycle | undefined,
  { from, to, outcome, execution }: Fact,
  migrated: NonNullable<Fact['migrated']>,
): string[] {
  const problems =
    outcome !== undefined || execution !== undefined ? ['changed more than the version'] : []
  // P2 already reports a fact without a start state.
  if (next === undefined || from === null) return problems
  if (migrated.to <= migrated.from) problems.push(`went back to version ${migrated.to}`)
  const target = migratedState(next, migrated.from, from)
  const isSame = before === undefined || isSameToScheduler(before, next, from, to)
  if (target !== to || !isSame) problems.push(`${from} → ${to} is not in the mapping`)
  return problems
}

function hopProblems(lifecycle: Lifecycle, fact: Fact): string[] {
  const takes = edgeTriggersOf(lifecycle, fact)
  return hopsOf(fact).flatMap(({ from, to }) => {
    const edge = lifecycle.machine.byTarget.get(from)?.get(to)
    if (edge === undefined) return `${from} → ${to} is not an edge`
    if (!edge.on.some((trigger) => takes.includes(trigger))) {
      return `${fact.trigger} does not take ${from} → ${to}`
    }
    return edge.operator && !fact.operator ? `${from} → ${to} was taken without an operator` : []
  })
}

/** Rule G8: a forced fact needs an operator and a note, and never leads to held or succeeded. */
function forceProblems(lifecycle: Lifecycle, fact: Fact): string[] {
  const role = lifecycle.roles.get(fact.to)
  const moved = hopsOf(fact).length > 0
  return [
    ...(fact.operator && fact.note ? [] : ['was forced without an operator or without a note']),
    ...(moved && (role === undefined || role === 'held' || role === 'succeeded')
      ? [`was forced into ${fact.to}`]
      : []),
  ]
}

/** A rebasing repair needs an operator and a note, and must not make the job held by a worker. */
function rebaseProblems(lifecycle: Lifecycle | undefined, fact: Rebase): string[] {
  const { operator, note, rebased } = fact
  if (lifecycle === undefined) return []
  const role = lifecycle.roles.get(rebased.state)
  const isHanded = role === 'held' && fact.from !== fact.to && !isCommitted(rebased)
  const isPlaced = role !== undefined && !isHanded
  return [
    ...(operator && note ? [] : ['was repaired without an operator or without a note']),
    ...(isPlaced ? [] : [`was repaired into ${rebased.state}`]),
  ]
}

/** Returns the triggers of the edges that a fact may take. */
function edgeTriggersOf({ parked }: Lifecycle, { trigger, reason }: Fact): readonly JobTrigger[] {
  switch (trigger) {
    case 'create':
      return ['submit', 'schedule']
    case 'commit':
    case 'done':
      return ['succeed']
    case 'park':
      // A running job is released before it is parked in two cases: the lifecycle has no parked
      // state, or the row of the job is damaged (`isolate.ts`).
      return parked === undefined || reason === DAMAGED ? ['release'] : ['park']
    case 'arrive':
      // A dependent that fails before its first attempt goes all the way in one step.
      return ['submit', 'signal', 'due', 'claim', 'fail']
    case 'start':
    case 'step':
    case 'receive':
    case 'stall':
    case 'prioritise':
    case 'replace':
    case 'migrate':
    case 'force':
    case 'repair':
      return []
    default:
      return [trigger]
  }
}

function executionViolations(facts: readonly Fact[], base?: Rebase): Violation[] {
  const violations: Violation[] = []
  const statuses = new Map<number, string>()
  const open = base?.rebased.execution
  if (open) statuses.set((base as Rebase).rebased.attempt, open.status)
  for (const { seq, execution } of facts) {
    for (const next of execution?.statuses ?? []) {
      const { attempt } = execution as NonNullable<Fact['execution']>
      const before = statuses.get(attempt)
      const legal =
        before === undefined
          ? next === executionMachine.initial
          : move(executionMachine, before as typeof next, { to: next }).kind === 'edge'
      if (!legal) {
        const what = `execution ${attempt} went from ${before ?? 'nothing'} to ${next}`
        violations.push({ promise: 'P2', seq, what })
      }
      statuses.set(attempt, next)
    }
  }
  return violations
}

/** P3: at most one commit. */
export const checkP3 = predicate('P3', (_rules, facts, base) =>
  facts
    .filter(({ execution }) => execution?.statuses.includes('COMMITTED'))
    .slice(base !== undefined && isCommitted(base.rebased) ? 0 : 1)
    .map(({ seq }) => ({ promise: 'P3', seq, what: 'a second execution was committed' })),
)

/** P4: the holder's facts carry its claim, and were written before the lease expired. */
export const checkP4 = predicate('P4', (_rules, facts, base) => {
  const violations: Violation[] = []
  const report = (seq: number, what: string) => violations.push({ promise: 'P4', seq, what })
  let claim = base?.rebased.execution?.claim
  for (const { seq, at, trigger, actor, execution } of facts) {
    if (trigger === 'claim') claim = execution?.claim
    const isByHolder = actor === 'worker' && execution?.abort !== 'lease_expired'
    if (trigger === 'claim' || !isByHolder || execution?.claim === undefined) continue
    if (execution.claim !== claim) report(seq, `has claim ${execution.claim}, not ${claim}`)
    if ((execution.leaseUntil ?? 0) <= at) report(seq, 'was written after the lease had expired')
  }
  return violations
})

/** P5: attempts increase by one, and no budget is exceeded. */
export const checkP5 = predicate('P5', (rules, facts, base) => {
  const violations: Violation[] = []
  const report = (seq: number, what: string) => violations.push({ promise: 'P5', seq, what })
  const spent = spentAt(base)
  let attempt = base?.rebased.attempt ?? 0
  for (const fact of facts) {
    if (fact.execution?.statuses.includes('LEASED')) attempt++
    if (fact.execution !== undefined && fact.execution.attempt !== attempt) {
      report(fact.seq, `has attempt ${fact.execution.attempt}, not ${attempt}`)
    }
    if (fact.resets) Object.assign(spent, { failure: 0, crash: 0 })
    if (fact.resets && fact.trigger !== 'redrive')
      report(fact.seq, 'resets the budgets without a redrive')
    if (fact.spends === undefined) continue
    spent[fact.spends]++
    const policy = policyOf(rules(fact), facts, base)
    const max = policy === undefined ? Number.POSITIVE_INFINITY : boundOf(policy, fact.spends)
    if (spent[fact.spends] > max) report(fact.seq, `${fact.spends} budget of ${max} is exceeded`)
  }
  return violations
})

/** Returns the policy of the job if it was created with one, else the policy of its lifecycle. */
function policyOf(
  lifecycle: Lifecycle | undefined,
  facts: readonly Fact[],
  base?: Rebase,
): JobPolicy | undefined {
  return (base === undefined ? facts[0]?.created : base.rebased)?.policy ?? lifecycle?.policy
}

function boundOf({ retry, crashesMax, releasesMax }: JobPolicy, budget: Budget): number {
  return { failure: retry.max, crash: crashesMax, release: releasesMax }[budget]
}

function spentAt(base?: Rebase): Record<Budget, number> {
  const { failures = 0, crashes = 0, releases = 0 } = base?.rebased ?? {}
  return { failure: failures, crash: crashes, release: releases }
}

/** P6: an ended job changes only by operator edges, and a succeeded job not at all. */
export const checkP6 = predicate('P6', (rules, facts) => {
  const violations: Violation[] = []
  const report = (seq: number, what: string) => violations.push({ promise: 'P6', seq, what })
  for (const [i, fact] of facts.entries()) {
    const lifecycle = rules(fact)
    if (lifecycle === undefined) continue
    const endOf = (state: string | null) => outcomeOf(lifecycle.roles.get(state ?? ''))
    if (fact.migrated !== undefined) {
      // An ended job is migrated only if an operator edge follows, perhaps after further
      // migrations.
      const ended = endOf(fact.from)
      const follows = facts.slice(i + 1).find(({ migrated }) => migrated === undefined)
      if (ended === 'succeeded' || (ended !== undefined && follows?.operator === undefined)) {
        report(fact.seq, `migrated the job after it had ended in ${fact.from}`)
      }
      continue
    }
    const hops = hopsOf(fact)
    for (const { from, to } of hops) {
      const byOperator = lifecycle.machine.byTarget.get(from)?.get(to)?.operator === true
      const outcome = endOf(from)
      if (outcome === undefined || (outcome !== 'succeeded' && byOperator)) continue
      report(fact.seq, `left ${from} after the job had ended there`)
    }
    // The doctor may record that it repaired the row. That does not change the job.
    const noted = fact.trigger === 'repair'
    if (hops.length === 0 && endOf(fact.from) !== undefined && !noted) {
      report(fact.seq, `changed the job after it had ended in ${fact.from}`)
    }
  }
  return violations
})

/** P7: an attempt is taken from its holder only after its lease has expired. */
export const checkP7 = predicate('P7', (_rules, facts) =>
  facts
    .filter(({ at, execution }) => {
      return execution?.abort === 'lease_expired' && (execution.leaseUntil ?? at) > at
    })
    .map(({ seq }) => ({ promise: 'P7', seq, what: 'the lease was recovered before it expired' })),
)

/** P9: the row equals the fold of the ledger. */
export function checkP9(row: Job, facts: readonly Fact[]): Violation[] {
  const broken = (what: string): Violation[] => [{ promise: 'P9', seq: row.seq, what }]
  try {
    const folded = fold(facts)
    if (folded === null) return broken('the ledger is empty')
    const [own, other] = [withoutVolatile(row), withoutVolatile(folded)]
    const keys = Object.keys({ ...own, ...other }) as (keyof Job)[]
    const differing = keys.filter((key) => encode(own[key]) !== encode(other[key]))
    return differing.length > 0 ? broken(`row and fold differ in ${differing.join(', ')}`) : []
  } catch (error) {
    return broken(String(error))
  }
}

/** P11: due times are kept, and retries wait as long as their policy says. */
export const checkP11 = predicate('P11', (rules, facts, base) => {
  const violations: Violation[] = []
  const report = (seq: number, what: string) => violations.push({ promise: 'P11', seq, what })
  const spent = spentAt(base)
  let runAt = base?.rebased.runAt ?? null
  for (const fact of facts) {
    if (fact.trigger === 'claim' && (runAt === null || runAt > fact.at)) {
      report(fact.seq, 'was claimed before it was due')
    }
    if (fact.resets) Object.assign(spent, { failure: 0, crash: 0 })
    if (fact.spends !== undefined) spent[fact.spends]++
    if (fact.runAt !== undefined) runAt = fact.runAt
    const lifecycle = rules(fact)
    const retry = policyOf(lifecycle, facts, base)?.retry
    const bounds = lifecycle && retry && delayBounds(lifecycle, retry, fact, spent)
    const delay = (runAt ?? 0) - fact.at
    if (bounds !== undefined && (delay < bounds.min || delay > bounds.max)) {
      report(fact.seq, `waits ${delay} ms instead of ${bounds.min} to ${bounds.max}`)
    }
  }
  return violations
})

/** Returns how long the job must wait after this fact; `undefined` if any time is allowed. */
function delayBounds(
  lifecycle: Lifecycle,
  retry: JobPolicy['retry'],
  fact: Fact,
  spent: Readonly<Record<Budget, number>>,
): { min: number; max: number } | undefined {
  if (fact.trigger === 'retry') {
    const asked = fact.delayAsked === true && !lifecycle.retryFixed
    return asked ? { min: 0, max: DELAY_MAX_MS } : retryDelayBounds(retry, spent.failure)
  }
  if (fact.trigger !== 'expire') return undefined
  const { delayMs, spends } = lifecycle.crash
  return delayMs === 'as-retry'
    ? retryDelayBounds(retry, spent[spends])
    : { min: delayMs, max: delayMs }
}

/** P18: a signal is received once, in order, and not after its wait has timed out. */
export const checkP18 = predicate('P18', (rules, facts, base) => {
  const waitState = (fact: Fact) => rules(fact)?.targets.get('wait')
  return findWaitFaults(facts, waitState, base?.seq).map((fault) => ({ promise: 'P18', ...fault }))
})

/** P19: no worker takes a job while it waits for others. */
export const checkP19 = predicate('P19', (_rules, facts, base) =>
  findLinkFaults(facts, base?.rebased.links).map((fault) => ({ promise: 'P19', ...fault })),
)

const CHECKS: readonly Predicate[] = [
  checkP2,
  checkP3,
  checkP4,
  checkP5,
  checkP6,
  checkP7,
  checkP11,
  checkP18,
  checkP19,
]

/** Checks all promises about the facts of one job. */
export const checkFacts: Predicate = (lifecycle, facts, others) =>
  CHECKS.flatMap((check) => check(lifecycle, facts, others))

function withoutVolatile(job: Job): Job {
  if (job.execution === null) return job
  return { ...job, execution: { ...job.execution, leaseUntil: 0 } }
}

/** P2 for runs: every change of state is an edge, and a rewind leads to a visited state. */
export function checkRun({ machine }: RunMachine, events: readonly RunEvent[]): Violation[] {
  const violations: Violation[] = []
  const report = (seq: number, what: string) => violations.push({ promise: 'P2', seq, what })
  const visited = new Set<string>()
  let state = ''
  const enter = (to: string) => {
    state = to
    if (machine.states.get(to)?.stable) visited.add(to)
  }
  for (const { type, data, seq } of events) {
    if (type === 'RUN_CREATED') {
      if (data.state !== machine.initial) report(seq, `begins in ${data.state}`)
      enter(data.state)
    } else if (type === 'RUN_STATE_CHANGED' || type === 'RESUME_REWIND') {
      const { from_state: from, to_state: to } = data
      const legal =
        type === 'RESUME_REWIND'
          ? visited.has(to) || (data.reason === 'stale' && to === machine.initial)
          : machine.byTarget.get(from)?.has(to) === true
      if (from !== state || !legal) report(seq, `${type}: ${from} → ${to} in ${state}`)
      enter(to)
    }
  }
  return violations
}
