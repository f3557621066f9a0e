/** What the ledger has recorded of a job, as far as a replay needs it. */
import { momentAt } from '../../audit/time-travel.ts'
import { messageOf } from '../../core/errors.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import { decodeValue } from '../../core/values.ts'
import { pagesOf } from '../../engine/pages.ts'
import { readResult } from '../../engine/stored-values.ts'
import type { AfterEnds } from '../../stores/contract/flows.ts'
import type { Store } from '../../stores/contract/store.ts'
import type { GivenOutcome, RunJobChildren } from '../../testing/given-jobs.ts'

/** A fact and its payload, as the ledger or a bundle has them. */
export interface RecordedFact {
  readonly fact: Fact
  readonly payload: string | null
}

interface RecordedStep {
  readonly name: string
  readonly n: number
  readonly result: unknown
}

/** A job as its facts fold, with what its handler received and stored. */
export interface RecordedJob {
  readonly job: Job
  readonly entries: readonly RecordedFact[]
  /** JSON text. */
  readonly input: string
  readonly steps: readonly RecordedStep[]
  /** What the store knows of the jobs that it comes after, and of those that it has invoked. */
  readonly others?: RecordedOthers
}

/** Other jobs as the handler saw them; a bundle does not have them. */
export interface RecordedOthers {
  readonly after: readonly AfterEnds[]
  readonly children: readonly RunJobChildren[]
}

/** Reads from a store how the jobs ended that a job comes after, or has invoked. */
export async function othersOf(store: Store, id: string): Promise<RecordedOthers> {
  const outcomes = new Map<string, GivenOutcome[]>()
  for await (const { items } of pagesOf((page) => store.flows.nodes(id, page), { size: PAGE })) {
    for (const { job, as } of items) {
      if (as === undefined || job.outcome === null) continue
      const known = outcomes.get(as) ?? []
      outcomes.set(as, known)
      known.push(await outcomeIn(store, job))
    }
  }
  const children = [...outcomes].map(([as, own]) => {
    const at = as.lastIndexOf('/')
    return { name: as.slice(0, at), n: Number(as.slice(at + 1)), outcomes: own }
  })
  return { after: await store.flows.after(id), children }
}

const PAGE = 500

async function outcomeIn(store: Store, job: Job): Promise<GivenOutcome> {
  const { id, outcome, reason, error } = job
  const why = reason === null ? {} : { reason }
  if (outcome === 'failed') return { kind: 'failed', ...why, ...(error !== null && { error }) }
  if (outcome !== 'succeeded') return { kind: 'cancelled', ...why }
  return { kind: 'succeeded', output: readResult(id, (await store.payloads(id))?.result) }
}

/** Throws what `refuse` returns if the facts do not make a job. */
export function recordedJobOf(
  entries: readonly RecordedFact[],
  refuse: (why: string) => Error,
): RecordedJob {
  try {
    const last = entries[entries.length - 1]?.fact.seq ?? 0
    const moment = momentAt(
      entries.map((entry) => ({ ...entry, pos: '' })),
      last,
    )
    if (moment === undefined) throw refuse('has no facts')
    if (moment.input === undefined) throw refuse('has no input')
    return { job: moment.job, entries, input: moment.input, steps: entries.flatMap(stepsIn) }
  } catch (error) {
    throw refuse(`cannot be read: ${messageOf(error)}`)
  }
}

function stepsIn({ fact, payload }: RecordedFact): RecordedStep[] {
  if (fact.trigger !== 'step' || fact.step === undefined || fact.step === null) return []
  const { name, n } = fact.step
  return [{ name, n, result: payload === null ? undefined : decodeValue(payload) }]
}
