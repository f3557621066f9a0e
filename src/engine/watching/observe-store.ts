/**
 * Wraps a store so that its answers become events: jobs that were enqueued, moved or migrated,
 * refused commands, commands without effect, expired leases and changed queues. Calls and answers
 * are passed on unchanged, except that a filter by a state that no lifecycle has is refused.
 */
import { InvalidTransition, type PawlError } from '../../core/errors.ts'
import { type Fact, hopsOf } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { CLIENT } from '../../stores/asker.ts'
import type { QueueRecord } from '../../stores/queue-records.ts'
import type {
  Answer,
  Asker,
  CommitAnswer,
  Enqueued,
  Held,
  OnMoved,
  Recovered,
  Store,
} from '../../stores/store.ts'
import { wrapStore } from '../../stores/wrap-store.ts'
import { checkStates } from '../known-states.ts'
import type { PawlEvent } from './events.ts'

export interface Watch {
  /** Null if the program itself calls the store. */
  readonly worker: string | null
  readonly observe: (event: PawlEvent) => void
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
      noteCreatedAll(watch, results, options?.asker)
      return results
    },
    async claim(request) {
      const claimed = await store.claim(request)
      noteClaimed(watch, claimed)
      return claimed
    },
    async tell(ids, command, asker, seqs) {
      const answers = await store.tell(ids, command, asker, seqs)
      noteAll(watch, answers, (i) => ({ jobId: ids[i] as string, command: command.kind }))
      return answers
    },
    async cancel(ids, asker, seqs) {
      const answers = await store.cancel(ids, asker, seqs)
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
    async commit(held, work, usage) {
      const answer = await store.commit(held, work, usage)
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
    async migrate(request, asker) {
      const page = await store.migrate(request, asker)
      for (const { job, facts } of request.dryRun ? [] : page.items) {
        if (job !== undefined) noteMigrated(watch, job, facts)
      }
      return page
    },
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
  const verbs = { ...observed, ...observeQueues(store, watch), ...checkFilters(store, watch) }
  return wrapStore(store, verbs)
}

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
      return store.audit(filter, options)
    },
  }
}

function observeQueues(store: Store, watch: Watch): Partial<Store> {
  const note = (record: QueueRecord | undefined) => {
    if (record !== undefined) watch.observe({ type: 'queue', worker: watch.worker, record })
    return record
  }
  return {
    pauseQueue: async (queue, asker) => note(await store.pauseQueue(queue, asker)),
    resumeQueue: async (queue, asker) => note(await store.resumeQueue(queue, asker)),
    limitQueue: async (...asked) => note(await store.limitQueue(...asked)),
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

function noteCreatedAll(watch: Watch, results: readonly Enqueued[], asker = CLIENT): void {
  for (const result of results) {
    if (result.kind === 'created') noteCreated(watch, result.job, asker)
  }
}

/** Emits the edges from the initial state of the lifecycle to the state after the enqueue. */
function noteCreated(watch: Watch, job: Job, { actor, operator }: Asker): void {
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
  })
}
