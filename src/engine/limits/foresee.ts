/** What a change of a limit by an operator would do. */
import type { Pawl } from '../pawl.ts'
import type { LimitReference } from './limits.ts'

/** What would change, and how many blocked jobs could start. */
export interface ForeseenLimit {
  readonly limit: string
  /** The operator's number before and after; null if there is none. */
  readonly before: number | null
  readonly after: number | null
  /** How many may run now; null: any number. */
  readonly max: number | null
  readonly used: number
  readonly blocked: number
  /** How many blocked jobs could start; null if a function of the input says how many may run. */
  readonly starts: number | null
}

/** Reads what setting (`wanted` is a number) or resetting (`undefined`) a limit would change. */
export async function foreseeLimit(
  { limits, store }: Pick<Pawl, 'limits' | 'store'>,
  name: LimitReference,
  wanted: number | undefined,
  key?: string,
): Promise<ForeseenLimit> {
  const state = await limits.get(name, key === undefined ? {} : { key })
  const { gate, used, max, blocked, setting } = state
  const own = await store.limits.get(gate)
  const inForce = wanted ?? (key === undefined ? (own?.max ?? null) : (setting?.override ?? null))
  const room = inForce === null ? null : Math.max(0, inForce - used)
  const starts = room === null ? null : Math.min(room, blocked)
  const change = { before: own?.override ?? null, after: wanted ?? null }
  return { limit: gate, ...change, max, used, blocked, starts }
}
