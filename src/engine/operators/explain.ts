/**
 * Explains why a job is not running, in one sentence, with the command that would change it.
 * `explain` is a pure function of the job and its circumstances. The first reason that applies is
 * the answer:
 *
 *   ended               it has succeeded, failed or was cancelled
 *   delivering          it is committed, and effects are not delivered yet
 *   damaged             its row is not what its facts say, so workers may not find it
 *   lifecycle-unknown   this process does not know its lifecycle
 *   stalled             its lease has expired, and recovery waits for approval
 *   running, expired    a worker holds it; or its lease has expired and is not recovered yet
 *   parked, held-back   it waits for a person: after a failure, or because of `hold`
 *   waiting             it is not due yet, sleeps, or waits for a signal or for other jobs
 *   blocked, throttled  a limit blocks it; or a throttle lets it start later
 *   paused              it is ready, and its queue is paused
 *   no-worker, busy     it is ready, and no live worker runs its type; or all slots are occupied
 *   ready               it is ready, and a worker will claim it
 */

import { span } from '../../core/format.ts'
import type { Timing } from '../../core/job/facts.ts'
import { DAMAGED } from '../../core/job/isolate.ts'
import { isCommitted, isPastDeadline, type Job } from '../../core/job/job.ts'
import { isDue, laneOf } from '../../core/job/lanes.ts'
import { LINKS } from '../../core/job/links.ts'
import { reasonOf } from '../../core/job/waits.ts'
import { type Lifecycle, pathOf } from '../../core/lifecycles/lifecycle.ts'
import { parseScheduleKey, type ScheduledKey } from '../../core/schedule/keys.ts'
import { chainOf, type ThrownError } from '../../core/thrown.ts'
import { STEP_MS } from '../../core/time-base.ts'
import { moment, relative, stamp } from '../../environment/times.ts'
import type { Waiting } from '../../stores/contract/admissions.ts'
import type { EffectInfo, QueueInfo } from '../../stores/contract/store.ts'
import { NOTICE } from '../../stores/notices.ts'
import type { TimeStatus } from '../../stores/store-time.ts'
import type { WorkerInfo } from '../../stores/worker-info.ts'
import { explainObstacle, hasRoom, type Obstacle } from './explain-limits.ts'
import { type Chain, sayChain } from './explain-waits.ts'
import { counted, quoted, word } from './words.ts'

/** The answer of `explain`. */
export interface Explanation {
  readonly kind:
    | 'ended'
    | 'delivering'
    | 'damaged'
    | 'lifecycle-unknown'
    | 'stalled'
    | 'running'
    | 'expired'
    | 'parked'
    | 'held-back'
    | 'waiting'
    | 'blocked'
    | 'throttled'
    | 'paused'
    | 'no-worker'
    | 'busy'
    | 'ready'
  /** One sentence; names and error messages are quoted unchanged. */
  readonly says: string
  /** The command that would change it; the operator fills in the reason. */
  readonly command?: string
  /** The job whose handler enqueued this one; absent if no handler did. */
  readonly enqueuedBy?: string
  /** The schedule that made the job; absent if none did. */
  readonly schedule?: string
  /** The limit or throttle that blocks it. */
  readonly blockedBy?: Obstacle
  /** The jobs that it waits for, directly and through others; the last one is the cause. */
  readonly waitsFor?: readonly string[]
}

/** What an explanation is derived from. */
export interface Circumstances {
  readonly job: Job
  /** How its row differs from its facts, or what is wrong with those; absent if sound. */
  readonly faults?: readonly string[]
  /** Undefined if this process does not know it. */
  readonly lifecycle: Lifecycle | undefined
  /** The version that this process migrates the job to; absent if no migration is needed. */
  readonly migratesTo?: number
  readonly queue: QueueInfo | undefined
  readonly workers: readonly WorkerInfo[]
  /** Effects that are not delivered, at most 100 per state. */
  readonly effects: readonly EffectInfo[]
  readonly now: number
  /** The times of the last attempt of an ended job; absent if no fact has them. */
  readonly timing?: Timing
  /** The job whose handler enqueued it. */
  readonly enqueuedBy?: string
  /** The job of the same singleton that must end before it; absent if there is none. */
  readonly waitsFor?: Waiting
  /** What the handler threw last; absent if the job has no error. */
  readonly thrown?: ThrownError
  /** The limit or throttle that keeps it back. */
  readonly obstacle?: Obstacle
  /** The chain of jobs that it waits for, and what is said of its end. */
  readonly chain?: Chain & { readonly end: Explanation }
  /** The difference between the store's time and this process's clock, if they can differ. */
  readonly time?: TimeStatus
}

