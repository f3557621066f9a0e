/**
 * Effects whose row has another key than their mark. A repair restores their keys before it checks
 * jobs, so each job is checked with the effects that it will have then.
 */
import type { StoredJob, StrayEffect } from '../stores/contract/examination.ts'

export const STRAYS_MAX = 1000

/** Returns the job with the effects that were declared for it, under whatever key they are. */
export function withOwnEffects(stored: StoredJob, strays: readonly StrayEffect[]): StoredJob {
  if (strays.length === 0) return stored
  const { row, effects } = stored
  const moved = new Set(strays.map(({ handle }) => handle))
  const own = strays
    .filter(({ declared }) => declared.jobId === row?.id)
    .map(({ declared: { name, n }, ...effect }) => ({ ...effect, name, n }))
  const stay = effects.filter(({ handle }) => !moved.has(handle))
  const isWhole = own.length === 0 && stay.length === effects.length
  return isWhole ? stored : { ...stored, effects: [...stay, ...own] }
}
