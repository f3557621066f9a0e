/**
 * What is to be done about one job, decided on what was read of it and nothing else. In order:
 *
 *   a row without facts whose id another row has    is taken aside: it is nobody's
 *   facts and effects of which no job can be made   are taken aside
 *   facts that were lost or contradict each other   the job is quarantined: parked, or ended where
 *                                                   it had ended; where anything says that it was
 *                                                   committed it is never run again
 *   a history that is not as it should be           is noted; the job goes on as it is
 *   a key that an older job has                     is given up; if that job has committed and this
 *                                                   one has not begun, this one is parked
 *   a row that is not what its facts say            is rebuilt from them, or made anew
 *   a job that the engine has set aside             goes on, once its row is as its facts say
 *   effects that no commit declared                 are taken aside
 *   effects whose time would never come             become due
 *
 * Every one of these leaves a fact with the operator and the note. Where the facts before it cannot
 * be built on, that fact says what the job is from then on (`rebased`).
 */
import type { Context } from '../core/job/commands.ts'
import { newFact } from '../core/job/decision.ts'
import { evolve } from '../core/job/evolve.ts'
import { FACT_CODES, type Fact, sinceRebase } from '../core/job/facts.ts'
import { isEndless } from '../core/job/fence.ts'
import { DAMAGE, DAMAGED } from '../core/job/isolate.ts'
import { isCommitted, type Job } from '../core/job/job.ts'
import { laneOf } from '../core/job/lanes.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Aside, Handle, Mending, RawEffect, RawFact } from '../stores/examination.ts'
import { effectBounds } from '../stores/far-times.ts'
import { doubtsOf, lostEffects } from './doubts.ts'
import type { Remedy } from './finding.ts'
import { isPlausible, type Patient } from './patient.ts'
import { parkedOf, quarantineOf } from './quarantine.ts'
import { rowFaults } from './row-faults.ts'

/** What is known besides the job itself. */
export interface Surroundings {
  readonly now: number
  /** Ids that several rows have. */
  readonly duplicateIds: ReadonlySet<string>
  /** Jobs whose key an older job has. */
  readonly keyless: ReadonlySet<string>
  /** Those of them whose older job has committed: to run them would do its work again. */
  readonly redundant: ReadonlySet<string>
}

/** What is to be done, in words and in deed. */
export interface Prescription extends Mending {
  readonly remedy: Remedy
}

/** What is to be done about a job; nothing where it is well, or nothing can be done. */
export function prescribe(
  patient: Patient,
  around: Surroundings,
  by: Pick<Context, 'operator' | 'note'>,
): Prescription | undefined {
  const { dossier, lifecycle, facts, id } = patient
  const { row } = dossier
  if (row !== null && dossier.facts.length === 0 && around.duplicateIds.has(id)) {
    const aside = [asideOf('jobs', row)]
    return { remedy: ASIDE, why: `another job has the id ${id}, and its facts`, aside }
  }
  const isFounded = facts.some(({ created, rebased }) => created ?? rebased)
  if (row === null && (!isFounded || around.duplicateIds.has(id))) return clearAway(patient)
  if (lifecycle === undefined) return undefined
  const context: Context = { now: around.now, random: 0, actor: 'doctor', ...by }
  const doubts = doubtsOf(patient)
  const isStateLost = doubts.some(({ kind }) => kind === 'state')
  const why = doubts.map(({ what }) => what).join('; ')
  if (isStateLost) {
    const job = quarantineOf(patient, lifecycle, around.now)
    if (job === undefined) return clearAway(patient)
    const aside = surplusOf(patient).map((fact) => asideOf('ledger', fact))
    return rebase('quarantine the job', why, patient, lifecycle, job, context, aside)
  }
  const folded = patient.folded as Job
  if (doubts.length > 0) {
    const job = lostEffects(patient).length > 0 ? withoutThem(patient, lifecycle, folded) : folded
    return rebase('note what is wrong and go on', why, patient, lifecycle, job, context)
  }
  if (around.keyless.has(id)) {
    const isDone = around.redundant.has(id)
    const lost = `an older job has the key "${folded.key}"${isDone ? ' and has committed' : ''}`
    const isIdle = folded.outcome === null && folded.execution === null
    const keyless = { ...folded, key: null }
    const job = isDone && isIdle ? parkedOf(keyless, lifecycle, around.now) : keyless
    return rebase('give the key up', lost, patient, lifecycle, job, context)
  }
  return rebuild(patient, lifecycle, folded, context)
}

const ASIDE: Remedy = 'take the contradicting rows aside'

function asideOf(origin: Aside['origin'], { handle }: Pick<Aside, 'handle'>): Aside {
  return { origin, handle }
}

/** Facts that cannot be read, and commits after the first: no constraint would let them stay. */
function surplusOf({ unreadable, dossier }: Patient): RawFact[] {
  const commits = dossier.facts.filter(({ kind }) => kind === FACT_CODES.commit).slice(1)
  return [...new Set([...unreadable.map(({ raw }) => raw), ...commits])]
}

/** No job can be made of what is left: it is kept, and out of everybody's way. */
function clearAway({ dossier }: Patient): Prescription | undefined {
  const aside = [
    ...(dossier.row === null ? [] : [asideOf('jobs', dossier.row)]),
    ...dossier.facts.map((fact) => asideOf('ledger', fact)),
    ...dossier.effects.map((effect) => asideOf('outbox', effect)),
  ]
  const why = 'no job can be made of what is left of it; if it had a key, the key is free again'
  return { remedy: ASIDE, why, aside }
}

