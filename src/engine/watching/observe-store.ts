/**
 * Wraps a store so that its answers become events: jobs that were enqueued, moved or migrated,
 * refused commands, commands without effect, expired leases, ticks of schedules, and changes of
 * queues, limits and schedules. Calls and answers are passed on unchanged, except that a filter by
 * a state that no lifecycle has is refused.
 */
import { InvalidTransition, type PawlError } from '../../core/errors.ts'
import { type Fact, hopsOf } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { withTrace } from '../../core/trace.ts'
import { CLIENT } from '../../stores/contract/requester.ts'
import type { Firing } from '../../stores/contract/schedules.ts'
import type {
  Answer,
  CommitAnswer,
  Enqueued,
  EnqueueItem,
  EnqueueOptions,
  Held,
  OnMoved,
  Recovered,
  Requester,
  Store,
  TailEntry,
} from '../../stores/contract/store.ts'
import type { WaitAnswer, WaitTables } from '../../stores/contract/waits.ts'
import { RateLimited } from '../../stores/errors.ts'
import type { QueueRecord } from '../../stores/queue-records.ts'
import { wrapStore } from '../../stores/wrap-store.ts'
import { checkStates } from '../known-states.ts'
import type { PawlEvent } from './events.ts'
import { observeFlows } from './observe-flows.ts'
import { observeLimits } from './observe-limits.ts'
import { observeSchedules } from './observe-schedules.ts'

export interface Watch {
  /** Null if the program itself calls the store. */
  readonly worker: string | null
  readonly observe: (event: PawlEvent) => void
  /** Whether the events of each job are received: `enqueued` and `moved`. If absent, they are. */
  readonly isHeard?: boolean
  /** The lifecycles of the jobs; used to derive the states that a job passed through. */
  readonly lifecycles: readonly Lifecycle[]
}

/** The command of an answer, and the job as the caller knew it. */
interface Asked {
  readonly jobId: string
  readonly command: string
  readonly job?: Job
}

/** Returns the store; each answer is also emitted as an event. */
export function observeStore(store: Store, watch: Watch): Store {
  const observed: Partial<Store> = {
    async enqueue(items, options) {
      const results = await store.enqueue(items, options)
      noteEnqueued(watch, items, results, options)
      return results
    },
    async claim(request) {
      const claimed = await store.claim(request)
      noteClaimed(watch, claimed)
      return claimed
    },
    async applyCommand(ids, command, requester, seqs) {
      const answers = await store.applyCommand(ids, command, requester, seqs)
      noteAll(watch, answers, (i) => ({ jobId: ids[i] as string, command: command.kind }))
      return answers
    },
    async cancel(ids, requester, seqs) {
      const answers = await store.cancel(ids, requester, seqs)
      noteAll(watch, answers, (i) => ({ jobId: ids[i] as string, command: 'cancel' }))
      return answers
    },
    async settle(settlements, next) {
      const settled = await store.settle(settlements, next)
      noteClaimed(watch, settled.claimed)
      noteAll(watch, settled.answers, (i) => {
        const { held, command } = settlements[i] as (typeof settlements)[0]
        return { jobId: held.job.id, command: command.kind, job: held.job }
      })
      return settled
    },
    async commit(held, work, closing) {
      const answer = await store.commit(held, work, closing)
      noteAll(watch, [answer], () => ({ jobId: held.job.id, command: 'commit', job: held.job }))
      return answer
    },
    promote(limit, onMoved) {
      return store.promote(limit, andNote(watch, onMoved))
    },
    settleEffects(reports, onMoved) {
      return store.settleEffects(reports, andNote(watch, onMoved))
    },
    async recover(limit) {
      const answers = await store.recover(limit)
      for (const answer of answers) noteRecovered(watch, answer)
      return answers
    },
    async migrate(request, requester) {
      const page = await store.migrate(request, requester)
      for (const { job, facts } of request.dryRun ? [] : page.items) {
        if (job !== undefined) noteMigrated(watch, job, facts)
      }
      return page
    },
  }
  const schedules = observeSchedules(store.schedules, (...noted) => noteFiring(watch, ...noted))
  const verbs = {
    ...observed,
    ...observeMaintenance(store, watch),
    schedules,
    waits: observeWaits(store, watch),
    flows: observeFlows(store.flows, watch, noteFlow),
    limits: observeLimits(store.limits, watch),
    ...observeQueues(store, watch),
    ...checkFilters(store, watch),
    ...traceFacts(store),
  }
  return wrapStore(store, verbs)
}

