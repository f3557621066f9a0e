// What must add up over all callers: facts and their authors, functions of commits and what they
// wrote, removed jobs, keys, and effects.
import { isDeepStrictEqual } from 'node:util'
import { laneOf } from '../../src/core/job/lanes.ts'
import type { EffectInfo } from '../../src/stores/contract/store.ts'
import type { Case, Of } from './case.ts'

/** Adds everything up. */
export function checkAccounts(open: Case): void {
  checkAuthors(open)
  checkRuns(open)
  checkRetention(open)
  checkKeys(open)
  for (const effect of open.effects) checkEffect(open, effect)
  for (const id of open.rows.keys()) checkDelivered(open, id)
}

/** Every new fact has one author, but for three kinds of which callers are told by number. */
function checkAuthors(open: Case): void {
  const unclaimed = [...open.histories.values()].flatMap((history) =>
    history.facts
      .slice(history.start)
      .filter(({ seq }) => !open.authors.has(`${history.id} ${seq}`)),
  )
  const promoted = sum(open.told('promoted').map(({ telling }) => telling.count))
  const retried = open.told('retried').filter(({ telling }) => telling.ok).length
  const due = unclaimed.filter(({ trigger }) => trigger === 'due')
  const asked = unclaimed.filter(({ trigger, metadata }) => trigger === 'redrive' && metadata)
  const finished = unclaimed.filter(({ trigger }) => trigger === 'done')
  if (due.length > promoted) open.complain(`${due.length} promoted, ${promoted} told`)
  if (asked.length !== retried) open.complain(`${asked.length} facts for ${retried} retries`)
  const known = new Set([...due, ...asked, ...finished])
  for (const { jobId, seq, trigger } of unclaimed.filter((fact) => !known.has(fact))) {
    open.complain(`fact ${seq} of ${jobId} (${trigger}) was written by nobody`)
  }
}

/** The function of a commit leaves its row where the commit was told done, and nowhere else. */
function checkRuns(open: Case): void {
  const told = open
    .told('committed')
    .filter(({ telling }) => telling.answer.kind === 'done')
    .map(({ telling: { held } }) => `${held.job.id} ${held.job.execution?.claim}`)
  const written = open.evidence.runs.map(({ job, claim }) => `${job} ${claim}`)
  if (!isDeepStrictEqual(told.toSorted(), written.toSorted())) {
    open.complain(`P3: functions left ${written.length} rows for ${told.length} commits`)
  }
}

/** As many jobs are gone as were said to be removed, and each had ended. */
function checkRetention(open: Case): void {
  const counted = sum(open.told('pruned').map(({ telling }) => telling.count))
  const gone = [...open.histories.values()].filter(({ id }) => !open.rows.has(id))
  if (gone.length !== counted) open.complain(`${gone.length} jobs are gone, ${counted} told`)
  for (const { id, states } of gone) {
    const job = states.at(-1)
    const lane = job && laneOf(open.evidence.scene.lifecycle, job, job.updatedAt)
    if (lane !== 'ended') open.complain(`P1: ${id} was removed before it had ended`)
  }
}

/** P12: a new job with a key that was taken needs the old one to be gone. */
function checkKeys(open: Case): void {
  const keys = [...open.histories.values()].flatMap(({ states }) => states[1]?.key ?? [])
  const present = [...open.rows.values()].flatMap(({ key }) => key ?? [])
  if (new Set(present).size !== present.length) open.complain('P12: two jobs have one key')
  const gone = open.histories.size - open.rows.size
  if (keys.length - new Set(keys).size > gone) open.complain('P12: a key was given twice')
}

/** At most one dispatcher at a time, one delivery that counts, and the state that it leaves. */
function checkEffect(open: Case, { key, state }: EffectInfo): void {
  const reports = open
    .told('reported')
    .filter(({ telling }) => telling.ok && telling.report.effect.key === key)
  const before = open.evidence.scene.delivered.includes(key) ? 1 : 0
  const now = reports.filter(({ telling }) => telling.report.kind === 'delivered').length
  if (before + now > 1) open.complain(`effect ${key} was delivered by two`)
  if ((state === 'delivered') !== (before + now === 1)) {
    open.complain(`effect ${key} is ${state}, and ${before + now} have delivered it`)
  }
  const taken = open
    .told('taken')
    .filter(({ telling }) => telling.effects.some((effect) => effect.key === key))
  const freed = [
    ...reports.filter(({ telling }) => telling.report.kind !== 'delivered'),
    ...open.told('time passed'),
    ...open.told('retried').filter(({ telling }) => telling.ok && telling.key === key),
  ]
  if (taken.length > 1 + freed.length) open.complain(`effect ${key} was held by two`)
  for (const { by, began, telling } of reports) {
    const { claim } = telling.report.effect
    const own = taken.find((take) => claimOf(take.telling, key) === claim)
    const later = taken.filter((take) => take.began > (own?.ended ?? -1) && take.ended < began)
    if (later.length > 0) open.complain(`${by} reported on ${key}, which another had taken`)
  }
}

function claimOf({ effects }: Of<'taken'>, key: string): string | undefined {
  return effects.find((effect) => effect.key === key)?.claim
}

/** P10: a committed job is done when, and only when, its effects are delivered. */
function checkDelivered(open: Case, id: string): void {
  const effects = open.effects.filter(({ jobId }) => jobId === id)
  if (effects.length === 0) return
  const isDelivered = effects.every(({ state }) => state === 'delivered')
  const isDone = open.rows.get(id)?.execution?.status === 'DONE'
  if (isDelivered !== isDone) {
    open.complain(`P10: ${id} is ${isDone ? '' : 'not '}done with effects in ${effects.length}`)
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