export function explain(circumstances: Circumstances): Explanation {
  const explanation = explainJob(circumstances)
  const notes =
    explanation.kind === 'ended'
      ? [damageNote(circumstances), noticeNote(circumstances)]
      : [
          deadlineNote(circumstances),
          noticeNote(circumstances),
          migrationNote(circumstances),
          timeNote(circumstances),
        ]
  const { enqueuedBy } = circumstances
  const schedule = parseScheduleKey(circumstances.job.key)
  const origins = [parentNote(circumstances), scheduleNote(schedule)]
  const said = [explanation.says, ...notes, ...origins].filter(isSaid)
  const origin = {
    ...(enqueuedBy !== undefined && { enqueuedBy }),
    ...(schedule !== undefined && { schedule: schedule.name }),
  }
  return { ...explanation, ...origin, says: said.join(' ') }
}

function isSaid(note: string | undefined): note is string {
  return note !== undefined
}

function parentNote({ enqueuedBy }: Circumstances): string | undefined {
  return enqueuedBy === undefined ? undefined : `It was enqueued by job ${enqueuedBy}.`
}

function scheduleNote(scheduled: ScheduledKey | undefined): string | undefined {
  if (scheduled === undefined) return undefined
  const { name, tick } = scheduled
  if (tick === undefined) return `An operator asked schedule ${name} for it.`
  return `It was made by schedule ${name} for the tick ${stamp(tick)}.`
}

function damageNote({ faults = [] }: Circumstances): string | undefined {
  if (faults.length === 0) return undefined
  return `Its stored row is damaged (${faults.join('; ')}): pawl doctor --full --plan.`
}

/** A job is not ended at its deadline, but when a worker next looks or claims it. */
function deadlineNote({ job, now }: Circumstances): string | undefined {
  if (isCommitted(job) || !isPastDeadline(job, now)) return undefined
  const when = moment(job.deadlineAt as number, now)
  return `Its deadline passed ${when}: the next recovery of a worker ends it.`
}

function migrationNote({ job, migratesTo }: Circumstances): string | undefined {
  if (migratesTo === undefined) return undefined
  const when = job.execution === null ? 'when it is next touched' : 'when its attempt has ended'
  const versions = `from version ${job.lifecycleVersion} of its lifecycle to ${migratesTo}`
  return `It is migrated ${versions} ${when}.`
}

function timeNote({ time }: Circumstances): string | undefined {
  const aheadMs = time?.aheadMs ?? 0
  if (Math.abs(aheadMs) <= STEP_MS) return undefined
  const where = aheadMs > 0 ? 'ahead of' : 'behind'
  return `The time of the file is ${span(Math.abs(aheadMs))} ${where} this wall clock.`
}

/** How long a notice may be overdue before an explanation mentions it. */
const NOTICE_LATE_MS = 10_000

/** Why the notice of an ended or parked job is not delivered. */
function noticeNote({ effects, now }: Circumstances): string | undefined {
  const notices = effects.filter(({ name }) => name === NOTICE)
  const parked = notices.find(({ state }) => state === 'parked')
  if (parked !== undefined) {
    const why = parked.error ?? 'no error'
    return `Its notice is parked: ${why}; pawl effect retry --reason … ${word(parked.key)}`
  }
  const late = notices.find(({ state, runAt }) => {
    return state === 'pending' && runAt + NOTICE_LATE_MS < now
  })
  if (late === undefined) return undefined
  const due = moment(late.runAt, now)
  return `Its notice is due since ${due}, and no process delivers it: pawl work --notify-url URL.`
}

