/** What the ledger has recorded of a job, as far as a replay needs it. */
import { momentAt } from '../../audit/time-travel.ts'
import { messageOf } from '../../core/errors.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import { decodeValue } from '../../core/values.ts'

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
