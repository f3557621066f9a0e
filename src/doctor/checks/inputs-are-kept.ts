import { isInputLost } from '../doubts.ts'
import type { JobCheck } from './check.ts'

/** The input is stored once, beside the fact that created the job. */
export const inputsAreKept: JobCheck = {
  name: 'inputs-are-kept',
  promise: 'P1',
  says: 'Every job has the input that it was accepted with.',
  look: (patient) =>
    isInputLost(patient)
      ? [
          {
            what: 'its input is not there, or is no JSON',
            advice: 'Enqueue it anew, and discard it.',
          },
        ]
      : [],
}
