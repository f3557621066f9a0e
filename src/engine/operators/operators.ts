/**
 * Commands of an operator. Each carries a name and a reason, which the ledger of every changed job
 * records. A command applies to one job, to several or to a filter, a bounded number per
 * transaction, and returns a report. With `dryRun` the same rules decide on the jobs as they are,
 * and nothing is written.
 */
import type { JsonBounds } from '../../core/canonical-json.ts'
import { abortSignal, callable, flag, NOTE_MAX, name as nameRule, text } from '../../core/checks.ts'
import {
  CommandInvalid,
  JobExists,
  JobNotFound,
  LeaseLive,
  LifecycleUnknown,
  type PawlError,
} from '../../core/errors.ts'
import { checkFields, type FieldChecks } from '../../core/fields.ts'
import { findFault } from '../../core/job/checks.ts'
import type { Command, Context } from '../../core/job/commands.ts'
import { decide } from '../../core/job/decide.ts'
import { isCommitted, type Job } from '../../core/job/job.ts'
import { type Priority, readPriority } from '../../core/job/priority.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { Environment } from '../../environment/system.ts'
import type { LimitRecord } from '../../stores/contract/limits.ts'
import { contextOf } from '../../stores/contract/requester.ts'
import type { ScheduleRecord } from '../../stores/contract/schedules.ts'
import type { Requester, Store } from '../../stores/contract/store.ts'
import type { QueueRecord } from '../../stores/queue-records.ts'
import { type JobAsDecided, type Versions, versionsOf } from '../../stores/versions.ts'
import type { AnySignal, SentOf } from '../define-signal.ts'
import { type EffectSelection, type EffectsReport, retryEffects } from '../effects/retry-effects.ts'
import { JobChanged, JobNotEnded } from '../errors.ts'
import { signalRequest } from '../job-handle.ts'
import {
  type LimitReference,
  resetLimit,
  type SetLimitOptions,
  setLimit,
} from '../limits/limits.ts'
import type { QueueOptions } from '../options.ts'
import { limitsOf } from '../options.ts'
import type { RetentionPolicy } from '../retention/policy.ts'
import { type RetentionReport, type RunRetentionOptions, runRetention } from '../retention/run.ts'
import type { ScheduleDefinition } from '../schedules/define-schedule.ts'
import {
  type BackfillOptions,
  type BackfillReport,
  type ScheduleInfo,
  Schedules,
} from '../schedules/schedules.ts'
import type { PawlEvent } from '../watching/events.ts'
import { copyOf } from './copy.ts'
import { cancelFlow, type FlowCommand, redriveFlow } from './flows.ts'
import { type MigrationReport, type MigrationSelection, migrateJobs } from './migrate.ts'
import { explain, outcomeOf } from './outcomes.ts'
import { commandOf, planApproval, planCancel, planRejection, planRetry, type Step } from './plan.ts'
import { type OperatorReport, type Outcome, Tally } from './report.ts'
import { type Batch, batchesOf, checkSelection, type Selection } from './selection.ts'
import { bounded, sendStep } from './send.ts'

/** The name and reason that the ledger records for each change. */
export interface OperatorIdentity {
  readonly name: string
  readonly reason: string
}

/** The options of every command. */
export interface OperatorOptions {
  /**
   * Reports what would happen, and writes nothing. For one id, it throws what the command would
   * throw.
   */
  readonly dryRun?: boolean
  /** Stops before the next batch. */
  readonly signal?: AbortSignal
  /** Called after each batch with the number of jobs so far. */
  readonly onProgress?: (jobs: number) => void
}

const OPTIONS: FieldChecks<OperatorOptions> = {
  dryRun: flag,
  signal: abortSignal,
  onProgress: callable,
}

const IDENTITY: FieldChecks<OperatorIdentity> = {
  name: nameRule,
  reason: (value) => text(value, NOTE_MAX),
}

interface OperatorParts {
  /** The wrapped store, whose answers are reported as events. */
  readonly store: Store
  readonly observe: (event: PawlEvent) => void
  readonly environment: Environment
  readonly lifecycles: readonly Lifecycle[]
  readonly bounds: JsonBounds
  readonly policy: RetentionPolicy
}

type Plan = (job: Job, lifecycle: Lifecycle) => Step

/** Changes jobs in the name of a person. */
export class Operator {
  readonly #parts: OperatorParts
  readonly #requester: Requester
  readonly #schedules: Schedules
  #versions: Versions | undefined