/** What workers do for all jobs. */
function observeMaintenance(store: Store, watch: Watch): Partial<Store> {
  return {
    async isolate() {
      const isolated = await store.isolate()
      for (const { jobId, lane, why } of isolated) {
        watch.observe({ type: 'isolated', worker: watch.worker, jobId, lane, why })
      }
      return isolated
    },
    async shed(limit) {
      const answers = await store.shed(limit)
      noteMovedAll(watch, answers)
      return answers
    },
  }
}

/** Signals, and what waits do to their jobs. */
function observeWaits({ waits }: Store, watch: Watch): WaitTables {
  return {
    async signal(ids, signal, requester, tx) {
      const answers = await waits.signal(ids, signal, requester, tx)
      noteAll(watch, answers, (i) => ({ jobId: ids[i] as string, command: 'signal' }))
      return answers
    },
    async wait(request) {
      const answer = await waits.wait(request)
      const noted = answer.kind === 'rejected' ? answer : movedBy(answer)
      if (noted !== undefined) {
        noteAll(watch, [noted], () => ({ jobId: request.id, command: 'wait' }))
      }
      return answer
    },
    history: (id) => waits.history(id),
  }
}

function movedBy(answer: Exclude<WaitAnswer, { kind: 'rejected' }>): Answer | undefined {
  const { fact, job } = answer
  return fact && { kind: 'done', job, fact }
}

const noteFlow = { noteCreated, noteMovedAll, noteAll }

/** The verbs with filters by state. */
function checkFilters(store: Store, { lifecycles }: Watch): Partial<Store> {
  return {
    async list(filter, page) {
      await checkStates(store, lifecycles, { state: filter?.state })
      return store.list(filter, page)
    },
    async audit(filter, options) {
      const { fromState, toState } = filter ?? {}
      await checkStates(store, lifecycles, { fromState, toState })
      const page = await store.audit(filter, options)
      return { ...page, items: page.items.map(inTrace) }
    },
  }
}

/** Every fact that leaves the engine names a span: the one it was written in, or its own. */
function traceFacts(store: Store): Partial<Store> {
  return {
    facts: async (id) => (await store.facts(id)).map(withTrace),
    async tail(after, limit) {
      const entries = await store.tail(after, limit)
      return entries.map((entry) => ('fact' in entry ? inTrace(entry) : entry))
    },
  }
}

function inTrace<Entry extends TailEntry>(entry: Entry): Entry {
  return { ...entry, fact: withTrace(entry.fact) }
}

/** Changes of queues and limits. */
function observeQueues(store: Store, watch: Watch): Partial<Store> {
  const note = (record: QueueRecord | undefined) => {
    if (record !== undefined) watch.observe({ type: 'queue', worker: watch.worker, record })
    return record
  }
  return {
    pauseQueue: async (queue, requester) => note(await store.pauseQueue(queue, requester)),
    resumeQueue: async (queue, requester) => note(await store.resumeQueue(queue, requester)),
    limitQueue: async (...asked) => note(await store.limitQueue(...asked)),
    limits: observeLimits(store.limits, watch),
  }
}

/** Emits the ticks and changes of schedules, and what became of jobs by them. */
function noteFiring(watch: Watch, firing: Firing, requester: Requester): void {
  const { worker } = watch
  for (const job of firing.jobs) noteCreated(watch, job, requester)
  noteMovedAll(watch, firing.cancelled)
  for (const record of firing.records) watch.observe({ type: 'schedule', worker, record })
  for (const { schedule, error } of firing.failed) {
    watch.observe({ type: 'schedule-failed', worker, schedule, error })
  }
}

