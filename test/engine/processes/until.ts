// Waiting for what processes do: by looking again and again, within a bound.
import { vi } from 'vitest'

const BOUND_MS = 20_000
const LOOK_MS = 10

/** Waits until a condition holds; what it throws is the reason to wait no longer. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  timeoutMs = BOUND_MS,
): Promise<void> {
  let failure: { readonly error: unknown } | undefined
  await vi.waitFor(
    async () => {
      try {
        if (await holds()) return
      } catch (error) {
        failure = { error }
        return
      }
      throw new Error(`it did not happen in time that ${what}`)
    },
    { timeout: timeoutMs, interval: LOOK_MS },
  )
  if (failure !== undefined) throw failure.error
}
