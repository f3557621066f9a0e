/**
 * What speaks against the facts of a job. Facts that nothing speaks against are the truth, and the
 * row is rebuilt from them. Where facts were lost or contradict each other, no row can be had from
 * them honestly. Where only a time or a fence is not as it should be, what the job is stays beyond
 * doubt: it is enough to note it.
 */
import { FACT_CODES, sinceRebase } from '../core/job/facts.ts'
import { DAMAGE, DAMAGED, STEP_DAMAGED } from '../core/job/isolate.ts'
import type { Patient } from './patient.ts'

/** What is doubted: what the job is, or only how it got there. */
export interface Doubt {
  readonly kind: 'state' | 'history'
  readonly what: string
}

const HISTORY: readonly string[] = ['P4', 'P7', 'P11']

/** Everything that speaks against the facts of a job. */
export function doubtsOf(patient: Patient): Doubt[] {
  const { unreadable, foldFault, violations, isTruncated, dossier } = patient
  const state = (what: string): Doubt => ({ kind: 'state', what })
  return [
    ...unreadable.map(({ raw, why }) => state(`fact ${raw.seq} cannot be read: ${why}`)),
    ...(foldFault === undefined ? [] : [state(foldFault)]),
    ...(isTruncated && foldFault === undefined
      ? [state(`the row tells of fact ${dossier.row?.seq}, which is not there`)]
      : []),
    ...violations.map(({ promise, seq, what }): Doubt => {
      const kind = HISTORY.includes(promise) ? 'history' : 'state'
      return { kind, what: `fact ${seq}: ${what}` }
    }),
    ...(isStepLost(patient) ? [state(STEP_DAMAGED)] : []),
    ...(isInputLost(patient) ? [state('its input is not there')] : []),
    ...lostEffects(patient).map((what): Doubt => ({ kind: 'history', what })),
  ]
}

/** Whether an attempt was ended because it could not read what an earlier one had finished. */
function isStepLost({ facts, folded }: Patient): boolean {
  if (folded?.blockedReason !== DAMAGED) return false
  const fact = facts.findLast(({ blockedReason }) => blockedReason === DAMAGED)
  return fact?.metadata?.[DAMAGE] === STEP_DAMAGED
}

/** Whether a job that may yet run has no input, or one that is no JSON. */
export function isInputLost({ facts, dossier }: Patient): boolean {
  if (sinceRebase(facts)[0]?.created === undefined) return false
  const inputs = dossier.facts.filter(
    ({ kind }) => kind === FACT_CODES.create || kind === FACT_CODES.replace,
  )
  const { payload = null } = inputs[inputs.length - 1] ?? {}
  return payload === null || !isJson(payload)
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Effects that the commit declared and that the outbox has not, or not under their keys. */
export function lostEffects({ facts, effects }: Patient): string[] {
  const declared = sinceRebase(facts).reduce((sum, fact) => sum + (fact.effects ?? 0), 0)
  if (declared === 0) return []
  const count = new Map<string, number>()
  for (const { name } of effects) count.set(name, (count.get(name) ?? 0) + 1)
  const strays = effects.filter(({ name, n }) => n < 1 || n > (count.get(name) ?? 0))
  return [
    ...(effects.length === declared
      ? []
      : [`the commit declared ${declared} effects, and ${effects.length} are there`]),
    ...strays.map(({ name, n }) => `effect ${name}/${n} is not numbered as it was declared`),
  ]
}
