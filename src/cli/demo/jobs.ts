/** The job type of the demo: it takes 20 to 60 ms, and every ninth job fails once. */
import { Retryable } from '../../core/failure.ts'
import { defineJob } from '../../engine/define-job.ts'
import { typed } from '../../engine/schema.ts'
import { systemEnvironment } from '../../environment/system.ts'

const { timers } = systemEnvironment()

export const transfer = defineJob({
  name: 'transfer',
  queue: 'payments',
  input: typed<{ number: number; cents: number }>(),
  retry: { max: 3, delay: '200ms', jitter: 1 },
  crashesMax: 20,
  timeout: '10s',
  async run({ input, attempt, commit }) {
    await new Promise<void>((done) => timers.after(20 + (input.number % 5) * 10, done))
    if (input.number % 9 === 0 && attempt === 1) throw new Retryable('the bank did not answer')
    return commit(() => ({ booked: input.cents }))
  },
})