  /** Use `pawl.operator`. @internal */
  constructor(parts: OperatorParts, identity: OperatorIdentity) {
    checkFields(identity, IDENTITY, { what: 'operator' })
    const { name, reason } = identity
    if (name === undefined) throw new CommandInvalid('name', 'must not be empty')
    if (reason === undefined) throw new CommandInvalid('reason', 'must not be empty')
    this.#parts = parts
    this.#requester = { actor: 'operator', operator: name, note: reason }
    this.#schedules = new Schedules({ ...parts, requester: this.#requester })
  }

  /** Cancels jobs. If one is running, its handler's signal is aborted. */
  cancel(selection: Selection, options?: OperatorOptions): Promise<OperatorReport> {
    return this.#each('cancel', selection, options, planCancel)
  }

  /**
   * Runs jobs again. Waiting jobs are due now; parked and failed jobs are redriven. If the
   * lifecycle has no edge out of the final state, a copy of the job is enqueued, only one per job
   * no matter how often it is retried.
   */
  retry(selection: Selection, options?: OperatorOptions): Promise<OperatorReport> {
    return this.#each('retry', selection, options, planRetry)
  }

  /** Parks jobs until they are redriven or cancelled. */
  quarantine(selection: Selection, options?: OperatorOptions): Promise<OperatorReport> {
    return this.#apply(selection, options, { kind: 'park' })
  }

  /** Makes parked and failed jobs ready again, with fresh budgets. */
  redrive(selection: Selection, options?: OperatorOptions): Promise<OperatorReport> {
    return this.#apply(selection, options, { kind: 'redrive' })
  }

  /** Ends parked jobs as failed. */
  discard(selection: Selection, options?: OperatorOptions): Promise<OperatorReport> {
    return this.#apply(selection, options, { kind: 'discard' })
  }

  /** Moves jobs to any state except held and succeeded ones, also without an edge. */
  force(selection: Selection, to: string, options?: OperatorOptions): Promise<OperatorReport> {
    return this.#apply(selection, options, { kind: 'force', to })
  }

  /** Changes when jobs are due; a time in the past means now. */
  reschedule(
    selection: Selection,
    runAt: Date,
    options?: OperatorOptions,
  ): Promise<OperatorReport> {
    return this.#apply(selection, options, { kind: 'reschedule', runAt: runAt.getTime() })
  }

  /**
   * Changes the priority of jobs: a number, of which smaller ones are claimed first, or
   * `{ ahead: '2m' }`.
   */
  async prioritise(
    selection: Selection,
    priority: Priority,
    options?: OperatorOptions,
  ): Promise<OperatorReport> {
    return this.#apply(selection, options, { kind: 'prioritise', ...readPriority(priority) })
  }

  /**
   * Approves jobs that wait for an approval (`waitForApproval`), and the recovery of jobs whose
   * lease has expired and whose recovery waits for approval.
   */
  approve(selection: Selection, options?: OperatorOptions): Promise<OperatorReport> {
    return this.#each('approve', selection, options, planApproval)
  }

  /** Rejects jobs that wait for an approval: their handlers go on with the rejection. */
  reject(selection: Selection, options?: OperatorOptions): Promise<OperatorReport> {
    return this.#each('reject', selection, options, planRejection)
  }

