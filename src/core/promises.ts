/**
 * The promises as predicates over plain records, shared by tests, simulator and doctor. Each one
 * takes the facts of one job (and its row, for P9) and says what breaks it. They never throw on
 * damaged records, none of them trusts `decide`, and only P9 uses `evolve`: it is about the fold.
 *
 *   P2   every change is an edge of the lifecycle, or forced or repaired by a named operator
 *   P3   at most one execution reaches COMMITTED
 *   P4   whatever a holder writes bears the claim of its attempt, and its lease still ran
 *   P5   attempts only rise, and each budget keeps its own bound
 *   P6   an ended job changes only by operator edges; a succeeded one never
 *   P7   no lease was taken back before it had run out
 *   P9   the row is the fold of the ledger, volatile fields aside
 *   P11  no claim before its due time, and no retry outside its policy's bounds
 *
 * Facts before a migration are judged by the version of the lifecycle that was in force.
 *
 * A repair that says what the job is from then on (`rebased`) is where judging begins anew: what
 * was wrong before it was found, told of, and answered for by the operator whom it names.
 */
import { encode } from './canonical-json.ts'
import { executionMachine } from './execution.ts'
import { fold } from './job/evolve.ts'
import { type Budget, type Fact, hopsOf, sinceRebase } from './job/facts.ts'
import { DAMAGED } from './job/isolate.ts'
import { isCommitted, type Job } from './job/job.ts'
import { type JobTrigger, type Lifecycle, outcomeOf } from './lifecycles/lifecycle.ts'
import { isSameToScheduler, migratedState } from './lifecycles/migration.ts'
import { move } from './machine/move.ts'
import { DELAY_MAX_MS, type JobPolicy, retryDelayBounds } from './retry.ts'
import type { RunEvent } from './run/events.ts'
import type { RunMachine } from './run/machine.ts'

/** A broken promise, with the fact that shows it. */
export interface Violation {
  readonly promise: 'P2' | 'P3' | 'P4' | 'P5' | 'P6' | 'P7' | 'P9' | 'P11'
  readonly seq: number
  readonly what: string
}

/**
 * `others` are further versions of the lifecycle that are known: facts before a migration are
 * judged by the version that was in force. What an unknown version did is not judged.
 */
type Predicate = (
  lifecycle: Lifecycle,
  facts: readonly Fact[],
  others?: readonly Lifecycle[],
) => Violation[]

/** A repair that the facts after it build on. */
type Rebase = Fact & { readonly rebased: Job }

/** The lifecycle that a fact was decided by; nothing where it is not known. */
type Rules = (fact: Fact) => Lifecycle | undefined

type Check = (rules: Rules, facts: readonly Fact[], base?: Rebase) => Violation[]

