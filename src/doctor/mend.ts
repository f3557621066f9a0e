/**
 * Decides how one job is repaired, from its row, facts and effects alone. The first rule that
 * applies counts:
 *
 *   a row without facts, and another row has its id   is set aside
 *   no job can be built from facts and effects        all of it is set aside
 *   facts are lost or contradict each other           the job is quarantined: parked, or ended if
 *                                                     it had ended. It never runs again if anything
 *                                                     says that it was committed.
 *   times or fences in the facts are wrong            a fact records that; the job continues
 *   an older job has its key                          the key is removed. If the older job has
 *                                                     committed and this one has not started, this
 *                                                     one is parked.
 *   the row differs from its facts                    the row is rebuilt from the facts
 *   the engine has set the job aside                  the job continues
 *   effects that no commit declared                   are set aside
 *   effects whose due time is too far ahead           become due
 *
 * Each repair adds a fact with the operator and the note. If the facts before it cannot be used,
 * the fact contains the whole job from then on (`rebased`).
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
import type { Aside, Handle, Mending, RawEffect, RawFact } from '../stores/contract/examination.ts'
import { effectBounds } from '../stores/far-times.ts'
import { doubtsOf, lostEffects } from './doubts.ts'
import { type ExaminedJob, isPlausible } from './examined-job.ts'
import type { Remedy } from './finding.ts'
import { parkedOf, quarantineOf } from './quarantine.ts'
import { rowFaults } from './row-faults.ts'

/** What a repair has to know about other jobs. */
export interface Surroundings {
  readonly now: number
  /** Ids that several rows have. */
  readonly duplicateIds: ReadonlySet<string>
  /** Jobs whose key an older job has. */
  readonly keyless: ReadonlySet<string>
  /** Those whose older job has committed: running them would repeat its work. */
  readonly redundant: ReadonlySet<string>
}

/** What a repair writes, and its name. */
export interface RepairPlan extends Mending {
  readonly remedy: Remedy
}

/** Plans the repair of a job. Returns `undefined` if the job is intact or cannot be repaired. */
export function planRepair(
  examined: ExaminedJob,
  around: Surroundings,
  by: Pick<Context, 'operator' | 'note'>,
): RepairPlan | undefined {
  const { stored, lifecycle, facts, id } = examined
  const { row } = stored
  if (row !== null && stored.facts.length === 0 && around.duplicateIds.has(id)) {
    const aside = [asideOf('jobs', row)]
    return { remedy: ASIDE, why: `another job has the id ${id}, and its facts`, aside }
  }
  const isFounded = facts.some(({ created, rebased }) => created ?? rebased)
  if (row === null && (!isFounded || around.duplicateIds.has(id))) return setAllAside(examined)
  if (lifecycle === undefined) return undefined
  const context: Context = { now: around.now, random: 0, actor: 'doctor', ...by }
  const doubts = doubtsOf(examined)
  const isStateLost = doubts.some(({ kind }) => kind === 'state')
  const why = doubts.map(({ what }) => what).join('; ')
  if (isStateLost) {
    const job = quarantineOf(examined, lifecycle, around.now)
    if (job === undefined) return setAllAside(examined)
    const aside = surplusOf(examined).map((fact) => asideOf('ledger', fact))
    return rebase('quarantine the job', why, examined, lifecycle, job, context, aside)
  }
  const folded = examined.folded as Job
  if (doubts.length > 0) {
    const job =
      lostEffects(examined).length > 0 ? withoutLostEffects(examined, lifecycle, folded) : folded
    return rebase('note what is wrong and go on', why, examined, lifecycle, job, context)
  }
  if (around.keyless.has(id)) {
    const isDone = around.redundant.has(id)
    const lost = `an older job has the key "${folded.key}"${isDone ? ' and has committed' : ''}`
    const isIdle = folded.outcome === null && folded.execution === null
    const keyless = { ...folded, key: null }
    const job = isDone && isIdle ? parkedOf(keyless, lifecycle, around.now) : keyless
    return rebase('give the key up', lost, examined, lifecycle, job, context)
  }
  return rebuild(examined, lifecycle, folded, context)
}

const ASIDE: Remedy = 'take the contradicting rows aside'

function asideOf(origin: Aside['origin'], { handle }: Pick<Aside, 'handle'>): Aside {
  return { origin, handle }
}

/** Returns unreadable facts and commits after the first; constraints do not allow them. */
function surplusOf({ unreadable, stored }: ExaminedJob): RawFact[] {
  const commits = stored.facts.filter(({ kind }) => kind === FACT_CODES.commit).slice(1)
  return [...new Set([...unreadable.map(({ raw }) => raw), ...commits])]
}

/** Sets everything aside, because no job can be built from it. */
function setAllAside({ stored }: ExaminedJob): RepairPlan | undefined {
  const aside = [
    ...(stored.row === null ? [] : [asideOf('jobs', stored.row)]),
    ...stored.facts.map((fact) => asideOf('ledger', fact)),
    ...stored.effects.map((effect) => asideOf('outbox', effect)),
  ]
  const why = 'no job can be built from what is left of it; if it had a key, the key is free again'
  return { remedy: ASIDE, why, aside }
}