/** A committed job whose last effects are lost has nothing left to wait for. */
function withoutThem({ effects }: Patient, lifecycle: Lifecycle, job: Job): Job {
  const isWaiting = effects.some(({ state }) => state !== 'delivered')
  if (job.outcome !== null || isWaiting || job.execution === null) return job
  return {
    ...job,
    state: lifecycle.succeeded,
    outcome: 'succeeded',
    reason: 'effects_lost',
    execution: { ...job.execution, status: 'DONE' },
  }
}

/** Says anew what the job is. */
function rebase(
  remedy: Remedy,
  why: string,
  patient: Patient,
  lifecycle: Lifecycle,
  given: Job,
  context: Context,
  aside: readonly Aside[] = [],
): Prescription {
  const { dossier, facts, id } = patient
  const ended = given.outcome !== null
  const job = { ...given, endedAt: ended ? (given.endedAt ?? context.now) : null }
  const numbers = [dossier.row, ...dossier.facts].flatMap((one) =>
    one !== null && isPlausible(one) ? one.seq : [],
  )
  const seq = 1 + Math.max(0, ...numbers)
  const before = facts[facts.length - 1]?.to ?? dossier.row?.state ?? job.state
  const from = lifecycle.roles.has(before) ? before : job.state
  const fact: Fact = {
    ...newFact(context, id, seq, 'repair', from, job.state),
    reason: remedy === 'quarantine the job' ? 'quarantined' : 'repaired',
    rebased: job,
  }
  return finish(remedy, why, patient, lifecycle, evolve(null, fact), fact, aside)
}

/** The row becomes what its facts say. */
function rebuild(
  patient: Patient,
  lifecycle: Lifecycle,
  folded: Job,
  context: Context,
): Prescription | undefined {
  const { dossier, id } = patient
  const faults = rowFaults(patient, context.now)
  const strays = isCommitted(folded) || wasCommitted(patient) ? [] : patient.effects
  const aside = [
    ...dossier.twins.map((twin) => asideOf('jobs', twin)),
    ...strays.map((effect) => asideOf('outbox', effect)),
  ]
  const unclear = dossier.effects.filter(isUnclear)
  const far = farEffects(patient, context.now)
  const damage = damageOf(patient)
  const isWell = faults.length + aside.length + unclear.length + far.length === 0
  if (isWell && damage === undefined) return undefined
  const why = [
    ...(damage === undefined ? [] : [damage]),
    ...faults,
    ...(dossier.twins.length > 0 ? ['there are further rows of it'] : []),
    ...(strays.length > 0 ? ['it has effects that no commit declared'] : []),
    ...unclear.map(({ name, n }) => `nobody can say where effect ${name}/${n} is`),
    ...far.map(({ name, n }) => `effect ${name}/${n} would never be due`),
  ].join('; ')
  const fact: Fact = {
    ...newFact(context, id, folded.seq + 1, 'repair', folded.state, folded.state),
    ...(damage !== undefined && { blockedReason: null }),
  }
  const remedy: Remedy =
    dossier.row === null
      ? 'restore the row from its facts'
      : faults.length > 0
        ? 'rebuild the row from its facts'
        : aside.length > 0
          ? ASIDE
          : unclear.length > 0
            ? 'park the effects'
            : damage === undefined
              ? 'make the effects due'
              : 'let the job go on'
  return finish(remedy, why, patient, lifecycle, evolve(folded, fact), fact, aside)
}

/** Why the engine has set a job aside; nothing if it has not. */
export function damageOf({ facts, folded }: Patient): string | undefined {
  if (folded?.blockedReason !== DAMAGED) return undefined
  const fact = facts.findLast(({ blockedReason }) => blockedReason === DAMAGED)
  return `it was set aside: ${fact?.metadata?.[DAMAGE] ?? 'its row was damaged'}`
}

/** A job that was repaired into its end may have had effects before. */
function wasCommitted({ facts }: Patient): boolean {
  return (
    sinceRebase(facts) !== facts ||
    facts.some(({ execution }) => execution?.statuses.includes('COMMITTED'))
  )
}

function finish(
  remedy: Remedy,
  why: string,
  patient: Patient,
  lifecycle: Lifecycle,
  job: Job,
  fact: Fact,
  aside: readonly Aside[],
): Prescription {
  const { dossier } = patient
  const lane = laneOf(lifecycle, job, fact.at)
  const { execution } = job
  const kept = dossier.row?.lease_until ?? null
  // A lease that never ends would never be taken back.
  const isSound = kept !== null && !isEndless(kept, fact.at)
  const leaseUntil = lane !== 'held' ? null : isSound ? kept : (execution?.leaseUntil ?? fact.at)
  const removed = new Set(aside.map(({ handle }) => handle))
  const parked = dossier.effects.filter(isUnclear).map(({ handle }) => handle)
  const due = farEffects(patient, fact.at).map(({ handle }) => handle)
  const after = { lifecycle, job, lane, leaseUntil, fact }
  const staying = (handles: readonly Handle[]) => handles.filter((one) => !removed.has(one))
  return { remedy, why, aside, parked: staying(parked), due: staying(due), after }
}

/** Effects, notices among them, whose time is further ahead than any that Pawl writes. */
export function farEffects({ dossier }: Pick<Patient, 'dossier'>, now: number): RawEffect[] {
  const { claimedMax, otherMax } = effectBounds(now)
  return dossier.effects.filter(({ state, claim, run_at }) => {
    return state === 'pending' && run_at > (claim === null ? otherMax : claimedMax)
  })
}

const EFFECT_STATES: readonly string[] = ['pending', 'delivered', 'parked']

/** Whether an effect is in a state that none has: a person must find out what became of it. */
export function isUnclear({ state, tries }: RawEffect): boolean {
  return !EFFECT_STATES.includes(state) || tries < 0
}
