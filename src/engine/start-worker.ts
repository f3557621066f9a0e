/**
 * Builds a worker with its wrapped store, its dispatcher of effects, its heartbeats and the
 * doctor's rounds. After the store has a report, `onReported` resolves the waits for that job and
 * wakes the dispatcher.
 */
import type { JsonBounds } from '../core/canonical-json.ts'
import { toMs } from '../core/durations.ts'
import type { Job } from '../core/job/job.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Logger } from '../core/ports.ts'
import type { Redact } from '../core/thrown.ts'
import type { Doctor } from '../doctor/doctor.ts'
import type { Environment } from '../environment/system.ts'
import type { Store } from '../stores/contract/store.ts'
import { declarationOf } from './declared-types.ts'
import { Dispatcher, type DispatcherParts } from './effects/dispatcher.ts'
import { enqueueOneBy } from './enqueueing.ts'
import { wakeStore } from './flows/wake-store.ts'
import { type AnyJob, runnableOf } from './job-types.ts'
import type { Results } from './results.ts'
import type { RetentionPolicy } from './retention/policy.ts'
import type { ScheduleDefinition } from './schedules/define-schedule.ts'
import type { SignalTokens } from './signal-tokens.ts'
import type { Place } from './store-options.ts'
import type { Tracer } from './tracing/tracer.ts'
import type { PawlEvent } from './watching/events.ts'
import { harmless } from './watching/hooks.ts'
import { observeStore } from './watching/observe-store.ts'
import { checkConcurrency, DEFAULTS, settingsOf, type WorkOptions } from './work-options.ts'
import { Checkup } from './worker/checkup.ts'
import { type HeartbeatEvents, type HeartbeatHost, TimerHeartbeat } from './worker/heartbeat.ts'
import { ThreadHeartbeat } from './worker/heartbeat-thread.ts'
import { findRenewal, type Renewal } from './worker/renewal.ts'
import { Retaining } from './worker/retaining.ts'
import { JobWorker } from './worker/worker.ts'

/** What Pawl and its workers share. */
export interface PawlParts {
  readonly store: Store
  /** Absent if the caller opened the store. */
  readonly place: Place | undefined
  readonly timeoutMs: number | undefined
  readonly environment: Environment
  /** Whether time is the machine's clock, so that a separate thread can renew leases. */
  readonly isReal: boolean
  readonly logger: Logger
  /** Whether anything receives the events of each job: `onEvent`, metrics or a logger. */
  readonly isHeard: boolean
  readonly jobs: ReadonlyMap<string, AnyJob>
  /** The schedules of the options. */
  readonly schedules: readonly ScheduleDefinition[]
  readonly deliverable: DispatcherParts['jobs']
  readonly bounds: JsonBounds
  readonly lifecycles: readonly Lifecycle[]
  readonly observe: (event: PawlEvent) => void
  readonly retention: RetentionPolicy
  /** Changes texts of errors before they are stored. */
  readonly redact: Redact | undefined
  /** Makes spans; absent without tracing. */
  readonly tracer: Tracer | undefined
  /** Makes and reads tokens of signals. */
  readonly tokens: SignalTokens
}

/** What a worker needs besides the shared parts. */
export interface WorkerSurroundings {
  readonly results: Results
  readonly doctor: Doctor
  readonly onStopped: (worker: JobWorker) => void
}

