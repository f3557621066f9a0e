/**
 * The judge of whatever was done to a store: by the simulator, by the chaos of real processes, by
 * failing system calls. It reads every job with its facts, and compares what is
 * there with what the outside was told.
 *
 *   judgeStore        P2 to P7, P9, P11 by the predicates of the core, P15 by where each job is
 *   judgeAcknowledged P1   what was acknowledged is there, and nothing that no client asked for
 *   judgeKeys         P12  one key, one job
 *   judgeRows         P3   the user's own rows: one for each commit, by the attempt that won
 *   judgeEffects      P10  every declared effect was delivered, and no other
 *   judgeSteps             a step whose result was remembered did not run again
 *   judgeAnswers      P1   every transition that was reported to its author is in the ledger,
 *                     P4   and was taken from who held the job
 *   judgeSucceeded    P6   a success that was reported is a success
 *   judgeLeases       P7   where nothing goes wrong, a holder keeps its lease
 *   judgeDeadlines         past its deadline a job neither started, recorded a step nor committed
 *   judgeSpread       P11  retries that are to be spread, are
 */
import type { Job, Lifecycle } from 'pawl'
import {
  checkFacts,
  checkP9,
  type Fact,
  findLifecycle,
  isCommitted,
  LIFECYCLES,
  laneOf,
  retryDelayBounds,
} from 'pawl/rules'
import type { Store } from 'pawl/sqlite'

/** A broken promise, and the facts that show it. */
export interface Judged {
  readonly promise: string
  readonly job: string
  readonly what: string
  readonly facts: readonly Fact[]
}

/** A job with everything that its ledger says. */
export interface Told {
  readonly job: Job
  readonly facts: readonly Fact[]
}

/** What a client knows about one job that it asked for. */
export interface Acknowledged {
  readonly id: string
  readonly key?: string
}

/** A row that a commit has written into a table of the user's own. */
export interface UserRow {
  readonly job: string
  readonly attempt: number
}

/** One run of the function of a step. */
export interface StepRun {
  readonly job: string
  readonly name: string
  readonly attempt: number
}

const PAGE = 1000
const READERS = 8

/** Everything that is wrong with any job of a store, once nothing goes on in it any more. */
export async function judgeStore(store: Store): Promise<Judged[]> {
  return judgeJobs(await readStore(store), store.now())
}

/** Every job of a store with its facts. */
export async function readStore(store: Store): Promise<Told[]> {
  const jobs: Job[] = []
  let after: string | undefined
  do {
    const page = await store.list({}, { limit: PAGE, ...(after !== undefined && { after }) })
    jobs.push(...page.items)
    after = page.next
  } while (after !== undefined)
  const told: Told[] = []
  const queue = jobs.values()
  const read = async () => {
    for (const job of queue) told.push({ job, facts: await store.facts(job.id) })
  }
  await Promise.all(Array.from({ length: READERS }, read))
  return told
}

/** What the ledgers and rows say by themselves, and which jobs have not come out. */
export function judgeJobs(
  told: readonly Told[],
  now: number,
  lifecycles: readonly Lifecycle[] = LIFECYCLES,
): Judged[] {
  return told.flatMap(({ job, facts }) => {
    const lifecycle = findLifecycle(job.lifecycle, job.lifecycleVersion, lifecycles)
    const broken = [...checkFacts(lifecycle, facts, lifecycles), ...checkP9(job, facts)].map(
      (found) => judged(found.promise, job.id, `${found.what} (fact ${found.seq})`, facts),
    )
    const lane = laneOf(lifecycle, job, now)
    // A job that was never submitted owes nothing; one that stalled waits for a person.
    const isOut = ['ended', 'parked', 'idle'].includes(lane) || job.stalled
    const stuck = isOut ? [] : [judged('P15', job.id, `is ${lane} in ${job.state}`, facts)]
    return [...broken, ...judgeDeadlines(job, facts), ...stuck]
  })
}

