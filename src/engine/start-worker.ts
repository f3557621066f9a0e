/**
 * Builds a worker with its wrapped store, its dispatcher of effects, its heartbeats and the
 * doctor's rounds. After the store has a report, `onReported` resolves the waits for that job and
 * wakes the dispatcher.
 */
import type { JsonBounds } from '../core/canonical-json.ts'
import type { Job } from '../core/job/job.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Logger } from '../core/ports.ts'
import type { Doctor } from '../doctor/doctor.ts'
import type { Environment } from '../environment/system.ts'
import type { Store } from '../stores/store.ts'
import { toMs } from './durations.ts'
import { Dispatcher, type DispatcherParts } from './effects/dispatcher.ts'
import { type AnyJob, runnableOf } from './job-types.ts'
import type { Results } from './results.ts'
import type { PawlEvent } from './watching/events.ts'
import { harmless } from './watching/hooks.ts'
import { observeStore } from './watching/observe-store.ts'
import { checkConcurrency, DEFAULTS, settingsOf, type WorkOptions } from './work-options.ts'
import { Checkup } from './worker/checkup.ts'
import { type HeartbeatEvents, type HeartbeatHost, TimerHeartbeat } from './worker/heartbeat.ts'
import { canHaveThread, ThreadHeartbeat } from './worker/heartbeat-thread.ts'
import { JobWorker } from './worker/worker.ts'

/** What Pawl and its workers share. */
export interface PawlParts {
  readonly store: Store
  /** Absent if the caller opened the store. */
  readonly storeName: string | undefined
  readonly timeoutMs: number | undefined
  readonly environment: Environment
  /** Whether time is the machine's clock, so that a separate thread can renew leases. */
  readonly isReal: boolean
  readonly logger: Logger
  readonly jobs: ReadonlyMap<string, AnyJob>
  readonly deliverable: DispatcherParts['jobs']
  readonly bounds: JsonBounds
  readonly lifecycles: readonly Lifecycle[]
  readonly observe: (event: PawlEvent) => void
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
  const { store, environment, logger, jobs, bounds, lifecycles } = parts
  const settings = settingsOf(options, environment)
  const runnable = runnableOf(jobs, options.jobs)
  const observe = observerOf(parts, options)
  const observed = observeStore(store, { worker: settings.id, observe, lifecycles })
  const dispatcher = dispatcherOf(parts, options, { worker: settings.id, observe, store: observed })
  const { checkup: every = DEFAULTS.checkupMs } = options
  const everyMs = every === false ? undefined : toMs(every, 'checkup')
  let checkup: Checkup | undefined
  const worker = new JobWorker({
    store: observed,
    environment,
    bounds,
    logger,
    settings,
    jobs: runnable,
    dispatcher,
    heartbeats: (events) => heartbeatsOf(parts, settings.leaseMs, events),
    observe,
    onReported: (job) => {
      results.resolve(job)
      if (mayLeaveEffects(job)) dispatcher?.wake()
      observe({ type: 'reported', worker: settings.id, job })
    },
    onStopped: () => {
      checkup?.stop()
      onStopped(worker)
    },
  })
  if (everyMs !== undefined) {
    checkup = new Checkup({ worker: settings.id, doctor, store, environment, everyMs, observe })
  }
  return worker
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
  { environment, deliverable: jobs }: PawlParts,
  { effects = true, poll }: WorkOptions,
  own: Pick<DispatcherParts, 'worker' | 'observe' | 'store'>,
): Dispatcher | undefined {
  const { concurrency = DEFAULTS.concurrency } = typeof effects === 'object' ? effects : {}
  checkConcurrency('effects.concurrency', concurrency)
  if (effects === false || jobs.size === 0) return undefined
  const pollMaxMs = toMs(poll ?? DEFAULTS.pollMs, 'poll')
  return new Dispatcher({ ...own, environment, jobs, concurrency, pollMaxMs })
}

function heartbeatsOf(parts: PawlParts, leaseMs: number, events: HeartbeatEvents): HeartbeatHost {
  const { store, storeName, timeoutMs, environment, logger, isReal } = parts
  if (storeName !== undefined && isReal && canHaveThread(storeName)) {
    return new ThreadHeartbeat({ storeName, leaseMs, timeoutMs }, events)
  }
  const fields = { event: 'worker.heartbeat_by_timer' }
  logger.info(fields, 'This thread renews the leases: handlers must not block it for long')
  return new TimerHeartbeat(store, environment, leaseMs, events)
}

/** Whether the job's commit or end may have declared effects or notices. */
function mayLeaveEffects({ execution, policy }: Job): boolean {
  return execution?.status === 'COMMITTED' || policy?.notify === true
}