  /**
   * Sends a signal to each selected job, once per key and job. A filter sends it to at most
   * 10,000 jobs, unless its `limit` says otherwise; `more` says whether others match.
   */
  async signalMany<S extends AnySignal>(
    selection: Selection,
    signal: S,
    payload: NoInfer<SentOf<S>>,
    { key, ...options }: OperatorOptions & { readonly key?: string } = {},
  ): Promise<OperatorReport> {
    const request = await signalRequest(this.#parts, { signal, payload, key })
    return this.#each('signal', bounded(selection), options, () => ({
      kind: 'signal',
      signal: request,
    }))
  }

  /** Makes jobs ready that were enqueued with `hold`. */
  submit(selection: Selection, options?: OperatorOptions): Promise<OperatorReport> {
    return this.#apply(selection, options, { kind: 'submit' })
  }

  /** Enqueues a copy of each ended job with the same input; each call makes another copy. */
  copy(selection: Selection, options?: OperatorOptions): Promise<OperatorReport> {
    const { ids } = this.#parts.environment
    return this.#each('copy', selection, options, (job) =>
      job.outcome === null
        ? { kind: 'refuse', error: new JobNotEnded(job.id, 'copy') }
        : { kind: 'copy', id: ids.next() },
    )
  }

  /** Cancels all jobs of a flow or batch that have not ended, and closes an open batch. */
  cancelFlow(id: string, options: OperatorOptions = {}): Promise<OperatorReport> {
    return cancelFlow(
      this.#onFlow(options, (ids, own) => this.cancel({ ids }, own)),
      id,
    )
  }

  /** Redrives the failed and parked jobs of a flow; jobs that wait for them then go on. */
  redriveFlow(id: string, options: OperatorOptions = {}): Promise<OperatorReport> {
    return redriveFlow(
      this.#onFlow(options, (ids, own) => this.redrive({ ids }, own)),
      id,
    )
  }

  /** Makes effects due again that are parked or wait for their next try, with fresh tries. */
  retryEffects(selection: EffectSelection, options?: OperatorOptions): Promise<EffectsReport> {
    return retryEffects(this.#parts.store, this.#requester, selection, options)
  }

  /**
   * Migrates live jobs of earlier versions of a lifecycle to a version that the store knows.
   * Running jobs are not migrated.
   */
  migrate(selection: MigrationSelection, options?: OperatorOptions): Promise<MigrationReport> {
    return migrateJobs(this.#parts.store, this.#requester, selection, options)
  }

  /** Removes ended jobs now, as workers do by the option `retention`. */
  runRetention(options?: RunRetentionOptions): Promise<RetentionReport> {
    return runRetention(this.#parts, this.#requester, options)
  }

  /**
   * Stops claims from a queue; running jobs continue. Returns the record of the change, or
   * `undefined` if the queue is paused already.
   */
  pauseQueue(queue: string): Promise<QueueRecord | undefined> {
    return this.#parts.store.pauseQueue(queue, this.#requester)
  }

  /** Allows claims from a queue again. Returns `undefined` if the queue is not paused. */
  resumeQueue(queue: string): Promise<QueueRecord | undefined> {
    return this.#parts.store.resumeQueue(queue, this.#requester)
  }

  /**
   * Sets how many jobs may run under a limit, or under one key of it; 0 pauses it. It counts until
   * it is reset, whatever the code says. Returns `undefined` if it is the number already.
   */
  setLimit(limit: LimitReference, options: SetLimitOptions): Promise<LimitRecord | undefined> {
    return setLimit(this.#parts.store, limit, options, this.#requester)
  }

  /** Removes the number that an operator has set: the number in the code counts again. */
  resetLimit(
    limit: LimitReference,
    options: Pick<SetLimitOptions, 'key'> = {},
  ): Promise<LimitRecord | undefined> {
    return resetLimit(this.#parts.store, limit, options, this.#requester)
  }

  /** Sets the limits of a queue for every process; `null` removes a limit. */
  async limitQueue(queue: string, limits: QueueOptions): Promise<QueueRecord | undefined> {
    return this.#parts.store.limitQueue(queue, limitsOf(limits), this.#requester)
  }

  /** Makes no jobs of ticks any more. Returns `undefined` if the schedule is paused already. */
  pauseSchedule(name: string): Promise<ScheduleRecord | undefined> {
    return this.#schedules.pause(name)
  }

  /** Makes jobs of ticks again, from now on. Returns `undefined` if it is not paused. */
  resumeSchedule(name: string): Promise<ScheduleRecord | undefined> {
    return this.#schedules.resume(name)
  }

  /** Makes a job now, also if another one is open. The record has the id of the job. */
  runScheduleNow(name: string): Promise<ScheduleRecord> {
    return this.#schedules.runNow(name)
  }

  /** Makes up for ticks that have passed, at most 1000. */
  backfillSchedule(name: string, options: BackfillOptions): Promise<BackfillReport> {
    return this.#schedules.backfill(name, options)
  }

  /** Stores a schedule, as `pawl.schedules.put` does, with a record of operator and reason. */
  putSchedule(definition: ScheduleDefinition): Promise<ScheduleInfo> {
    return this.#schedules.put(definition)
  }

  /** Removes a schedule; its jobs and its history stay. */
  removeSchedule(name: string): Promise<ScheduleRecord> {
    return this.#schedules.remove(name)
  }

  #onFlow(options: OperatorOptions, act: FlowCommand['act']): FlowCommand {
    checkFields(options, OPTIONS, { what: 'options' })
    return { store: this.#parts.store, requester: this.#requester, options, act }
  }

  async #apply(
    selection: Selection,
    options: OperatorOptions | undefined,
    command: Command,
  ): Promise<OperatorReport> {
    const fault = findFault(command, this.#context())
    if (fault !== undefined) throw fault
    return this.#each(command.kind, selection, options, () => ({ kind: 'apply', command }))
  }

  async #each(
    verb: string,
    selection: Selection,
    options: OperatorOptions = {},
    plan: Plan,
  ): Promise<OperatorReport> {
    checkFields(options, OPTIONS, { what: 'options' })
    checkSelection(selection)
    const { dryRun = false, signal, onProgress } = options
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
      onProgress?.(tally.matched)
      const [, only] = outcomes[0] ?? []
      if (isOne && only?.kind === 'refused') throw only.error
    }
    return tally.report()
  }

  #stepsOf({ jobs, missing, damaged = [], moved = [] }: Batch, plan: Plan): [Job | string, Step][] {
    const planned = jobs.map((job): [Job, Step] => {
      const decided = this.#decided(job)
      if ('lifecycle' in decided) return [job, plan(decided.job, decided.lifecycle)]
      // A running job is cancelled by its worker, whose version of the lifecycle may differ.
      const isAsked = decided instanceof LeaseLive && plan === planCancel
      return [job, isAsked ? { kind: 'cancel' } : { kind: 'refuse', error: decided }]
    })
    const lost = [
      ...missing.map((id) => [id, new JobNotFound(id)] as const),
      ...damaged.map((error) => [String(error.details.jobId), error] as const),
      ...moved.map((id) => [id, new JobChanged(id)] as const),
    ].map(([id, error]): [string, Step] => [id, { kind: 'refuse', error }])
    return [...planned, ...lost]
  }

  /** Decides on the jobs as they were read, and writes nothing. */
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
    const command = commandOf(step)
    const decided = this.#decided(job)
    if (!('lifecycle' in decided)) return { kind: 'refused', error: decided }
    const decision = decide(decided.lifecycle, decided.job, command, this.#context())
    if (decision.kind === 'rejected') return { kind: 'refused', error: explain(decision.error) }
    return { kind: decision.kind === 'same' ? 'same' : 'done' }
  }

  /** Jobs with the same step are changed in one transaction. */
  async #carryOut(
    verb: string,
    steps: readonly [Job | string, Step][],
    isGuarded: boolean,
  ): Promise<[string, Outcome][]> {
    const outcomes: [string, Outcome][] = []
    const groups = new Map<string, { step: Step; jobs: (Job | string)[] }>()
    for (const [job, step] of steps) {
      const likeness =
        step.kind === 'apply' || step.kind === 'signal' ? JSON.stringify(step) : step.kind
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
        return (await store.cancel(ids, this.#requester, seqs)).map(outcomeOf)
      case 'signal':
        return (await sendStep(store, ids, step, this.#requester)).map(outcomeOf)
      case 'apply':
        return (await store.applyCommand(ids, step.command, this.#requester, seqs)).map(outcomeOf)
    }
  }

  /** The store never sees this refusal, so its event is emitted here. */
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
    const lifecycle = this.#versions?.lifecycleFor(job) as Lifecycle
    const item = copyOf(job, { id: copyId, input: texts.input, lifecycle, now: store.now() })
    const [enqueued] = await store.enqueue([item], { requester: this.#requester })
    if (enqueued?.kind !== 'rejected') return { kind: 'done', copyId }
    const { error } = enqueued
    return error instanceof JobExists ? { kind: 'same', copyId } : { kind: 'refused', error }
  }

  /** The job under the version of its lifecycle that this process has, migrated if necessary. */
  #decided(job: Job): JobAsDecided | PawlError {
    const { lifecycle, lifecycleVersion } = job
    const context = this.#context()
    return (
      this.#versions?.decided(job, context) ?? new LifecycleUnknown(lifecycle, lifecycleVersion)
    )
  }

  #context(): Context {
    const { environment, store } = this.#parts
    return contextOf(environment, this.#requester, store.now())
  }
}

function idOf(job: Job | string): string {
  return typeof job === 'string' ? job : job.id
}

function refusedBy(step: Step): Outcome {
  return { kind: 'refused', error: (step as Extract<Step, { kind: 'refuse' }>).error }
}
