/**
 * Converts events to measurements. `METRICS` lists names, labels and meanings, so that an exporter
 * can announce them before the first measurement. `measure` is the only function that records them.
 * Times are in seconds. A label never contains unbounded values such as job ids.
 */
import { isCommitted, type Job } from '../../core/job/job.ts'
import { queueMsOf } from '../../core/job/timing.ts'
import { limitOf } from '../../core/limits/keys.ts'
import { codeOf } from '../../stores/outage.ts'
import type {
  MigratedEvent,
  MovedEvent,
  PawlEvent,
  RefusedEvent,
  ScheduleEvent,
  ScheduleFailedEvent,
} from './events.ts'

/** The definition of a measurement. */
export interface Metric {
  readonly kind: 'counter' | 'histogram' | 'gauge'
  readonly labels: readonly string[]
  readonly help: string
}

/** All measurements of the engine. */
export const METRICS = {
  pawl_jobs_enqueued_total: {
    kind: 'counter',
    labels: ['queue', 'kind'],
    help: 'Jobs that this process enqueued.',
  },
  pawl_executions_total: {
    kind: 'counter',
    labels: ['queue', 'kind', 'outcome'],
    help: 'Attempts that ended here: done, aborted, or duplicate if the lease was lost.',
  },
  pawl_execution_duration_seconds: {
    kind: 'histogram',
    labels: ['queue', 'kind', 'outcome'],
    help: 'From the claim of a job to its report.',
  },
  pawl_queue_latency_seconds: {
    kind: 'histogram',
    labels: ['queue'],
    help: 'From the time when a job is due to its claim.',
  },
  pawl_transitions_total: {
    kind: 'counter',
    labels: ['machine', 'from', 'to'],
    help: 'Edges that jobs took because of calls of this process.',
  },
  pawl_transition_stay_seconds: {
    kind: 'histogram',
    labels: ['machine', 'from', 'to'],
    help:
      'How long jobs were in a state before they left it, by the first edge: since the start ' +
      'of the attempt, since a claimed job was due, otherwise since the last fact.',
  },
  pawl_transitions_rejected_total: {
    kind: 'counter',
    labels: ['machine', 'from', 'to', 'code'],
    help: 'Commands that were rejected; from and to are empty if they are not known.',
  },
  pawl_jobs_migrated_total: {
    kind: 'counter',
    labels: ['machine', 'from', 'to'],
    help: 'Jobs that this process migrated to a later version of their lifecycle, by versions.',
  },
  pawl_leases_expired_total: {
    kind: 'counter',
    labels: ['queue'],
    help: 'Leases that recovery in this process found expired.',
  },
  pawl_handlers_silent_total: {
    kind: 'counter',
    labels: ['queue', 'kind'],
    help: 'Warnings about handlers without activity under a valid lease (`stallWarning`).',
  },
  pawl_signals_unread_total: {
    kind: 'counter',
    labels: ['queue', 'kind'],
    help: 'Signals that jobs of types with `signals` had not received when they ended here.',
  },
  pawl_queue_changes_total: {
    kind: 'counter',
    labels: ['queue', 'action'],
    help: 'Queues that this process paused, resumed or limited.',
  },
  pawl_schedule_ticks_total: {
    kind: 'counter',
    labels: ['schedule', 'result'],
    help:
      'Ticks that this process dealt with, by result: fired, late, skipped, missed or ' +
      'backfilled. A range of missed ticks counts up to 1000.',
  },
  pawl_schedule_changes_total: {
    kind: 'counter',
    labels: ['schedule', 'action'],
    help: 'Schedules that this process put, paused, resumed, ran, backfilled or removed.',
  },
  pawl_schedules_failed_total: {
    kind: 'counter',
    labels: ['schedule', 'code'],
    help: 'Looks at schedules that failed here: damaged, or of a time zone not known here.',
  },
  pawl_admissions_total: {
    kind: 'counter',
    labels: ['kind', 'result'],
    help:
      'Enqueues of job types with rateLimit, debounce or singleton, by result: created, ' +
      'replaced, existing or limited.',
  },
  pawl_jobs_removed_total: {
    kind: 'counter',
    labels: ['outcome'],
    help: 'Ended jobs that retention in this process removed.',
  },
  pawl_limit_changes_total: {
    kind: 'counter',
    labels: ['limit', 'action'],
    help: 'Limits that this process declared, set or reset; keys are not told apart.',
  },
  pawl_attempts_throttled_total: {
    kind: 'counter',
    labels: ['queue', 'kind'],
    help: 'Attempts that closed a throttle of their job type (`throttled`).',
  },
  pawl_dependents_total: {
    kind: 'counter',
    labels: ['queue', 'kind', 'result'],
    help:
      'Jobs that waited for others, by result: released, dependency-failed, or ended if they ' +
      'were not needed.',
  },
  pawl_jobs_isolated_total: {
    kind: 'counter',
    labels: ['lane'],
    help: 'Jobs that were set aside because their stored rows cannot be read or trusted.',
  },
  pawl_effects_total: {
    kind: 'counter',
    labels: ['kind', 'effect', 'result'],
    help: 'Deliveries of effects by result; each delivery of an effect counts.',
  },
  pawl_invariant_violations_total: {
    kind: 'counter',
    labels: ['invariant', 'check', 'severity'],
    help: "Findings of the doctor's rounds; a finding counts again in every round.",
  },
  pawl_worker_errors_total: {
    kind: 'counter',
    labels: ['worker', 'code'],
    help: 'Errors after which a worker continued, by code; empty if an error has none.',
  },
  pawl_run_events_total: {
    kind: 'counter',
    labels: ['type'],
    help: 'Events of runs that this process recorded, by type.',
  },
  pawl_run_transitions_rejected_total: {
    kind: 'counter',
    labels: ['from', 'to'],
    help: 'Transitions of runs that were rejected in this process.',
  },
  pawl_store_operation_duration_seconds: {
    kind: 'histogram',
    labels: ['operation'],
    help: 'Calls of the store by this process, with their retries.',
  },
  pawl_worker_loop_state: {
    kind: 'gauge',
    labels: ['worker', 'state'],
    help: 'The state of a worker: 1 for the current one, 0 for those that it has left.',
  },
  pawl_worker_stuck_slots: {
    kind: 'gauge',
    labels: ['worker'],
    help: 'Handlers that still run although their attempts are over.',
  },
} as const satisfies Record<string, Metric>