/** Emits the moves of a verb, then calls the caller's function. */
function andNote(watch: Watch, onMoved: OnMoved | undefined): OnMoved {
  return (answers) => {
    noteMovedAll(watch, answers)
    onMoved?.(answers)
  }
}

function noteMovedAll(watch: Watch, answers: readonly Answer[]): void {
  for (const answer of answers) {
    if (answer.kind !== 'done') continue
    noteMigrated(watch, answer.job, answer.migrated)
    noteMoved(watch, answer, answer.since)
  }
}

function noteAll(
  watch: Watch,
  answers: readonly (Answer | CommitAnswer)[],
  askedOf: (index: number) => Asked,
): void {
  for (const [i, answer] of answers.entries()) {
    if (answer.kind === 'rejected') noteRefused(watch, askedOf(i), answer.error)
    else if (answer.kind === 'done') noteDone(watch, answer, askedOf(i).job)
    else {
      const { worker } = watch
      watch.observe({ type: answer.kind, worker, command: askedOf(i).command, job: answer.job })
    }
  }
}

/** `held` is the job as the worker held it, if the worker gave the command. */
function noteDone(
  watch: Watch,
  answer: {
    readonly job: Job
    readonly fact?: Fact
    readonly since?: number
    readonly migrated?: readonly Fact[]
  },
  held: Job | undefined,
): void {
  const { job, fact } = answer
  noteMigrated(watch, job, answer.migrated)
  if (fact !== undefined) noteMoved(watch, { job, fact }, answer.since ?? held?.startedAt)
  if (watch.isHeard === false) return
  if (fact !== undefined || held === undefined || held.state === job.state) return
  const via = lifecycleOf(watch, job)?.paths.get(held.state)?.get('succeed') ?? [job.state]
  const stayedMs = job.updatedAt - (held.startedAt ?? job.updatedAt)
  emitMoved(watch, job, [held.state, ...via], { trigger: 'commit', actor: 'worker' }, stayedMs)
}

/** `since` is when the job entered the state that it left, if that is known. */
function noteMoved(
  watch: Watch,
  { job, fact }: { readonly job: Job; readonly fact: Fact },
  since?: number | null,
): void {
  if (watch.isHeard === false) return
  const hops = hopsOf(fact)
  const [first] = hops
  if (first === undefined) return
  const stayedMs = since == null ? undefined : fact.at - since
  emitMoved(watch, job, [first.from, ...hops.map(({ to }) => to)], fact, stayedMs)
}

/** Each lifecycle has one ready state and one held state; a claim moves a job between them. */
function noteClaimed(watch: Watch, claimed: readonly Held[]): void {
  for (const { job, migrated } of claimed) {
    noteMigrated(watch, job, migrated)
    if (watch.isHeard === false) continue
    const lifecycle = lifecycleOf(watch, job)
    if (lifecycle === undefined) continue
    // The row does not keep the time of its last change. A job can be claimed from its due time on.
    const since = Math.max(job.createdAt, job.runAt ?? 0)
    const stayedMs = (job.startedAt ?? since) - since
    emitMoved(watch, job, [lifecycle.ready, lifecycle.held], CLAIMED, stayedMs)
  }
}

/** Emits one event per version that the job was migrated to. */
function noteMigrated(watch: Watch, job: Job, facts: readonly Fact[] = []): void {
  for (const { migrated, from, to } of facts) {
    if (migrated === undefined || from === null) continue
    const { worker } = watch
    watch.observe({ type: 'migrated', worker, job, ...migrated, path: [from, to] })
  }
}

const CLAIMED = { trigger: 'claim', actor: 'worker' } as const

function noteEnqueued(
  watch: Watch,
  items: readonly EnqueueItem[],
  results: readonly Enqueued[],
  options: EnqueueOptions | undefined,
): void {
  noteCreatedAll(watch, results, options)
  noteAdmissions(watch, items, results)
}

