/** Wraps a store so that the time of its calls is measured; only if there are metrics. */
import type { Clock } from '../../core/ports.ts'
import type { Store } from '../../stores/contract/store.ts'
import { wrapStore } from '../../stores/wrap-store.ts'
import type { Metrics } from './metrics.ts'

/** Calls a function with the metrics. Its exceptions are caught. */
export type Measuring = (record: (metrics: Metrics) => void) => void

/** The verbs of workers and clients. What operators and doctors do is rare, and may take long. */
const OPERATIONS = [
  'enqueue',
  'claim',
  'settle',
  'heartbeat',
  'commit',
  'claimEffects',
  'settleEffects',
  'promote',
  'recover',
  'cancel',
  'applyCommand',
  'get',
] as const satisfies readonly (keyof Store)[]

/** Returns the store; the time of each call is recorded, also if the call fails. */
export function measureStore(store: Store, clock: Clock, measuring: Measuring): Store {
  const measured = OPERATIONS.map((operation) => {
    const call = store[operation].bind(store) as (...args: unknown[]) => Promise<unknown>
    const timed = async (...args: unknown[]) => {
      const startedAt = clock.now()
      try {
        return await call(...args)
      } finally {
        const seconds = Math.max(0, clock.now() - startedAt) / 1000
        measuring((metrics) =>
          metrics.observe('pawl_store_operation_duration_seconds', { operation }, seconds),
        )
      }
    }
    return [operation, timed] as const
  })
  return wrapStore(store, Object.fromEntries(measured) as Partial<Store>)
}
