/** The jobs of the showcase: transfers of money, which must happen once. */
import { defineJob, Retryable, typed } from 'pawl'

/** A transfer that takes a moment to prepare, fails now and then, and is booked in its commit. */
export const transfer = defineJob({
  name: 'transfer',
  queue: 'payments',
  input: typed<{ number: number; cents: number }>(),
  retry: { max: 3, delay: '200ms', jitter: 1 },
  crashesMax: 20,
  timeout: '10s',
  async run({ input, attempt, signal, commit }) {
    await busy(20 + (input.number % 5) * 10, signal)
    if (input.number % 9 === 0 && attempt === 1) throw new Retryable('the bank did not answer')
    return commit(async (tx) => {
      const { number, cents } = input
      await tx.query('INSERT INTO transfers (number, cents) VALUES (?, ?)', [number, cents])
      return { booked: cents }
    })
  },
})

/** Something that takes time and stops when it is told to. */
function busy(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason)
    })
  })
}
