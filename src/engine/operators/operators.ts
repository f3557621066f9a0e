/**
 * What a person may do to jobs, always under a name and with a reason; both stand in the ledger of
 * every job that was changed. Each verb works on one job, on several or on a filter, a bounded
 * number in one transaction, and answers with what became of them. With `dryRun` the same rules
 * decide on the jobs as they are, and nothing is written.
 */
import { createHash } from 'node:crypto'
import { abortSignal, flag, NOTE_MAX, name as nameRule, text } from '../../core/checks.ts'
import {
  CommandInvalid,
  JobExists,
  JobNotFound,
  LeaseLive,
  LifecycleUnknown,
  NotDue,
  type PawlError,
  Unsupported,
} from '../../core/errors.ts'
import { checkFields, type FieldChecks } from '../../core/fields.ts'
import { findFault } from '../../core/job/checks.ts'
import type { Command, Context } from '../../core/job/commands.ts'
import { decide } from '../../core/job/decide.ts'
import { isCommitted, type Job } from '../../core/job/job.ts'
import { type Lifecycle, pathOf } from '../../core/lifecycles/lifecycle.ts'
import type { Environment } from '../../environment/system.ts'
import { contextOf } from '../../stores/asker.ts'
import type { QueueRecord } from '../../stores/queue-records.ts'
import type { Answer, Asker, EnqueueItem, Store } from '../../stores/store.ts'
import { type JobAsDecided, type Versions, versionsOf } from '../../stores/versions.ts'
import { type EffectSelection, type EffectsReport, retryEffects } from '../effects/retry-effects.ts'
import { JobChanged, JobNotEnded, JobNotStalled, JobRunning } from '../errors.ts'
import type { QueueOptions } from '../options.ts'
import { limitsOf } from '../options.ts'
import type { PawlEvent } from '../watching/events.ts'
import { type MigrationReport, type MigrationSelection, migrateJobs } from './migrate.ts'
import { type OperatorReport, type Outcome, Tally } from './report.ts'
import { type Batch, batchesOf, checkSelection, type Selection } from './selection.ts'

/** Who acts, and why. */
export interface OperatorIdentity {
  readonly name: string
  readonly reason: string
}

/** How a verb is carried out. */
export interface OperatorOptions {
  /** Say what would become of the jobs, and write nothing. */
  readonly dryRun?: boolean
  /** Stops before the next batch. */
  readonly signal?: AbortSignal
}

const OPTIONS: FieldChecks<OperatorOptions> = { dryRun: flag, signal: abortSignal }

const IDENTITY: FieldChecks<OperatorIdentity> = {
  name: nameRule,
  reason: (value) => text(value, NOTE_MAX),
}

/** What an operator works with. */
interface OperatorParts {
  /** One whose answers are observed. */
  readonly store: Store
  readonly observe: (event: PawlEvent) => void
  readonly environment: Environment
  readonly lifecycles: readonly Lifecycle[]
}

/** What is to be done with one job. */
type Step =
  | { readonly kind: 'tell'; readonly command: Command }
  | { readonly kind: 'cancel' }
  | { readonly kind: 'copy'; readonly id: string }
  | { readonly kind: 'refuse'; readonly error: PawlError }

type Plan = (job: Job, lifecycle: Lifecycle) => Step

/** A person who acts. */
export class Operator {
  readonly #parts: OperatorParts
  readonly #asker: Asker
  #versions: Versions | undefined

  /** Made by `pawl.operator`. @internal */
  constructor(parts: OperatorParts, identity: OperatorIdentity) {
    checkFields(identity, IDENTITY, { what: 'operator' })
    const { name, reason } = identity
    if (name === undefined) throw new CommandInvalid('name', 'must not be empty')
    if (reason === undefined) throw new CommandInvalid('reason', 'must not be empty')
    this.#parts = parts
    this.#asker = { actor: 'operator', operator: name, note: reason }
  }

  /** Ends jobs; where one runs, its handler is asked to stop. */
  cancel(selection: Selection, options?: OperatorOptions): Promise<OperatorReport> {
    return this.#each('cancel', selection, options, planCancel)
  }

  /**
   * Runs jobs again: now, where they wait for their time; redriven, where they are parked or have
   * failed. Where a lifecycle lets nothing leave its last state, a copy of the job is enqueued, one
   * for each job however often it is retried.
   */
  retry(selection: Selection, options?: OperatorOptions): Promise<OperatorReport> {
    return this.#each('retry', selection, options, planRetry)
  }

  /** Takes jobs out of the flow until they are redriven or cancelled. */
  quarantine(selection: Selection, options?: OperatorOptions): Promise<OperatorReport> {
    return this.#tell(selection, options, { kind: 'park' })
  }

