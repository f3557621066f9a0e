/** Reports of dispatchers about effects, and retries by operators. */

import { ENGINE } from '../contract/requester.ts'
import type { Answer, EffectReport, Requester } from '../contract/store.ts'
import { parseKey, requesterFor } from '../effects.ts'
import { JobDamaged } from '../errors.ts'
import { NOTICE } from '../notices.ts'
import { Changes } from './changes.ts'
import type { DueEffect, Tx, Verb } from './operations.ts'

/** Which reports counted, and the jobs that were finished by them. */
export interface SettledEffects {
  readonly answers: readonly boolean[]
  readonly finished: readonly Answer[]
}

/**
 * Records deliveries, each under its claim. A committed job that has nothing left to deliver is
 * finished in the same transaction (promise P10). The jobs are locked first, as everywhere, so that
 * two callers cannot wait for each other.
 */
export function* settleEffects(tx: Tx, reports: readonly EffectReport[]): Verb<SettledEffects> {
  const ids = reports.filter(isDelivery).map(({ effect }) => effect.jobId)
  // A damaged job is left out: the doctor finishes it once it is repaired.
  const reads = yield* tx.lockDelivered(ids)
  const answers = yield* tx.recordReports(reports)
  const counted = reports.filter((report, i) => answers[i] && isDelivery(report))
  const touched = [...new Set(counted.map(({ effect }) => effect.jobId))].flatMap(
    (id) => reads.get(id) ?? [],
  )
  if (touched.length === 0) return { answers, finished: [] }
  const open = yield* tx.openEffects(touched)
  const changes = new Changes(tx)
  const finished = touched
    .filter(({ job }) => !open.has(job.id))
    .map((read) => changes.answer(read, { kind: 'done', attempt: read.job.attempt }, ENGINE))
  yield* tx.write(changes)
  return { answers, finished }
}

/** A notice does not finish a job, which may have ended already. */
function isDelivery({ kind, effect }: EffectReport): boolean {
  return kind === 'delivered' && effect.name !== NOTICE
}

/** Makes effects due now, each with a fact of its own; returns which of them. */
export function* retryEffects(
  tx: Tx,
  texts: readonly string[],
  requester: Requester,
): Verb<boolean[]> {
  const keys = texts.map(parseKey)
  const ids = keys.flatMap((key) => key?.jobId ?? [])
  const { reads, unknown } = yield* tx.lockJobs(ids)
  for (const error of unknown.values()) if (error instanceof JobDamaged) throw error
  const asked = keys.map((key): DueEffect | undefined => {
    const read = key && reads.get(key.jobId)
    return key && read && { key, read }
  })
  const known = asked.filter((one) => one !== undefined)
  const due = yield* tx.makeEffectsDue(known)
  const retried = new Set(known.filter((_, i) => due[i]))
  const changes = new Changes(tx)
  for (const { key, read } of retried) {
    if (key.name === NOTICE) continue
    const told = changes.answer(read, { kind: 'redrive' }, requesterFor(key, requester))
    if (told.kind === 'rejected') throw told.error
  }
  yield* tx.write(changes)
  return asked.map((one) => one !== undefined && retried.has(one))
}
