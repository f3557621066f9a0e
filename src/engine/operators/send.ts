/** Sends signals in the name of an operator: decisions, and signals to many jobs. */
import type { Answer, Requester, Store } from '../../stores/contract/store.ts'
import { JobNotAsking } from '../errors.ts'
import type { Step } from './plan.ts'
import type { Selection } from './selection.ts'

type SignalStep = Extract<Step, { kind: 'signal' }>

/** A decision that the job has already is refused: another one was made since the job was read. */
export async function sendStep(
  { waits }: Pick<Store, 'waits'>,
  ids: readonly string[],
  { signal, isDecision }: SignalStep,
  requester: Requester,
): Promise<Answer[]> {
  const answers = await waits.signal(ids, signal, requester)
  if (!isDecision) return answers
  return answers.map((answer, i) =>
    answer.kind === 'same'
      ? { kind: 'rejected', error: new JobNotAsking(ids[i] as string) }
      : answer,
  )
}

const SIGNALLED_MAX = 10_000

/** Signals go to a bounded number of jobs. */
export function bounded(selection: Selection): Selection {
  if (typeof selection === 'string' || 'ids' in selection) return selection
  const isBounded = selection.limit !== undefined || selection.among !== undefined
  return isBounded ? selection : { ...selection, limit: SIGNALLED_MAX }
}