  /** Lets parked and failed jobs run again, with fresh budgets. */
  redrive(selection: Selection, options?: OperatorOptions): Promise<OperatorReport> {
    return this.#tell(selection, options, { kind: 'redrive' })
  }

  /** Gives parked jobs up for good. */
  discard(selection: Selection, options?: OperatorOptions): Promise<OperatorReport> {
    return this.#tell(selection, options, { kind: 'discard' })
  }

  /** Puts jobs into a state that no edge leads to; never into a held or succeeded one. */
  force(selection: Selection, to: string, options?: OperatorOptions): Promise<OperatorReport> {
    return this.#tell(selection, options, { kind: 'force', to })
  }

  /** Moves the time at which jobs are due; a moment that has passed means now. */
  reschedule(
    selection: Selection,
    runAt: Date,
    options?: OperatorOptions,
  ): Promise<OperatorReport> {
    return this.#tell(selection, options, { kind: 'reschedule', runAt: runAt.getTime() })
  }

  /** Changes the priority of jobs; smaller numbers come first. */
  prioritise(
    selection: Selection,
    priority: number,
    options?: OperatorOptions,
  ): Promise<OperatorReport> {
    return this.#tell(selection, options, { kind: 'prioritise', priority })
  }

  /** Lets jobs be recovered whose worker went silent, and which wait for somebody to say so. */
  approve(selection: Selection, options?: OperatorOptions): Promise<OperatorReport> {
    return this.#each('approve', selection, options, planApproval)
  }

  /** Lets jobs run that were enqueued with `hold`. */
  submit(selection: Selection, options?: OperatorOptions): Promise<OperatorReport> {
    return this.#tell(selection, options, { kind: 'submit' })
  }