function explainJob(circumstances: Circumstances): Explanation {
  const { job, lifecycle, now } = circumstances
  if (job.outcome !== null) return ended(circumstances)
  const { faults = [] } = circumstances
  if (faults.length > 0) {
    const says = `Its stored row is damaged (${faults.join('; ')}), so workers may not find it.`
    return { kind: 'damaged', says, command: 'pawl doctor --full --plan' }
  }
  if (isCommitted(job)) return delivering(circumstances)
  if (lifecycle === undefined) {
    const name = `${job.lifecycle} version ${job.lifecycleVersion}`
    return {
      kind: 'lifecycle-unknown',
      says: `Its lifecycle ${name} is not known here; ask a process that defines it.`,
      command: `pawl job explain ${job.id} --jobs ./jobs.ts`,
    }
  }
  if (job.execution !== null) return held(circumstances, job.execution)
  const { chain } = circumstances
  if (chain !== undefined) return explainChain(job, chain)
  if ((job.links & LINKS.waits) !== 0 && job.blockedReason === null) {
    const says = 'Every job that it waited for has ended; a live worker releases it within seconds.'
    return { kind: 'waiting', says }
  }
  if (job.state === lifecycle.targets.get('wait')) return explainWait(circumstances)
  switch (laneOf(lifecycle, job, now)) {
    case 'idle':
      return {
        kind: 'held-back',
        says: 'It was enqueued with hold, and has not been submitted yet.',
        command: act('submit', job),
      }
    case 'waiting': {
      const { waitsFor } = circumstances
      return waitsFor === undefined ? waiting(circumstances) : singleton(job, waitsFor)
    }
    case 'ready':
      return blocked(circumstances) ?? ready(circumstances)
    default:
      return parked(circumstances, lifecycle)
  }
}

function ended(circumstances: Circumstances): Explanation {
  const { job, lifecycle, now, timing } = circumstances
  const when = moment(job.endedAt ?? job.updatedAt, now)
  const took =
    timing === undefined
      ? ''
      : ` Its last attempt waited ${span(timing.queueMs)} and took ${span(timing.durationMs)}.`
  if (job.outcome === 'succeeded') return { kind: 'ended', says: `It succeeded, ${when}.${took}` }
  const how = job.outcome === 'cancelled' ? 'It was cancelled' : 'It failed'
  const canLeave = lifecycle !== undefined && pathOf(lifecycle, job.state, 'redrive') !== undefined
  const again = canLeave ? 'a retry runs it again' : 'a retry enqueues a copy of it'
  const says = `${how}${because(circumstances)}, ${when}; ${again}.${took}`
  return { kind: 'ended', says, command: act('retry', job) }
}

function delivering({ job, workers, now, ...rest }: Circumstances): Explanation {
  const effects = rest.effects.filter(({ name }) => name !== NOTICE)
  const [parked] = effects.filter(({ state }) => state === 'parked')
  const begin = 'It has committed, and waits for'
  if (parked !== undefined) {
    const { key, tries, error = 'no error' } = parked
    const says = `${begin} the effect ${key}, which is parked after ${times(tries)}: ${error}.`
    const command = `pawl effect retry --reason … ${word(key)}`
    return { kind: 'delivering', says, command }
  }
  const [first, ...others] = effects
  if (first === undefined) {
    return { kind: 'delivering', says: `${begin} its effects to be noted as delivered.` }
  }
  const more = others.length === 0 ? '' : ` and ${others.length} more`
  const what = `${begin} the effect ${first.key}${more} to be delivered`
  if (!workers.some((worker) => worker.live && knows(worker, job.type))) {
    const says = `${what}, and no worker is alive that knows ${job.type}.`
    return { kind: 'delivering', says, command: 'pawl work --jobs ./jobs.ts' }
  }
  const when = first.runAt > now ? `next try ${relative(first.runAt, now)}` : 'due now'
  const why = first.error === undefined ? '' : `, after ${times(first.tries)}: ${first.error}`
  return { kind: 'delivering', says: `${what}, ${when}${why}.` }
}

function held(
  { job, workers, now }: Circumstances,
  { worker: holder, status, leaseUntil }: NonNullable<Job['execution']>,
): Explanation {
  if (job.stalled) {
    const expired = `The lease of ${holder} expired ${moment(leaseUntil, now)}`
    const says = `${expired}, and recovery waits for approval.`
    return { kind: 'stalled', says, command: act('approve', job) }
  }
  if (leaseUntil > now) {
    const does = status === 'LEASED' ? 'has claimed' : 'is running'
    const since = job.startedAt === null ? '' : ` since ${moment(job.startedAt, now)}`
    const row = workers.find(({ id }) => id === holder)
    const silent = row !== undefined && !row.live
    const doubt = silent
      ? `; it was last seen ${relative(row.seenAt, now)}, and loses it ${relative(leaseUntil, now)}`
      : ''
    const mute = silent
      ? undefined
      : row?.silent.find((one) => one.job === job.id && one.attempt === job.attempt)
    const hangs =
      mute === undefined ? '' : `; its handler has shown no activity for ${span(now - mute.since)}`
    // A handler that blocks the main thread then also stops the renewal of its lease.
    const timer = row?.renewal === 'timer' && (silent || mute !== undefined)
    const renewal = timer ? '; no separate thread renews its lease' : ''
    const says = `${holder} ${does} attempt ${job.attempt}${since}${doubt}${hangs}${renewal}.`
    return { kind: 'running', says, command: act('cancel', job) }
  }
  const lost = `The lease of ${holder} expired ${relative(leaseUntil, now)}`
  if (workers.some(({ live }) => live)) {
    return { kind: 'expired', says: `${lost}; a live worker recovers it within seconds.` }
  }
  const says = `${lost}, and no worker is alive to recover it.`
  return { kind: 'expired', says, command: 'pawl work --jobs ./jobs.ts' }
}