/** Records so damaged that they cannot be judged break the promise, too. */
function predicate(promise: Violation['promise'], check: Check): Predicate {
  return (lifecycle, facts, others = []) => {
    try {
      const rules = rulesOf(lifecycle, facts, others)
      const [first, ...rest] = sinceRebase(facts)
      if (first?.rebased === undefined) return check(rules, facts)
      return check(rules, rest, first as Rebase)
    } catch (error) {
      return [{ promise, seq: 0, what: `cannot be judged: ${String(error)}` }]
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

/** P2: states and executions move along their edges, one fact after the other, without a gap. */
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

/** A migration leads where the mapping of the later version says, and ends no job. */
function migrationProblems(
  before: Lifecycle | undefined,
  next: Lifecycle | undefined,
  { from, to, outcome, execution }: Fact,
  migrated: NonNullable<Fact['migrated']>,
): string[] {
  const problems = outcome !== undefined || execution !== undefined ? ['did more than migrate'] : []
  // That a fact starts nowhere is reported already.
  if (next === undefined || from === null) return problems
  if (migrated.to <= migrated.from) problems.push(`went back to version ${migrated.to}`)
  const target = migratedState(next, migrated.from, from)
  const isSame = before === undefined || isSameToScheduler(before, next, from, to)
  if (target !== to || !isSame) problems.push(`${from} → ${to} is no migration`)
  return problems
}

function hopProblems(lifecycle: Lifecycle, fact: Fact): string[] {
  const takes = edgeTriggersOf(lifecycle, fact)
  return hopsOf(fact).flatMap(({ from, to }) => {
    const edge = lifecycle.machine.byTarget.get(from)?.get(to)
    if (edge === undefined) return `${from} → ${to} is no edge`
    if (!edge.on.some((trigger) => takes.includes(trigger))) {
      return `${fact.trigger} does not take ${from} → ${to}`
    }
    return edge.operator && !fact.operator ? `${from} → ${to} was taken without an operator` : []
  })
}

/** Rule G8: by a named operator, with a note, and never into a held or succeeded state. */
function forceProblems(lifecycle: Lifecycle, fact: Fact): string[] {
  const role = lifecycle.roles.get(fact.to)
  const moved = hopsOf(fact).length > 0
  return [
    ...(fact.operator && fact.note ? [] : ['was forced by nobody, or without a note']),
    ...(moved && (role === undefined || role === 'held' || role === 'succeeded')
      ? [`was forced into ${fact.to}`]
      : []),
  ]
}

/** A repair of what was lost is named like every other, and hands nothing to a holder. */
function rebaseProblems(lifecycle: Lifecycle | undefined, fact: Rebase): string[] {
  const { operator, note, rebased } = fact
  if (lifecycle === undefined) return []
  const role = lifecycle.roles.get(rebased.state)
  const isHanded = role === 'held' && fact.from !== fact.to && !isCommitted(rebased)
  const isPlaced = role !== undefined && !isHanded
  return [
    ...(operator && note ? [] : ['was repaired by nobody, or without a note']),
    ...(isPlaced ? [] : [`was repaired into ${rebased.state}`]),
  ]
}

/** The triggers of the edges that a fact may take. */
function edgeTriggersOf({ parked }: Lifecycle, { trigger, reason }: Fact): readonly JobTrigger[] {
  switch (trigger) {
    case 'create':
      return ['submit', 'schedule']
    case 'commit':
    case 'done':
      return ['succeed']
    case 'park':
      // A running job is given back before it is blocked: by a lifecycle without a parked state,
      // and by the engine if the row of the job is damaged (`isolate.ts`).
      return parked === undefined || reason === DAMAGED ? ['release'] : ['park']
    case 'start':
    case 'step':
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

/** P3: one commit, ever. */
export const checkP3 = predicate('P3', (_rules, facts, base) =>
  facts
    .filter(({ execution }) => execution?.statuses.includes('COMMITTED'))
    .slice(base !== undefined && isCommitted(base.rebased) ? 0 : 1)
    .map(({ seq }) => ({ promise: 'P3', seq, what: 'a second execution was committed' })),
)

/** P4: what closes an attempt, or commits it, comes from who holds it, while the lease runs. */
export const checkP4 = predicate('P4', (_rules, facts, base) => {
  const violations: Violation[] = []
  const report = (seq: number, what: string) => violations.push({ promise: 'P4', seq, what })
  let claim = base?.rebased.execution?.claim
  for (const { seq, at, trigger, actor, execution } of facts) {
    if (trigger === 'claim') claim = execution?.claim
    const isByHolder = actor === 'worker' && execution?.abort !== 'lease_expired'
    if (trigger === 'claim' || !isByHolder || execution?.claim === undefined) continue
    if (execution.claim !== claim) report(seq, `came by ${execution.claim}, not by ${claim}`)
    if ((execution.leaseUntil ?? 0) <= at) report(seq, 'came after the lease had ended')
  }
  return violations
})

/** P5: attempts rise one by one, and no budget is overdrawn. */
export const checkP5 = predicate('P5', (rules, facts, base) => {
  const violations: Violation[] = []
  const report = (seq: number, what: string) => violations.push({ promise: 'P5', seq, what })
  const spent = spentAt(base)
  let attempt = base?.rebased.attempt ?? 0
  for (const fact of facts) {
    if (fact.execution?.statuses.includes('LEASED')) attempt++
    if (fact.execution !== undefined && fact.execution.attempt !== attempt) {
      report(fact.seq, `attempt ${fact.execution.attempt} where ${attempt} was due`)
    }
    if (fact.resets) Object.assign(spent, { failure: 0, crash: 0 })
    if (fact.resets && fact.trigger !== 'redrive') report(fact.seq, 'budgets were given back')
    if (fact.spends === undefined) continue
    spent[fact.spends]++
    const policy = policyOf(rules(fact), facts, base)
    const max = policy === undefined ? Number.POSITIVE_INFINITY : boundOf(policy, fact.spends)
    if (spent[fact.spends] > max) report(fact.seq, `${fact.spends} budget of ${max} is overdrawn`)
  }
  return violations
})

/** The policy that a job was created with, or its lifecycle's. */
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

/** P6: an ended job changes only by operator edges, a succeeded one not at all. */
export const checkP6 = predicate('P6', (rules, facts) => {
  const violations: Violation[] = []
  const report = (seq: number, what: string) => violations.push({ promise: 'P6', seq, what })
  for (const [i, fact] of facts.entries()) {
    const lifecycle = rules(fact)
    if (lifecycle === undefined) continue
    const endOf = (state: string | null) => outcomeOf(lifecycle.roles.get(state ?? ''))
    if (fact.migrated !== undefined) {
      // Only on the way out: an operator's edge follows, perhaps after further versions.
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
      report(fact.seq, `left ${from}, where the job had ended`)
    }
    // The doctor may note that it mended the row; that changes nothing of the job.
    const noted = fact.trigger === 'repair'
    if (hops.length === 0 && endOf(fact.from) !== undefined && !noted) {
      report(fact.seq, `changed the job after it had ended in ${fact.from}`)
    }
  }
  return violations
})

/** P7: an attempt is taken from its holder only when its lease has run out. */
export const checkP7 = predicate('P7', (_rules, facts) =>
  facts
    .filter(({ at, execution }) => {
      return execution?.abort === 'lease_expired' && (execution.leaseUntil ?? at) > at
    })
    .map(({ seq }) => ({ promise: 'P7', seq, what: 'the lease was taken back while it ran' })),
)

/** P9: the row says what the ledger says. */
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

/** How long the job must wait after this fact; nothing where it may be anything. */
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

/** Every promise about the facts of one job. */
export const checkFacts: Predicate = (lifecycle, facts, others) =>
  [checkP2, checkP3, checkP4, checkP5, checkP6, checkP7, checkP11].flatMap((check) =>
    check(lifecycle, facts, others),
  )

function withoutVolatile(job: Job): Job {
  if (job.execution === null) return job
  return { ...job, execution: { ...job.execution, leaseUntil: 0 } }
}

/** P2 for runs: every change of state is an edge, and a rewind leads back to a visited state. */
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