/** Past its deadline nothing of a job starts, is recorded or is committed; before it, all may. */
function judgeDeadlines(job: Job, facts: readonly Fact[]): Judged[] {
  const deadlineAt = facts[0]?.created?.deadlineAt ?? null
  if (deadlineAt === null) return []
  return facts.flatMap(({ at, seq, step, execution, reason }) => {
    if (reason === 'deadline' && at < deadlineAt) {
      const what = `fact ${seq} ends it ${deadlineAt - at} ms before the deadline`
      return [judged('deadline', job.id, what, facts)]
    }
    const entered = execution?.statuses ?? []
    const isTimely = step !== undefined || entered.some((status) => TIMELY.has(status))
    if (!isTimely || at < deadlineAt) return []
    const what = `fact ${seq} is ${at - deadlineAt} ms past the deadline`
    return [judged('deadline', job.id, what, facts)]
  })
}

const TIMELY: ReadonlySet<string> = new Set(['IN_PROGRESS', 'COMMITTED'])

/**
 * P1: what was acknowledged is there. What no client asked for is not, but for an operator's copy;
 * where it is not known who asked for what, that cannot be said.
 */
export function judgeAcknowledged(
  told: readonly Told[],
  acknowledged: readonly Acknowledged[],
  asked?: ReadonlySet<string>,
): Judged[] {
  const there = new Set(told.map(({ job }) => job.id))
  const lost = acknowledged.filter(({ id }) => !there.has(id))
  const isAsked = ({ job }: Told) => asked?.has(job.id) !== false || job.retryOf !== null
  const unasked = told.filter((one) => !isAsked(one))
  return [
    ...lost.map(({ id }) => judged('P1', id, 'was acknowledged and is gone', [])),
    ...unasked.map(({ job, facts }) => judged('P1', job.id, 'nobody asked for it', facts)),
  ]
}

/** P12: callers with the same key were all given the same job. */
export function judgeKeys(acknowledged: readonly Acknowledged[]): Judged[] {
  const owners = new Map<string, string>()
  return acknowledged.flatMap(({ id, key }) => {
    if (key === undefined) return []
    const owner = owners.get(key) ?? id
    owners.set(key, owner)
    return owner === id ? [] : [judged('P12', id, `has the key of ${owner}`, [])]
  })
}

/** P3, outside the ledger: a commit's row is there once, and a row has its commit. */
export function judgeRows(
  told: readonly Told[],
  rows: readonly UserRow[],
  writes: (job: Job) => boolean,
): Judged[] {
  const byJob = groupBy(rows, ({ job }) => job)
  const known = new Set(told.map(({ job }) => job.id))
  const strays = [...byJob.keys()].filter((id) => !known.has(id))
  return [
    ...strays.map((id) => judged('P3', id, 'has a row and is no job', [])),
    ...told.flatMap(({ job, facts }) => {
      const commit = commitOf(facts)
      const isDue = commit !== undefined && writes(job)
      const wanted = isDue ? [commit.execution?.attempt] : []
      const found = (byJob.get(job.id) ?? []).map(({ attempt }) => attempt)
      if (found.join() === wanted.join()) return []
      const what = `rows of attempts [${found}] where [${wanted}] was committed`
      return [judged('P3', job.id, what, facts)]
    }),
  ]
}

/** P10: the keys of what was declared, and of what the receiver got, are the same. */
export function judgeEffects(
  told: readonly Told[],
  delivered: ReadonlySet<string>,
  name: string,
): Judged[] {
  const declared = new Set<string>()
  const missing: Judged[] = []
  for (const { job, facts } of told) {
    const count = commitOf(facts)?.effects ?? 0
    for (let n = 1; n <= count; n++) {
      const key = `${job.id}/${name}/${n}`
      declared.add(key)
      if (!delivered.has(key)) missing.push(judged('P10', job.id, `${key} was not sent`, facts))
    }
  }
  const undeclared = [...delivered].filter((key) => !declared.has(key))
  return [
    ...missing,
    ...undeclared.map((key) => judged('P10', key.split('/')[0] ?? key, `${key}: undeclared`, [])),
  ]
}

/** No later attempt ran a step whose result was in the ledger when that attempt began. */
export function judgeSteps(told: readonly Told[], runs: readonly StepRun[]): Judged[] {
  const byJob = groupBy(runs, ({ job }) => job)
  return told.flatMap(({ job, facts }) => {
    const own = byJob.get(job.id) ?? []
    let attempt = 0
    return facts.flatMap(({ execution, step }) => {
      if (execution?.statuses.includes('LEASED')) attempt = execution.attempt
      const again =
        step !== undefined && own.some((run) => run.name === step.name && run.attempt > attempt)
      return again ? [judged('steps', job.id, `step ${step.name} ran again`, facts)] : []
    })
  })
}