function parked(circumstances: Circumstances, lifecycle: Lifecycle): Explanation {
  const { job } = circumstances
  if (job.blockedReason === null && lifecycle.roles.get(job.state) !== 'parked') {
    const says = `Its state ${job.state} is unknown in lifecycle ${lifecycle.name}; run the doctor.`
    return { kind: 'parked', says, command: `${act('force', job)} --to STATE` }
  }
  if (job.blockedReason === DAMAGED) {
    const says = 'It was set aside because its stored row was damaged.'
    return { kind: 'parked', says, command: 'pawl doctor --full --plan' }
  }
  const says = `It is parked for an operator${because(circumstances)}.`
  return { kind: 'parked', says, command: act('redrive', job) }
}

/** A job that sleeps or waits for a signal. */
function explainWait({ job, now }: Circumstances): Explanation {
  const { reason, runAt } = job
  const until = runAt === null ? undefined : moment(runAt, now)
  if (reason === null || !reason.startsWith(SIGNAL)) {
    return {
      kind: 'waiting',
      says: `Its handler sleeps until ${until}.`,
      command: act('cancel', job),
    }
  }
  const name = reason.slice(SIGNAL.length)
  const last = until === undefined ? 'without a time-out' : `until ${until}`
  const says = `Its handler waits for the signal "${name}", ${last}.`
  return { kind: 'waiting', says, command: `pawl signal send ${job.id} ${word(name)} …` }
}

/** What the reason of a job that waits for a signal begins with. */
const SIGNAL = reasonOf({ for: 'signal', name: '' })

/** A job that waits for others is released by what releases the end of the chain. */
function explainChain(job: Job, chain: NonNullable<Circumstances['chain']>): Explanation {
  const { end, jobs } = chain
  const kind = job.blockedReason === null ? 'waiting' : 'parked'
  return {
    kind,
    says: sayChain(job, chain, end.says),
    ...(end.command !== undefined && { command: end.command }),
    waitsFor: jobs.map(({ id }) => id),
  }
}

/** A job of a singleton waits until the job before it has ended. */
function singleton(job: Job, { job: before, key }: Waiting): Explanation {
  const why = `${job.type} has one job of the key "${key}" at a time`
  const says = `It waits until job ${before} has ended: ${why}.`
  return { kind: 'waiting', says, command: `pawl job cancel ${before} --reason "…"` }
}

function waiting(circumstances: Circumstances): Explanation {
  const { job, now } = circumstances
  if (isDue(job, now)) {
    const unserved = findUnserved(circumstances)
    const since = `It is due since ${moment(job.runAt ?? now, now)}`
    if (unserved !== undefined) return { ...unserved, says: `${since}, but ${unserved.says}` }
    return { kind: 'waiting', says: `${since}, and is made ready when a worker next claims.` }
  }
  const until = job.runAt === null ? 'its time is set' : moment(job.runAt, now)
  if (job.reason === 'snoozed') {
    const says = `Its handler snoozed it until ${until}; that is no failure.`
    return { kind: 'waiting', says, command: act('retry', job) }
  }
  const error = errorText(circumstances)
  const after = error === undefined ? '' : `, after ${failures(job)}: ${error}`
  const says = `It is not due until ${until}${after}.`
  return { kind: 'waiting', says, command: act('retry', job) }
}

/** A blocked job whose limit has room is as good as ready. */
function blocked({ obstacle, now }: Circumstances): Explanation | undefined {
  if (obstacle === undefined) return undefined
  const isFull = obstacle.ahead !== undefined && !hasRoom(obstacle.gate, now)
  if (obstacle.behind === undefined && !isFull) return undefined
  return explainObstacle(obstacle, now)
}