  /** Enqueues copies of jobs that have ended: the same input, a new job, a new one each time. */
  copy(selection: Selection, options?: OperatorOptions): Promise<OperatorReport> {
    const { ids } = this.#parts.environment
    return this.#each('copy', selection, options, (job) =>
      job.outcome === null
        ? { kind: 'refuse', error: new JobNotEnded(job.id, 'copy') }
        : { kind: 'copy', id: ids.next() },
    )
  }

  /** Delivers effects again that are parked or wait for their next try, with fresh tries. */
  retryEffects(selection: EffectSelection, options?: OperatorOptions): Promise<EffectsReport> {
    return retryEffects(this.#parts.store, this.#asker, selection, options)
  }

  /**
   * Migrates live jobs of earlier versions of a lifecycle to a version that the store knows. Jobs
   * that run are left to their holders.
   */
  migrate(selection: MigrationSelection, options?: OperatorOptions): Promise<MigrationReport> {
    return migrateJobs(this.#parts.store, this.#asker, selection, options)
  }

  /**
   * Stops claims from a queue; what runs, runs on. Returns the record of the change, or `undefined`
   * if the queue is paused already.
   */
  pauseQueue(queue: string): Promise<QueueRecord | undefined> {
    return this.#parts.store.pauseQueue(queue, this.#asker)
  }

  /** Lets a queue be claimed from again; `undefined` if it is not paused. */
  resumeQueue(queue: string): Promise<QueueRecord | undefined> {
    return this.#parts.store.resumeQueue(queue, this.#asker)
  }

  /** Bounds a queue for every process; `null` lifts a bound. `undefined` if nothing changes. */
  async limitQueue(queue: string, limits: QueueOptions): Promise<QueueRecord | undefined> {
    return this.#parts.store.limitQueue(queue, limitsOf(limits), this.#asker)
  }

  async #tell(
    selection: Selection,
    options: OperatorOptions | undefined,
    command: Command,
  ): Promise<OperatorReport> {
    const fault = findFault(command, this.#context())
    if (fault !== undefined) throw fault
    return this.#each(command.kind, selection, options, () => ({ kind: 'tell', command }))
  }

  async #each(
    verb: string,
    selection: Selection,
    options: OperatorOptions = {},
    plan: Plan,
  ): Promise<OperatorReport> {
    checkFields(options, OPTIONS, { what: 'options' })
    checkSelection(selection)
    const { dryRun = false, signal } = options
    const isOne = typeof selection === 'string'
    const tally = new Tally(dryRun, dryRun && !isOne && !('ids' in selection))
    this.#versions = await versionsOf(this.#parts.store, this.#parts.lifecycles)
    for await (const batch of batchesOf(this.#parts.store, selection)) {
      if (signal?.aborted) {
        tally.more = true
        break
      }
      tally.more ||= batch.more
      const steps = this.#stepsOf(batch, plan)
      const outcomes = dryRun
        ? await this.#foresee(steps)
        : await this.#carryOut(verb, steps, batch.isGuarded)
      for (const [id, outcome] of outcomes) tally.add(id, outcome)
      const [, only] = outcomes[0] ?? []
      if (isOne && !dryRun && only?.kind === 'refused') throw only.error
    }
    return tally.report()
  }

  #stepsOf({ jobs, missing, moved = [] }: Batch, plan: Plan): [Job | string, Step][] {
    const planned = jobs.map((job): [Job, Step] => {
      const decided = this.#decided(job)
      if ('lifecycle' in decided) return [job, plan(decided.job, decided.lifecycle)]
      // Its holder is asked, whatever version it follows.
      const isAsked = decided instanceof LeaseLive && plan === planCancel
      return [job, isAsked ? { kind: 'cancel' } : { kind: 'refuse', error: decided }]
    })
    const lost = [
      ...missing.map((id) => [id, new JobNotFound(id)] as const),
      ...moved.map((id) => [id, new JobChanged(id)] as const),
    ].map(([id, error]): [string, Step] => [id, { kind: 'refuse', error }])
    return [...planned, ...lost]
  }

  /** What the rules say of the jobs as they were read. */
  async #foresee(steps: readonly [Job | string, Step][]): Promise<[string, Outcome][]> {
    const outcomes: [string, Outcome][] = []
    for (const [job, step] of steps) {
      const foreseen = typeof job === 'string' ? refusedBy(step) : await this.#foreseeOne(job, step)
      outcomes.push([idOf(job), foreseen])
    }
    return outcomes
  }

  async #foreseeOne(job: Job, step: Step): Promise<Outcome> {
    const { store } = this.#parts
    if (step.kind === 'refuse') return refusedBy(step)
    if (step.kind === 'copy') {
      const exists = (await store.get(step.id)) !== undefined
      return exists ? { kind: 'same' } : { kind: 'done' }
    }
    const isHeld = job.execution !== null && !isCommitted(job)
    if (step.kind === 'cancel' && isHeld) return { kind: 'asked' }
    const command: Command = step.kind === 'cancel' ? { kind: 'cancel' } : step.command
    const decided = this.#decided(job)
    if (!('lifecycle' in decided)) return { kind: 'refused', error: decided }
    const decision = decide(decided.lifecycle, decided.job, command, this.#context())
    if (decision.kind === 'rejected') return { kind: 'refused', error: explain(decision.error) }
    return { kind: decision.kind === 'same' ? 'same' : 'done' }
  }

  /** Steps that are alike are one transaction. */
  async #carryOut(
    verb: string,
    steps: readonly [Job | string, Step][],
    isGuarded: boolean,
  ): Promise<[string, Outcome][]> {
    const outcomes: [string, Outcome][] = []
    const groups = new Map<string, { step: Step; jobs: (Job | string)[] }>()
    for (const [job, step] of steps) {
      const likeness = step.kind === 'tell' ? JSON.stringify(step.command) : step.kind
      const unique = step.kind === 'refuse' || step.kind === 'copy' ? `/${groups.size}` : ''
      const group = groups.get(likeness + unique) ?? { step, jobs: [] }
      group.jobs.push(job)
      groups.set(likeness + unique, group)
    }
    for (const { step, jobs } of groups.values()) {
      const ids = jobs.map(idOf)
      const became =
        step.kind === 'refuse'
          ? jobs.map((job) => this.#refuse(verb, job, step.error))
          : await this.#carryOutOne(step, jobs as Job[], isGuarded)
      outcomes.push(...ids.map((id, i): [string, Outcome] => [id, became[i] as Outcome]))
    }
    return outcomes
  }

  async #carryOutOne(
    step: Exclude<Step, { kind: 'refuse' }>,
    jobs: readonly Job[],
    isGuarded: boolean,
  ): Promise<Outcome[]> {
    const { store } = this.#parts
    const ids = jobs.map(({ id }) => id)
    const seqs = isGuarded ? jobs.map(({ seq }) => seq) : undefined
    switch (step.kind) {
      case 'copy':
        return [await this.#enqueueCopy(jobs[0] as Job, step.id)]
      case 'cancel':
        return (await store.cancel(ids, this.#asker, seqs)).map(outcomeOf)
      case 'tell':
        return (await store.tell(ids, step.command, this.#asker, seqs)).map(outcomeOf)
    }
  }

  /** What the store is not asked for, it cannot report: the refusal is reported here. */
  #refuse(command: string, job: Job | string, error: PawlError): Outcome {
    const [machine, from] = typeof job === 'string' ? [null, null] : [job.lifecycle, job.state]
    const refused = { worker: null, jobId: idOf(job), command, machine, from, to: null, error }
    this.#parts.observe({ type: 'refused', ...refused })
    return { kind: 'refused', error }
  }

  async #enqueueCopy(job: Job, copyId: string): Promise<Outcome> {
    const { store } = this.#parts
    const texts = await store.payloads(job.id)
    if (texts === undefined) return { kind: 'refused', error: new JobNotFound(job.id) }
    const item = this.#copyOf(job, copyId, texts.input)
    const [enqueued] = await store.enqueue([item], { asker: this.#asker })
    if (enqueued?.kind !== 'rejected') return { kind: 'done', copyId }
    const { error } = enqueued
    return error instanceof JobExists ? { kind: 'same', copyId } : { kind: 'refused', error }
  }

  /** Its key stays with the first job, and a deadline that has passed would fail it at once. */
  #copyOf(job: Job, jobId: string, input: string): EnqueueItem {
    const { deadlineAt, timeoutMs, limitKey, policy } = job
    const isInTime = deadlineAt !== null && deadlineAt > this.#parts.store.now()
    return {
      lifecycle: this.#versions?.lifecycleFor(job) as Lifecycle,
      input,
      command: {
        jobId,
        type: job.type,
        queue: job.queue,
        priority: job.priority,
        tags: job.tags,
        retryOf: job.id,
        ...(limitKey !== null && { limitKey }),
        ...(timeoutMs !== null && { timeoutMs }),
        ...(isInTime && { deadlineAt }),
        ...(policy !== null && { policy }),
      },
    }
  }

  /** The job by the version of its lifecycle that this process has, migrated if need be. */
  #decided(job: Job): JobAsDecided | PawlError {
    const { lifecycle, lifecycleVersion } = job
    const context = this.#context()
    return (
      this.#versions?.decided(job, context) ?? new LifecycleUnknown(lifecycle, lifecycleVersion)
    )
  }

  #context(): Context {
    const { environment, store } = this.#parts
    return contextOf(environment, this.#asker, store.now())
  }
}

/** Nobody is left to be asked where the holder went silent. */
function planCancel(job: Job): Step {
  return job.stalled ? { kind: 'tell', command: { kind: 'cancel' } } : { kind: 'cancel' }
}

/** Parked and failed jobs are redriven, waiting ones run now, and final ones are copied. */
function planRetry(job: Job, lifecycle: Lifecycle): Step {
  const redrive: Step = { kind: 'tell', command: { kind: 'redrive' } }
  if (isCommitted(job) || pathOf(lifecycle, job.state, 'redrive') !== undefined) return redrive
  if (job.outcome !== null) return { kind: 'copy', id: retryIdOf(job) }
  if (job.blockedReason !== null || lifecycle.roles.get(job.state) === 'parked') return redrive
  if (job.execution !== null) {
    return { kind: 'refuse', error: new JobRunning(job.id, 'retry', job.stalled) }
  }
  if (job.runAt === null) return { kind: 'refuse', error: new NotDue(job.id, null) }
  return { kind: 'tell', command: { kind: 'reschedule', runAt: 0 } }
}

function planApproval(job: Job): Step {
  const { attempt, execution } = job
  if (execution === null || isCommitted(job)) {
    return { kind: 'refuse', error: new JobNotStalled(job.id) }
  }
  const fence = { attempt, claim: execution.claim }
  return { kind: 'tell', command: { kind: 'expire', fence, approved: true } }
}

/**
 * The id of the one copy by which a job is retried. Whoever retries it again finds that copy. It
 * begins with the time at which the job ended, as ids do that are made then.
 */
function retryIdOf(job: Job): string {
  const time = (job.endedAt as number).toString(16).padStart(12, '0')
  const hash = createHash('sha256').update(`pawl retry of ${job.id}`).digest('hex')
  const variant = '89ab'[Number.parseInt(hash[3] as string, 16) % 4]
  const parts = [time.slice(0, 8), time.slice(8), `7${hash.slice(0, 3)}`]
  return [...parts, `${variant}${hash.slice(4, 7)}`, hash.slice(7, 19)].join('-')
}

function idOf(job: Job | string): string {
  return typeof job === 'string' ? job : job.id
}

function refusedBy(step: Step): Outcome {
  return { kind: 'refused', error: (step as Extract<Step, { kind: 'refuse' }>).error }
}

function outcomeOf(answer: Answer): Outcome {
  if (answer.kind !== 'rejected') return { kind: answer.kind }
  return { kind: 'refused', error: explain(answer.error) }
}

/** A lifecycle that has no redrive is retried by copies, which its own refusal cannot know. */
function explain(error: PawlError): PawlError {
  const { command, lifecycle } = error.details
  if (!(error instanceof Unsupported) || command !== 'redrive') return error
  return new Unsupported(String(lifecycle), command, 'Retry the job: that enqueues a copy of it.')
}
