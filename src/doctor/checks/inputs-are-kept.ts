import { isInputLost } from '../doubts.ts'
import type { JobCheck } from './check.ts'

/** The input is stored once, with the fact that created the job, so it cannot be rebuilt. */
export const inputsAreKept: JobCheck = {
  name: 'inputs-are-kept',
  promise: 'P1',
  says: 'Every job has the input that it was accepted with.',
  look: (examined) =>
    isInputLost(examined)
      ? [
          {
            what: 'its input is missing or is not JSON',
            advice: 'Enqueue the job again with its input, and discard this one.',
          },
        ]
      : [],
}
