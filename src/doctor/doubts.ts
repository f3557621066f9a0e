/**
 * Whether the facts of a job can be trusted. There are two kinds of doubt:
 *
 *   state     facts are lost or contradict each other, so the state of the job is unknown
 *   history   a time or a fence is wrong, but the state of the job is certain
 *
 * Without a doubt the facts count, and a row that differs is rebuilt from them.
 */
import { FACT_CODES, sinceRebase } from '../core/job/facts.ts'
import { DAMAGE, DAMAGED, STEP_DAMAGED } from '../core/job/isolate.ts'
import type { ExaminedJob } from './examined-job.ts'

export interface Doubt {
  readonly kind: 'state' | 'history'
  readonly what: string
}

const HISTORY: readonly string[] = ['P4', 'P7', 'P11', 'P18', 'P19']

/** Returns all doubts about the facts of a job. */
export function doubtsOf(examined: ExaminedJob): Doubt[] {
  const { unreadable, foldFault, violations, isTruncated, stored } = examined
  const state = (what: string): Doubt => ({ kind: 'state', what })
  return [
    ...unreadable.map(({ raw, why }) => state(`fact ${raw.seq} cannot be read: ${why}`)),
    ...(foldFault === undefined ? [] : [state(foldFault)]),
    ...(isTruncated && foldFault === undefined
      ? [state(`the row has fact ${stored.row?.seq}, which is missing in the ledger`)]
      : []),
    ...violations.map(({ promise, seq, what }): Doubt => {
      const kind = HISTORY.includes(promise) ? 'history' : 'state'
      return { kind, what: `fact ${seq}: ${what}` }
    }),
    ...(isStepLost(examined) ? [state(STEP_DAMAGED)] : []),
    ...(isInputLost(examined) ? [state('its input is missing')] : []),
    ...lostEffects(examined).map((what): Doubt => ({ kind: 'history', what })),
  ]
}

/** Returns true if an attempt ended because the result of an earlier step could not be read. */
function isStepLost({ facts, folded }: ExaminedJob): boolean {
  if (folded?.blockedReason !== DAMAGED) return false
  const fact = facts.findLast(({ blockedReason }) => blockedReason === DAMAGED)
  return fact?.metadata?.[DAMAGE] === STEP_DAMAGED
}

/** Returns true if the job has no input, or its input is not JSON. */
export function isInputLost({ facts, stored }: ExaminedJob): boolean {
  if (sinceRebase(facts)[0]?.created === undefined) return false
  const inputs = stored.facts.filter(
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

/** Returns the effects that the commit declared but that are missing or misnumbered. */
export function lostEffects({ facts, effects }: ExaminedJob): string[] {
  const declared = sinceRebase(facts).reduce((sum, fact) => sum + (fact.effects ?? 0), 0)
  if (declared === 0) return []
  const count = new Map<string, number>()
  for (const { name } of effects) count.set(name, (count.get(name) ?? 0) + 1)
  const strays = effects.filter(({ name, n }) => n < 1 || n > (count.get(name) ?? 0))
  return [
    ...(effects.length === declared
      ? []
      : [`the commit declared ${declared} effects, but the outbox has ${effects.length}`]),
    ...strays.map(
      ({ name, n }) => `effect ${name}/${n} has another number than it was declared with`,
    ),
  ]
}
