/**
 * What must hold, whatever happened: judged from what a store holds and from what was seen from
 * outside, never by asking the code that wrote it. The simulator and the chaos of real processes
 * share it.
 */
import { checkFacts, checkP9, type Fact, findLifecycle, type Job, retryDelayBounds } from 'pawl'
import type { Store } from 'pawl/sqlite'

/** A broken promise, with the facts that show it. */
export interface Judged {
  readonly promise: string
  readonly job: string
  readonly what: string
  readonly facts: readonly Fact[]
}

/** A job as it was found, with all that is known of it. */
export interface Found {
  readonly job: Job
  readonly facts: readonly Fact[]
}

const PAGE = 500

/** Every job of a store with its facts. */
export async function findAll(store: Store): Promise<Found[]> {
  const found: Found[] = []
  let after: string | undefined
  do {
    const page = await store.list({}, { limit: PAGE, ...(after !== undefined && { after }) })
    for (const job of page.items) found.push({ job, facts: await store.facts(job.id) })
    after = page.next
  } while (after !== undefined)
  return found
}

/** What the facts and the row of each job break. */
export function judgeFacts(found: readonly Found[]): Judged[] {
  return found.flatMap(({ job, facts }) => {
    const lifecycle = findLifecycle(job.lifecycle, job.lifecycleVersion)
    const broken = [...checkFacts(lifecycle, facts), ...checkP9(job, facts)]
    return broken.map(({ promise, seq, what }) => ({
      promise,
      job: job.id,
      what: `${what} (fact ${seq})`,
      facts,
    }))
  })
}

/** P1: what was acknowledged is there, unless retention may have removed it. */
export function judgeAcknowledged(
  acknowledged: readonly string[],
  found: readonly Found[],
  mayBePruned: ReadonlySet<string> = new Set(),
): Judged[] {
  const there = new Set(found.map(({ job }) => job.id))
  return acknowledged
    .filter((id) => !there.has(id) && !mayBePruned.has(id))
    .map((id) => broken('P1', id, 'was accepted, and is gone'))
}

/** A transition that its author was told of. */
export interface Answered {
  readonly fact: Fact
  /** Under which claim it was asked for, where it was by a holder. */
  readonly claim?: string
}

/** P1: every transition that was answered is in the ledger; P4: under the fence it was asked by. */
export function judgeAnswers(answers: readonly Answered[], found: readonly Found[]): Judged[] {
  const byId = new Map(found.map((one) => [one.job.id, one.facts]))
  return answers.flatMap(({ fact, claim }) => {
    const facts = byId.get(fact.jobId)
    if (facts === undefined) return []
    const kept = facts[fact.seq - 1]
    if (kept === undefined || kept.trigger !== fact.trigger || kept.at !== fact.at) {
      return [broken('P1', fact.jobId, `${fact.trigger} (fact ${fact.seq}) is gone`, facts)]
    }
    const holder = claimAt(facts, fact.seq)
    if (claim === undefined || holder === claim) return []
    const what = `${fact.trigger} (fact ${fact.seq}) was taken from ${claim}, not from ${holder}`
    return [broken('P4', fact.jobId, what, facts)]
  })
}

/** The claim under which a job was held when a fact was written. */
function claimAt(facts: readonly Fact[], seq: number): string | undefined {
  const claims = facts.filter((fact) => fact.trigger === 'claim' && fact.seq < seq)
  return claims.at(-1)?.execution?.claim
}

/** A row that a commit has written into a table of the user's. */
export interface UserRow {
  readonly job: string
  readonly attempt: number
}

/** P3: what a commit wrote is there once, by the attempt that committed; and for no other job. */
export function judgeRows(
  rows: readonly UserRow[],
  found: readonly Found[],
  writes: (job: Job) => boolean,
): Judged[] {
  const byJob = new Map<string, UserRow[]>()
  for (const row of rows) byJob.set(row.job, [...(byJob.get(row.job) ?? []), row])
  return found.flatMap(({ job, facts }) => {
    if (!writes(job)) return []
    const commit = facts.find(({ trigger }) => trigger === 'commit')
    const wanted = commit === undefined ? [] : [commit.execution?.attempt]
    const written = (byJob.get(job.id) ?? []).map(({ attempt }) => attempt)
    if (String(written) === String(wanted)) return []
    const what = `rows of attempts [${written}], where [${wanted}] committed`
    return [broken('P3', job.id, what, facts)]
  })
}

/** P10: what was declared is delivered under its key; nothing else is. */
export function judgeDeliveries(
  delivered: ReadonlySet<string>,
  parked: ReadonlySet<string>,
  found: readonly Found[],
  name: string,
): Judged[] {
  const declared = new Set<string>()
  const judged: Judged[] = []
  for (const { job, facts } of found) {
    const count = facts.find(({ trigger }) => trigger === 'commit')?.effects ?? 0
    for (let n = 1; n <= count; n++) {
      const key = `${job.id}/${name}/${n}`
      declared.add(key)
      if (delivered.has(key) || parked.has(key)) continue
      judged.push(broken('P10', job.id, `${key} was not delivered`, facts))
    }
  }
  for (const key of delivered) {
    const id = key.slice(0, key.indexOf('/'))
    const facts = found.find(({ job }) => job.id === id)?.facts
    // Retention may have removed the job since.
    if (declared.has(key) || facts === undefined) continue
    judged.push(broken('P10', id, `${key} was delivered, and never declared`, facts))
  }
  return judged
}

/** A run of a step's function. */
export interface SteppedOnce {
  readonly jobId: string
  readonly name: string
  readonly attempt: number
}

/** No step ran again whose result was kept. */
export function judgeSteps(stepped: readonly SteppedOnce[], found: readonly Found[]): Judged[] {
  return found.flatMap(({ job, facts }) => {
    let attempt = 0
    return facts.flatMap(({ trigger, step }) => {
      if (trigger === 'claim') attempt++
      if (step === undefined) return []
      const kept = attempt
      const again = stepped.some(
        (run) => run.jobId === job.id && run.name === step.name && run.attempt > kept,
      )
      return again ? [broken('steps', job.id, `step ${step.name} ran again`, facts)] : []
    })
  })
}

/** How many retries must agree before that is no longer chance. */
const SPREAD_MIN = 4

/** P11: retries that are to be spread do not all come at the first moment. */
export function judgeSpread(found: readonly Found[]): Judged[] {
  const early = found.flatMap(({ job, facts }) => {
    const { retry } = job.policy ?? findLifecycle(job.lifecycle, job.lifecycleVersion).policy
    let failures = 0
    return facts.flatMap(({ trigger, at, runAt, spends, resets }) => {
      if (resets) failures = 0
      if (spends === 'failure') failures++
      if (trigger !== 'retry' || retry.jitter === 0) return []
      return [(runAt ?? at) - at === retryDelayBounds(retry, failures).min]
    })
  })
  const isSpread = early.length < SPREAD_MIN || early.includes(false)
  return isSpread ? [] : [broken('P11', '', `all ${early.length} retries come at once`)]
}

/** P15: every job has ended, or waits for a person. */
export function judgeEnds(found: readonly Found[], isSettled: (job: Job) => boolean): Judged[] {
  return found
    .filter(({ job }) => !isSettled(job))
    .map(({ job, facts }) => broken('P15', job.id, `is still ${job.state}`, facts))
}

function broken(promise: string, job: string, what: string, facts: readonly Fact[] = []): Judged {
  return { promise, job, what, facts }
}