/** A committed job whose last effects are lost has succeeded: it waits for no delivery. */
function withoutLostEffects({ effects }: ExaminedJob, lifecycle: Lifecycle, job: Job): Job {
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

/** Adds a fact that contains the whole job. */
function rebase(
  remedy: Remedy,
  why: string,
  examined: ExaminedJob,
  lifecycle: Lifecycle,
  given: Job,
  context: Context,
  aside: readonly Aside[] = [],
): RepairPlan {
  const { stored, facts, id } = examined
  const ended = given.outcome !== null
  const job = { ...given, endedAt: ended ? (given.endedAt ?? context.now) : null }
  const numbers = [stored.row, ...stored.facts].flatMap((one) =>
    one !== null && isPlausible(one) ? one.seq : [],
  )
  const seq = 1 + Math.max(0, ...numbers)
  const before = facts[facts.length - 1]?.to ?? stored.row?.state ?? job.state
  const from = lifecycle.roles.has(before) ? before : job.state
  const fact: Fact = {
    ...newFact(context, id, seq, 'repair', from, job.state),
    reason: remedy === 'quarantine the job' ? 'quarantined' : 'repaired',
    rebased: job,
  }
  return finish(remedy, why, examined, lifecycle, evolve(null, fact), fact, aside)
}

/** Rebuilds the row from its facts. */
function rebuild(
  examined: ExaminedJob,
  lifecycle: Lifecycle,
  folded: Job,
  context: Context,
): RepairPlan | undefined {
  const { stored, id } = examined
  const faults = rowFaults(examined, context.now)
  const strays = isCommitted(folded) || wasCommitted(examined) ? [] : examined.effects
  const aside = [
    ...stored.twins.map((twin) => asideOf('jobs', twin)),
    ...strays.map((effect) => asideOf('outbox', effect)),
  ]
  const unclear = stored.effects.filter(isUnclear)
  const far = farEffects(examined, context.now)
  const damage = damageOf(examined)
  const isWell = faults.length + aside.length + unclear.length + far.length === 0
  if (isWell && damage === undefined) return undefined
  const why = [
    ...(damage === undefined ? [] : [damage]),
    ...faults,
    ...(stored.twins.length > 0 ? ['it has more than one row'] : []),
    ...(strays.length > 0 ? ['it has effects that no commit declared'] : []),
    ...unclear.map(({ name, n }) => `the state of effect ${name}/${n} is not valid`),
    ...far.map(({ name, n }) => `effect ${name}/${n} has a due time that is too far ahead`),
  ].join('; ')
  const fact: Fact = {
    ...newFact(context, id, folded.seq + 1, 'repair', folded.state, folded.state),
    ...(damage !== undefined && { blockedReason: null }),
  }
  const remedy: Remedy =
    stored.row === null
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
  return finish(remedy, why, examined, lifecycle, evolve(folded, fact), fact, aside)
}

/** Returns why the engine has set a job aside, or `undefined`. */
export function damageOf({ facts, folded }: ExaminedJob): string | undefined {
  if (folded?.blockedReason !== DAMAGED) return undefined
  const fact = facts.findLast(({ blockedReason }) => blockedReason === DAMAGED)
  return `it was set aside: ${fact?.metadata?.[DAMAGE] ?? 'its row was damaged'}`
}

/** Returns true if the job may have had effects: it was committed, or repaired before. */
function wasCommitted({ facts }: ExaminedJob): boolean {
  return (
    sinceRebase(facts) !== facts ||
    facts.some(({ execution }) => execution?.statuses.includes('COMMITTED'))
  )
}

function finish(
  remedy: Remedy,
  why: string,
  examined: ExaminedJob,
  lifecycle: Lifecycle,
  job: Job,
  fact: Fact,
  aside: readonly Aside[],
): RepairPlan {
  const { stored } = examined
  const lane = laneOf(lifecycle, job, fact.at)
  const { execution } = job
  const kept = stored.row?.lease_until ?? null
  // A lease that never expires would never be recovered.
  const isSound = kept !== null && !isEndless(kept, fact.at)
  const leaseUntil = lane !== 'held' ? null : isSound ? kept : (execution?.leaseUntil ?? fact.at)
  const removed = new Set(aside.map(({ handle }) => handle))
  const parked = stored.effects.filter(isUnclear).map(({ handle }) => handle)
  const due = farEffects(examined, fact.at).map(({ handle }) => handle)
  const after = { lifecycle, job, lane, leaseUntil, fact }
  const staying = (handles: readonly Handle[]) => handles.filter((one) => !removed.has(one))
  return { remedy, why, aside, parked: staying(parked), due: staying(due), after }
}

/** Returns effects and notices whose due time is later than any that Pawl writes. */
export function farEffects({ stored }: Pick<ExaminedJob, 'stored'>, now: number): RawEffect[] {
  const { claimedMax, otherMax } = effectBounds(now)
  return stored.effects.filter(({ state, claim, run_at }) => {
    return state === 'pending' && run_at > (claim === null ? otherMax : claimedMax)
  })
}

const EFFECT_STATES: readonly string[] = ['pending', 'delivered', 'parked']

/** Returns true if the state of an effect is not valid. A person must find out what happened. */
export function isUnclear({ state, tries }: RawEffect): boolean {
  return !EFFECT_STATES.includes(state) || tries < 0
}