/** In a transaction, a rejection usually takes the other jobs back, so they are not noted. */
function noteCreatedAll(
  watch: Watch,
  results: readonly Enqueued[],
  { tx, requester = CLIENT }: EnqueueOptions = {},
): void {
  if (tx !== undefined && results.some(({ kind }) => kind === 'rejected')) return
  for (const result of results) {
    if (result.kind === 'created') noteCreated(watch, result.job, requester)
  }
}

/** Emits what became of jobs that are subject to admission. */
function noteAdmissions(
  { worker, observe }: Watch,
  items: readonly EnqueueItem[],
  results: readonly Enqueued[],
): void {
  for (const [i, { admission, command }] of items.entries()) {
    const result = admission === undefined ? undefined : results[i]
    if (result === undefined || result.kind === 'removed') continue
    const isLimited = result.kind === 'rejected' && result.error instanceof RateLimited
    const kind = result.kind === 'rejected' ? 'limited' : result.kind
    if (result.kind === 'rejected' && !isLimited) continue
    observe({ type: 'admission', worker, jobType: command.type, result: kind })
  }
}

/** Emits the edges from the initial state of the lifecycle to the state after the enqueue. */
function noteCreated(watch: Watch, job: Job, { actor, operator }: Requester): void {
  if (watch.isHeard === false) return
  watch.observe({ type: 'enqueued', job })
  const lifecycle = lifecycleOf(watch, job)
  const initial = lifecycle?.machine.initial
  if (lifecycle === undefined || initial === undefined || initial === job.state) return
  const paths = ['submit', 'schedule'] as const
  const path = paths.map((on) => lifecycle.paths.get(initial)?.get(on)).find(isTo(job.state))
  const by = { trigger: 'create', actor, ...(operator !== undefined && { operator }) } as const
  emitMoved(watch, job, [initial, ...(path ?? [job.state])], by)
}

function isTo(state: string): (path: readonly string[] | undefined) => boolean {
  return (path) => path?.[path.length - 1] === state
}

function emitMoved(
  watch: Watch,
  job: Job,
  path: readonly string[],
  { trigger, actor, operator }: Pick<Fact, 'trigger' | 'actor' | 'operator'>,
  stayedMs?: number,
): void {
  const { worker } = watch
  watch.observe({
    type: 'moved',
    worker,
    job,
    path,
    trigger,
    actor,
    ...(operator !== undefined && { operator }),
    ...(stayedMs !== undefined && { stayedMs: Math.max(0, stayedMs) }),
  })
}

function lifecycleOf({ lifecycles }: Watch, job: Job): Lifecycle | undefined {
  return lifecycles.find(
    ({ name, version }) => name === job.lifecycle && version === job.lifecycleVersion,
  )
}

function noteRefused(watch: Watch, { jobId, command, job }: Asked, error: PawlError): void {
  const isInvalid = error instanceof InvalidTransition
  watch.observe({
    type: 'refused',
    worker: watch.worker,
    jobId,
    command,
    machine: isInvalid ? String(error.details.machine) : (job?.lifecycle ?? null),
    from: isInvalid ? error.from : (job?.state ?? null),
    to: isInvalid ? error.to : null,
    error,
  })
}

function noteRecovered(watch: Watch, answer: Recovered): void {
  if (answer.kind === 'rejected') {
    const { jobId } = answer.error.details
    noteRefused(watch, { jobId: String(jobId), command: 'expire' }, answer.error)
  }
  if (answer.kind !== 'done') return
  const { job, fact, migrated, holder = job.execution?.worker } = answer
  noteMigrated(watch, job, migrated)
  noteMoved(watch, answer, job.startedAt)
  const { attempt, leaseUntil } = fact.execution ?? { attempt: job.attempt }
  const endedAt = leaseUntil ?? job.execution?.leaseUntil ?? fact.at
  watch.observe({
    type: 'expired',
    worker: watch.worker,
    job,
    attempt,
    holder: holder ?? null,
    isStalled: job.stalled,
    expiredForMs: Math.max(0, fact.at - endedAt),
    retryAt: fact.trigger === 'expire' || fact.trigger === 'release' ? job.runAt : null,
  })
}