function ready(circumstances: Circumstances): Explanation {
  const { job, queue, workers, now } = circumstances
  const bound = boundOf(circumstances)
  if (queue?.pausedAt !== undefined) {
    const by = queue.pausedBy === undefined ? '' : ` by ${queue.pausedBy}`
    const since = moment(queue.pausedAt, now)
    const why = queue.pauseReason === undefined ? '' : ` (${queue.pauseReason})`
    const says = `Its queue ${queue.name} is paused${by} since ${since}${why}${bound}.`
    const command = `pawl queue resume --reason … ${word(queue.name)}`
    return { kind: 'paused', says, command }
  }
  const unserved = findUnserved(circumstances)
  if (unserved !== undefined) {
    return { ...unserved, says: `It is ready, but ${unserved.says.slice(0, -1)}${bound}.` }
  }
  if (circumstances.obstacle !== undefined) return explainObstacle(circumstances.obstacle, now)
  const able = workers.filter((worker) => takes(worker, job))
  const taken = able.reduce((sum, { running }) => sum + running, 0)
  const slots = able.reduce((sum, { concurrency }) => sum + concurrency, 0)
  const stuck = able.reduce((sum, worker) => sum + worker.stuck, 0)
  if (able.every(({ running, concurrency }) => running >= concurrency)) {
    const ignoring = stuck === 0 ? '' : `, ${stuck} of them by handlers that ignore their signal`
    const all = `all ${slots} slots of ${counted(able.length, 'worker')} for it are occupied`
    const says = `It is ready, but ${all}${ignoring}${bound}.`
    return { kind: 'busy', says, command: 'pawl work --jobs ./jobs.ts --concurrency 20' }
  }
  const others = Math.max(0, (queue?.lanes.ready ?? 1) - 1)
  const among = others === 0 ? '' : ` among ${counted(others, 'other')} of its queue`
  const free = `${slots - taken} of ${slots} slots are free for it`
  const says = `It is ready${among}, and ${free}${bound}.`
  return { kind: 'ready', says }
}

/** Why no live worker claims a job, as half a sentence; undefined if one does. */
function findUnserved({ job, workers }: Circumstances): Explanation | undefined {
  const alive = workers.filter(isWorking)
  const there = alive.filter(({ queues }) => queues?.includes(job.queue) ?? true)
  const command = `pawl work --jobs ./jobs.ts`
  const unserved = (says: string, more = ''): Explanation => ({
    kind: 'no-worker',
    says,
    command: `${command}${more}`,
  })
  if (alive.length === 0) return unserved('no worker is alive.')
  if (there.length === 0) {
    const all = counted(alive.length, 'live worker')
    const says = `none of ${all} claims from its queue ${job.queue}.`
    return unserved(says, ` --queue=${quoted(job.queue)}`)
  }
  if (there.some((worker) => knows(worker, job.type))) return undefined
  return unserved(
    `none of ${counted(there.length, 'worker')} of its queue knows the type ${job.type}.`,
  )
}

/** Where a ready job is in the order of claims, and when the queue's `maxWait` ends it. */
function boundOf({ job, queue, now }: Circumstances): string {
  const { aheadMs } = job
  const order =
    aheadMs === 0 ? '' : `; it is ordered as if it had been due ${span(aheadMs)} earlier`
  if (queue?.maxWaitMs === undefined || job.runAt === null) return order
  const end = relative(job.runAt + queue.maxWaitMs, now)
  return `${order}; ready jobs of its queue end after ${span(queue.maxWaitMs)}, this one ${end}`
}

function takes(worker: WorkerInfo, { queue, type }: Job): boolean {
  return isWorking(worker) && (worker.queues?.includes(queue) ?? true) && knows(worker, type)
}

/** Whether a worker is alive and still claims jobs. */
function isWorking({ live, state }: WorkerInfo): boolean {
  return live && state !== 'Draining' && state !== 'Stopped'
}

function knows({ types }: WorkerInfo, type: string): boolean {
  return types?.includes(type) ?? true
}

function because(circumstances: Circumstances): string {
  const { reason, blockedReason } = circumstances.job
  const parts = [blockedReason ?? reason ?? undefined, errorText(circumstances)].filter(
    (part) => part !== undefined,
  )
  return parts.length === 0 ? '' : ` (${parts.join(': ')})`
}

/** The last error with its code and its causes. */
function errorText({ job: { error }, thrown }: Circumstances): string | undefined {
  return error === null ? undefined : chainOf({ ...error, ...(thrown && { thrown }) })
}

function failures({ failures, crashes }: Job): string {
  return crashes > 0 && failures === 0
    ? counted(crashes, 'crash', 'crashes')
    : counted(failures, 'failure')
}

function times(tries: number): string {
  return counted(tries, 'try', 'tries')
}

function act(verb: string, { id }: Job): string {
  return `pawl job ${verb} ${id} --reason …`
}
