/** What became of one job, by the answer of the store. */
import { type PawlError, Unsupported } from '../../core/errors.ts'
import type { Answer } from '../../stores/contract/store.ts'
import type { Outcome } from './report.ts'

export function outcomeOf(answer: Answer): Outcome {
  if (answer.kind !== 'rejected') return { kind: answer.kind }
  return { kind: 'refused', error: explain(answer.error) }
}

/** If the lifecycle has no redrive, the hint points to a retry, which enqueues a copy. */
export function explain(error: PawlError): PawlError {
  const { command, lifecycle } = error.details
  if (!(error instanceof Unsupported) || command !== 'redrive') return error
  return new Unsupported(String(lifecycle), command, 'Retry the job: that enqueues a copy of it.')
}