/** A transition that was reported to its author. */
export interface Answered {
  readonly fact: Fact
  /** Under which claim it was asked for, where it was by a holder. */
  readonly claim?: string
}

/** P1: what was answered is in the ledger; P4: it was taken from the holder, and from no other. */
export function judgeAnswers(told: readonly Told[], answers: readonly Answered[]): Judged[] {
  const byId = new Map(told.map(({ job, facts }) => [job.id, facts]))
  return answers.flatMap(({ fact: { jobId, seq, trigger, at }, claim }) => {
    const facts = byId.get(jobId)
    // Retention may have removed the job since.
    if (facts === undefined) return []
    const kept = facts[seq - 1]
    if (kept?.trigger !== trigger || kept.at !== at) {
      return [judged('P1', jobId, `${trigger} (fact ${seq}) was answered and is gone`, facts)]
    }
    const claims = facts.slice(0, seq - 1).filter((fact) => fact.trigger === 'claim')
    const holder = claims.at(-1)?.execution?.claim
    if (claim === undefined || holder === claim) return []
    const what = `${trigger} (fact ${seq}) was taken from ${claim}, while ${holder} held it`
    return [judged('P4', jobId, what, facts)]
  })
}

/** How many retries must agree before that is no longer chance. */
const SPREAD_MIN = 4

/** P11: retries that are to be spread do not all come at the first moment. */
export function judgeSpread(
  told: readonly Told[],
  lifecycles: readonly Lifecycle[] = LIFECYCLES,
): Judged[] {
  const early = told.flatMap(({ job, facts }) => {
    const { lifecycle, lifecycleVersion: version } = job
    const { retry } = job.policy ?? findLifecycle(lifecycle, version, lifecycles).policy
    let failures = 0
    return facts.flatMap(({ trigger, at, runAt, spends, resets }) => {
      if (resets) failures = 0
      if (spends === 'failure') failures++
      if (trigger !== 'retry' || retry.jitter === 0) return []
      return [(runAt ?? at) - at === retryDelayBounds(retry, failures).min]
    })
  })
  const isSpread = early.length < SPREAD_MIN || early.includes(false)
  return isSpread ? [] : [judged('P11', '', `all ${early.length} retries come at once`, [])]
}

/** P6: a job that was reported as succeeded has succeeded, and stays so. */
export function judgeSucceeded(told: readonly Told[], ids: ReadonlySet<string>): Judged[] {
  return told
    .filter(({ job }) => ids.has(job.id) && !isCommitted(job))
    .map(({ job, facts }) => judged('P6', job.id, 'had succeeded, and has not', facts))
}

/**
 * P7: where nothing goes wrong, a holder keeps its lease. `since` says how far each job was when
 * that began, by the number of a fact and not by time, because clocks may have been wrong before.
 */
export function judgeLeases(
  told: readonly Told[],
  since: ReadonlyMap<string, number> | undefined,
): Judged[] {
  if (since === undefined) return []
  return told.flatMap(({ job, facts }) => {
    const begun = since.get(job.id) ?? 0
    let claim = 0
    const lost = facts.some(({ trigger, seq, execution }) => {
      if (trigger === 'claim') claim = seq
      return execution?.abort === 'lease_expired' && claim > begun
    })
    return lost ? [judged('P7', job.id, 'a live holder lost its lease', facts)] : []
  })
}

/** How many jobs came out how. */
export function outcomesOf(told: readonly Told[]): Record<string, number> {
  const outcomes: Record<string, number> = {}
  for (const { job } of told) {
    const outcome = job.outcome ?? 'parked'
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
  }
  return outcomes
}

/** The fact by which a job was committed. */
export function commitOf(facts: readonly Fact[]): Fact | undefined {
  return facts.find(({ execution }) => execution?.statuses.includes('COMMITTED'))
}

function judged(promise: string, job: string, what: string, facts: readonly Fact[]): Judged {
  return { promise, job, what, facts }
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group === undefined) groups.set(keyOf(item), [item])
    else group.push(item)
  }
  return groups
}