/** Starts a worker. Throws `CommandInvalid` for unknown or invalid options. */
export function startWorker(
  parts: PawlParts,
  options: WorkOptions,
  { results, doctor, onStopped }: WorkerSurroundings,
): JobWorker {
  const { store, environment, logger, jobs, bounds, lifecycles, redact } = parts
  const settings = settingsOf(options, environment)
  const runnable = runnableOf(jobs, options.jobs)
  const observe = observerOf(parts, options)
  const isHeard = parts.isHeard || options.onEvent !== undefined
  const onError = (error: unknown) => observe({ type: 'error', worker: settings.id, error })
  const watched = observeStore(store, { worker: settings.id, observe, isHeard, lifecycles })
  const observed = wakeStore(watched, onError)
  const dispatcher = dispatcherOf(parts, options, { worker: settings.id, observe, store: observed })
  const { checkup: every = DEFAULTS.checkupMs } = options
  const everyMs = every === false ? undefined : toMs(every, 'checkup')
  const duties: { stop(): void }[] = []
  const renewal = renewalOf(parts)
  const worker = new JobWorker({
    store: observed,
    environment,
    bounds,
    logger,
    enqueue: enqueueOneBy({ store: observed, results, lifecycles, environment, bounds }),
    redact,
    tokens: parts.tokens,
    tracer: parts.tracer,
    settings,
    jobs: runnable,
    declared: [...runnable.values()].map((job) => declarationOf(job, bounds)),
    dispatcher,
    heartbeats: (events) => heartbeatsOf(parts, renewal, settings.leaseMs, events),
    renewal: renewal.kind,
    schedules: namesOf(parts.schedules),
    ...('advice' in renewal && { renewalAdvice: renewal.advice }),
    observe,
    isHeard,
    onReported: (job) => {
      results.resolve(job)
      if (mayLeaveEffects(job)) dispatcher?.wake()
      if (isHeard) observe({ type: 'reported', worker: settings.id, job })
    },
    onStopped: () => {
      for (const duty of duties) duty.stop()
      onStopped(worker)
    },
  })
  const own = { worker: settings.id, store, environment, observe }
  if (everyMs !== undefined) duties.push(new Checkup({ ...own, doctor, everyMs }))
  const { retention: policy } = parts
  const isBusy = () => worker.running > 0
  if (policy.classes.length > 0) duties.push(new Retaining({ ...own, policy, isBusy }))
  return worker
}

/** A worker reports these every few seconds, so there must not be many. */
const NAMES_MAX = 200

function namesOf(schedules: readonly ScheduleDefinition[]): readonly string[] | undefined {
  return schedules.length > NAMES_MAX ? undefined : schedules.map(({ name }) => name)
}

/** Calls the observers of Pawl and of the worker. */
function observerOf(
  { environment, logger, observe }: PawlParts,
  { onEvent }: WorkOptions,
): (event: PawlEvent) => void {
  const own = harmless('onEvent', onEvent, { clock: environment.clock, logger })
  return (event) => {
    observe(event)
    own(event)
  }
}

/** Delivers the effects of the job types known here; `undefined` if there are none. */
function dispatcherOf(
  { environment, deliverable: jobs, redact, tracer }: PawlParts,
  { effects = true, poll }: WorkOptions,
  own: Pick<DispatcherParts, 'worker' | 'observe' | 'store'>,
): Dispatcher | undefined {
  const { concurrency = DEFAULTS.concurrency } = typeof effects === 'object' ? effects : {}
  checkConcurrency('effects.concurrency', concurrency)
  if (effects === false || jobs.size === 0) return undefined
  const pollMaxMs = toMs(poll ?? DEFAULTS.pollMs, 'poll')
  return new Dispatcher({ ...own, environment, jobs, concurrency, pollMaxMs, redact, tracer })
}

/** Says how a worker renews its leases, and why if it has no thread for that. */
function renewalOf({ place, isReal, logger }: PawlParts): Renewal {
  const renewal: Renewal = isReal ? findRenewal(place) : { kind: 'timer', why: 'time' }
  if (renewal.kind === 'thread') return renewal
  const fields = { event: 'worker.heartbeat_by_timer', why: renewal.why }
  const says = 'The main thread renews the leases: a handler that blocks it loses its job'
  const { advice } = renewal
  if (advice === undefined) logger.info(fields, says)
  else logger.warn(fields, `${says}. ${advice}`)
  return renewal
}

function heartbeatsOf(
  { store, timeoutMs, environment }: PawlParts,
  renewal: Renewal,
  leaseMs: number,
  events: HeartbeatEvents,
): HeartbeatHost {
  if (renewal.kind === 'timer') return new TimerHeartbeat(store, environment, leaseMs, events)
  const { file, place } = renewal
  return new ThreadHeartbeat({ place, leaseMs, timeoutMs }, events, file)
}

/** Whether the job's commit or end may have declared effects or notices. */
function mayLeaveEffects({ execution, policy }: Job): boolean {
  return execution?.status === 'COMMITTED' || policy?.notify === true
}
