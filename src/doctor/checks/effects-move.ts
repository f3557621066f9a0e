import { isCommitted } from '../../core/job/job.ts'
import type { RawEffect } from '../../stores/contract/examination.ts'
import { ALTERED } from '../../stores/effects.ts'
import { farEffects, isUnclear } from '../mend.ts'
import { shellWord } from '../shell-word.ts'
import type { JobCheck, Sighting } from './check.ts'
import { isNotice } from './notices-are-received.ts'

export const effectsMove: JobCheck = {
  name: 'effects-move',
  promise: 'P10',
  says: 'No effect is parked, overdue, or without a commit that declared it.',
  look: ({ id, stored, effects, folded, facts }, { now, thresholds }) => {
    const isDeclared =
      (folded !== null && isCommitted(folded)) ||
      facts.some(({ rebased, effects: n }) => rebased !== undefined || (n ?? 0) > 0)
    const strays: Sighting[] =
      effects.length > 0 && !isDeclared && folded !== null
        ? [{ what: `it has ${effects.length} effects that no commit declared` }]
        : []
    const far = farEffects({ stored }, now).map(
      ({ name, n, run_at: runAt }): Sighting => ({
        what: `effect ${id}/${name}/${n} has a due time that is too far ahead`,
        evidence: { runAt },
      }),
    )
    return [
      ...strays,
      ...far,
      ...stored.effects.flatMap((effect) => stuck(id, effect, now - thresholds.dueMs)),
    ]
  },
}

const SETTLE_MARK =
  'Restore its type and payload in the outbox, or set its mark to NULL to deliver it as it is.'

function stuck(id: string, effect: RawEffect, before: number): Sighting[] {
  const key = `${id}/${effect.name}/${effect.n}`
  if (isUnclear(effect)) {
    const { state, tries } = effect
    return [{ what: `the state of effect ${key} is not valid`, evidence: { state, tries } }]
  }
  if (isNotice(effect)) return []
  const evidence = { key, tries: effect.tries, error: effect.error }
  if (effect.state === 'parked') {
    const retry = `pawl effect retry ${shellWord(key)} --reason …`
    const advice = effect.error === ALTERED ? `${SETTLE_MARK} Then: ${retry}` : retry
    return [{ what: `effect ${key} is parked`, severity: 'warning', evidence, advice }]
  }
  if (effect.state !== 'pending' || effect.run_at > before) return []
  const advice = 'Start a worker that has this job type: it delivers effects.'
  return [{ what: `effect ${key} is overdue`, severity: 'warning', evidence, advice }]
}