/** The bounds of histograms, in seconds: as OpenTelemetry advises, and longer ones for jobs. */
export const SECONDS_BOUNDS: readonly number[] = [
  ...[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
  ...[30, 60, 300],
]

/** The name of a measurement. */
export type MetricName = keyof typeof METRICS

/** Values of labels by name. */
export type MetricLabels = Readonly<Record<string, string>>

/** Receives measurements. */
export interface Metrics {
  /** Adds to a counter; 1 if `by` is absent. */
  count(name: MetricName, labels: MetricLabels, by?: number): void
  /** Adds a value to a histogram. */
  observe(name: MetricName, labels: MetricLabels, value: number): void
  /** Sets a gauge. */
  gauge(name: MetricName, labels: MetricLabels, value: number): void
}

/** Records the measurements of an event. */
export function measure(metrics: Metrics, event: PawlEvent): void {
  switch (event.type) {
    case 'enqueued':
      metrics.count('pawl_jobs_enqueued_total', kindOf(event.job))
      break
    case 'started':
      metrics.observe('pawl_queue_latency_seconds', queueOf(event.job), waitOf(event.job))
      break
    case 'reported':
      measureEnd(metrics, event.job)
      break
    case 'lost':
      metrics.count('pawl_executions_total', { ...kindOf(event.job), outcome: 'duplicate' })
      break
    case 'moved':
      measureMove(metrics, event)
      break
    case 'migrated':
      measureMigration(metrics, event)
      break
    case 'refused':
      metrics.count('pawl_transitions_rejected_total', edgeOf(event))
      break
    case 'expired':
      metrics.count('pawl_leases_expired_total', queueOf(event.job))
      break
    case 'silent':
      metrics.count('pawl_handlers_silent_total', kindOf(event.job))
      break
    case 'unread':
      metrics.count('pawl_signals_unread_total', kindOf(event.job), event.signals.length)
      break
    case 'queue':
    case 'schedule':
    case 'schedule-failed':
    case 'admission':
    case 'retention':
    case 'limit':
      measureControl(metrics, event)
      break
    case 'arrived':
      metrics.count('pawl_dependents_total', { ...kindOf(event.job), result: event.result })
      break
    case 'isolated':
      metrics.count('pawl_jobs_isolated_total', { lane: event.lane ?? '' })
      break
    case 'effect': {
      const { jobType: kind, name: effect, result } = event
      metrics.count('pawl_effects_total', { kind, effect, result })
      break
    }
    case 'finding': {
      const { promise: invariant, check, severity } = event.finding
      metrics.count('pawl_invariant_violations_total', { invariant, check, severity })
      break
    }
    case 'stuck':
    case 'unstuck':
      metrics.gauge('pawl_worker_stuck_slots', { worker: event.worker }, event.stuck)
      break
    case 'error': {
      const { worker, error } = event
      metrics.count('pawl_worker_errors_total', { worker, code: codeOf(error) })
      break
    }
    case 'state':
      if (event.slot === 'idle') measureState(metrics, event)
  }
}

type ControlEvent = Extract<
  PawlEvent,
  { type: 'queue' | 'schedule' | 'schedule-failed' | 'admission' | 'retention' | 'limit' }
>

/** What concerns queues, limits, schedules and retention, and no single job. */
function measureControl(metrics: Metrics, event: ControlEvent): void {
  switch (event.type) {
    case 'queue': {
      const { queue, action } = event.record
      metrics.count('pawl_queue_changes_total', { queue, action })
      break
    }
    case 'admission':
      metrics.count('pawl_admissions_total', { kind: event.jobType, result: event.result })
      break
    case 'retention':
      metrics.count('pawl_jobs_removed_total', { outcome: event.outcome }, event.removed)
      break
    case 'limit': {
      const { name, action } = event.record
      metrics.count('pawl_limit_changes_total', { limit: limitOf(name), action })
      break
    }
    default:
      measureSchedule(metrics, event)
  }
}

function measureState(
  metrics: Metrics,
  { worker, from, to }: Extract<PawlEvent, { type: 'state' }>,
): void {
  metrics.gauge('pawl_worker_loop_state', { worker, state: from }, 0)
  metrics.gauge('pawl_worker_loop_state', { worker, state: to }, 1)
}

function measureSchedule(metrics: Metrics, event: ScheduleEvent | ScheduleFailedEvent): void {
  if (event.type === 'schedule-failed') {
    const { schedule, error } = event
    metrics.count('pawl_schedules_failed_total', { schedule, code: error.code })
    return
  }
  const { record } = event
  const { schedule, action, tick, ticks = 1 } = record
  if (tick === undefined) metrics.count('pawl_schedule_changes_total', { schedule, action })
  else metrics.count('pawl_schedule_ticks_total', { schedule, result: action }, ticks)
}

/** Each edge of the path counts. Time passed only in the first state. */
function measureMove(metrics: Metrics, { job, path, trigger, stayedMs }: MovedEvent): void {
  if (trigger === 'suspend' && job.reason === 'throttled') {
    metrics.count('pawl_attempts_throttled_total', kindOf(job))
  }
  const edges = path.slice(1).map((to, i) => {
    return { machine: job.lifecycle, from: path[i] as string, to }
  })
  for (const edge of edges) metrics.count('pawl_transitions_total', edge)
  const [first] = edges
  if (first === undefined || stayedMs === undefined) return
  metrics.observe('pawl_transition_stay_seconds', first, stayedMs / 1000)
}

function measureMigration(metrics: Metrics, { job, from, to }: MigratedEvent): void {
  const labels = { machine: job.lifecycle, from: String(from), to: String(to) }
  metrics.count('pawl_jobs_migrated_total', labels)
}

function edgeOf({ machine, from, to, error }: RefusedEvent): MetricLabels {
  return { machine: machine ?? '', from: from ?? '', to: to ?? '', code: error.code }
}

function measureEnd(metrics: Metrics, job: Job): void {
  const outcome = job.outcome === 'succeeded' || isCommitted(job) ? 'done' : 'aborted'
  const labels = { ...kindOf(job), outcome }
  metrics.count('pawl_executions_total', labels)
  const { startedAt, updatedAt } = job
  // The store's clock may have been set back since the start.
  const durationMs = Math.max(0, updatedAt - (startedAt ?? updatedAt))
  metrics.observe('pawl_execution_duration_seconds', labels, durationMs / 1000)
}

/** How long a job was due before its claim, in seconds of the store's time. */
function waitOf(job: Job): number {
  return job.startedAt === null ? 0 : queueMsOf(job, job.startedAt) / 1000
}

function kindOf({ queue, type }: Job): { queue: string; kind: string } {
  return { queue, kind: type }
}

function queueOf({ queue }: Job): { queue: string } {
  return { queue }
}
