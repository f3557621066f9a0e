/**
 * Effects whose row has another key than their mark. The doctor gives them back their key before it
 * looks at jobs, so it judges every job by the effects that it will have then.
 */
import type { Dossier, StrayEffect } from '../stores/examination.ts'

/** So many are looked for. */
export const STRAYS_MAX = 1000

/** A job with the effects that were declared for it, wherever they are. */
export function withOwnEffects(dossier: Dossier, strays: readonly StrayEffect[]): Dossier {
  if (strays.length === 0) return dossier
  const { row, effects } = dossier
  const moved = new Set(strays.map(({ handle }) => handle))
  const own = strays
    .filter(({ declared }) => declared.jobId === row?.id)
    .map(({ declared: { name, n }, ...effect }) => ({ ...effect, name, n }))
  const stay = effects.filter(({ handle }) => !moved.has(handle))
  const isWhole = own.length === 0 && stay.length === effects.length
  return isWhole ? dossier : { ...dossier, effects: [...stay, ...own] }
}
