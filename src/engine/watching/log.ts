/**
 * Writes events to the log. Other events are not logged.
 *
 *   refused   error   Invalid transition: {from} → {to}, if the machine has no such edge; with the
 *                     commands that take the edge, if it exists for other commands
 *             warn    the message of the error, if the command was rejected for another reason
 *   same      debug   Same state: {state}
 *   migrated  info
 *   asked     info    the worker that holds the job was asked to cancel it
 *   moved     debug   {from} → {to}; info if an operator or the doctor moved the job
 *   failed    warn    an attempt failed and is retried; error if the job has ended or is parked
 *   leftover  error   a promise rejected that the handler did not await; warn if it still runs
 *   expired   warn    recovered, or waits for an operator; error if the job is given up
 *   lost      warn
 *   stuck     warn    and info when the handler has ended
 *   silent    warn
 *   effect    debug   delivered; error if it is parked, warn if it is retried
 *   isolated  error   a damaged job was set aside
 *   queue     info    a queue was paused, resumed or limited
 *   schedule  debug   a tick was fired; warn if it was skipped or missed, info for changes
 *   schedule-failed  error   a schedule is damaged, or its time zone is not known here
 *   retention  info   ended jobs were removed
 *   limit     info    a limit was declared, set or reset
 *   connection  warn  while Pawl waits for a store, and info when it is open
 *   error     error
 */
import { InvalidTransition } from '../../core/errors.ts'
import type { Job } from '../../core/job/job.ts'
import type { Logger } from '../../core/ports.ts'
import { chainOf, describeThrown, textOf } from '../../core/thrown.ts'
import type { Finding } from '../../doctor/finding.ts'
import { codeOf } from '../../stores/outage.ts'
import type {
  ArrivedEvent,
  EffectEvent,
  ExpiredEvent,
  FailedEvent,
  IsolatedEvent,
  LeftoverEvent,
  LimitEvent,
  MovedEvent,
  PawlEvent,
  QueueEvent,
  RefusedEvent,
  RetentionEvent,
  SilentEvent,
  StuckEvent,
} from './events.ts'
import { logSchedules } from './log-schedules.ts'

export const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} }

/** Writes the line of an event, if it has one. */
export function logEvent(logger: Logger, event: PawlEvent): void {
  switch (event.type) {
    case 'refused':
      logRefused(logger, event)
      break
    case 'same':
    case 'asked':
      logUnmoved(logger, event)
      break
    case 'migrated':
      logMigrated(logger, event)
      break
    case 'moved':
      logMoved(logger, event)
      break
    case 'failed':
      logFailed(logger, event)
      break
    case 'leftover':
      logLeftover(logger, event)
      break
    case 'expired':
      logExpired(logger, event)
      break
    case 'lost':
      logLost(logger, event)
      break
    case 'stuck':
    case 'unstuck':
      logStuck(logger, event)
      break
    case 'silent':
      logSilent(logger, event)
      break
    case 'unread':
      logUnread(logger, event)
      break
    case 'effect':
      logEffect(logger, event)
      break
    case 'arrived':
      logArrived(logger, event)
      break
    case 'isolated':
      logIsolated(logger, event)
      break
    case 'queue':
    case 'schedule':
    case 'schedule-failed':
    case 'retention':
    case 'limit':
      logControl(logger, event)
      break
    case 'finding':
      logFinding(logger, event.worker, event.finding)
      break
    case 'connection':
      logConnection(logger, event)
      break
    case 'error':
      logError(logger, event)
  }
}

function logMigrated(logger: Logger, event: Extract<PawlEvent, { type: 'migrated' }>): void {
  const { worker, job, from, to, path } = event
  const fields = {
    event: 'job.migrated',
    ...fieldsOf(job, worker),
    lifecycle: job.lifecycle,
    ...{ from_version: from, to_version: to, from: path[0], to: path[1] },
  }
  logger.info(fields, 'The job was migrated to a later version of its lifecycle')
}

type ControlEvent = Extract<
  PawlEvent,
  { type: 'queue' | 'schedule' | 'schedule-failed' | 'retention' | 'limit' }
>

/** What concerns queues, limits, schedules and retention, and no single job. */
function logControl(logger: Logger, event: ControlEvent): void {
  switch (event.type) {
    case 'queue':
      logQueue(logger, event)
      break
    case 'retention':
      logRetention(logger, event)
      break
    case 'limit':
      logLimit(logger, event)
      break
    default:
      logSchedules(logger, event)
  }
}

function logUnread(
  logger: Logger,
  { worker, job, signals }: Extract<PawlEvent, { type: 'unread' }>,
): void {
  const names = [...new Set(signals.map(({ name }) => name))].slice(0, NAMES_MAX)
  const own = { signals: names, count: signals.length }
  const fields = { event: 'signals.unread', ...fieldsOf(job, worker), ...own }
  logger.warn(fields, `The job ended with ${signals.length} unread signals`)
}

/** How many names of signals a line of the log has. */
const NAMES_MAX = 10

function logSilent(logger: Logger, { worker, job, silentMs }: SilentEvent): void {
  const fields = { event: 'job.silent', ...fieldsOf(job, worker), silent_ms: silentMs }
  logger.warn(fields, 'A handler shows no activity under a valid lease: it may hang')
}

function logLost(logger: Logger, { job, worker }: Extract<PawlEvent, { type: 'lost' }>): void {
  const fields = { event: 'job.lost', ...fieldsOf(job, worker) }
  logger.warn(fields, 'The lease was lost: later writes of the attempt are rejected')
}

function logError(logger: Logger, event: Extract<PawlEvent, { type: 'error' }>): void {
  const { worker, error } = event
  const code = codeOf(error)
  const described = { ...describe(error), ...(code !== '' && { code }) }
  const fields = { event: 'worker.error', worker_id: worker, ...described }
  logger.error(fields, 'An error occurred; the worker continues')
}

function logRefused(logger: Logger, event: RefusedEvent): void {
  const { worker, jobId, command, machine, from, to, error } = event
  const fields = {
    event: 'transition.refused',
    job_id: jobId,
    worker_id: worker,
    command,
    machine,
    from,
    to,
    code: error.code,
    hint: error.hint,
  }
  logger[error instanceof InvalidTransition ? 'error' : 'warn'](fields, error.message)
}

const QUEUE_WORDS = { pause: 'paused', resume: 'resumed', limit: 'limited' } as const

function logQueue(logger: Logger, { worker, record }: QueueEvent): void {
  const { queue, action, actor, operator, note, before, after } = record
  const by = { actor, ...(operator !== undefined && { operator }) }
  const why = note === undefined ? {} : { reason: note }
  const fields = { event: 'queue.changed', worker_id: worker, queue, action, ...by, ...why }
  logger.info({ ...fields, before, after }, `The queue was ${QUEUE_WORDS[action]}`)
}

function logIsolated(logger: Logger, { worker, jobId, lane, why }: IsolatedEvent): void {
  const fields = { event: 'job.isolated', job_id: jobId, worker_id: worker, lane, why }
  logger.error(fields, `A damaged job was set aside: ${why}. Run "pawl doctor --full --plan"`)
}

const ARRIVALS = {
  released: 'Everything that the job waited for has ended: it is ready',
  'dependency-failed': 'A job that this one comes after did not succeed',
  ended: 'The job was cancelled: it is not needed, or its parent has ended',
} as const

function logArrived(logger: Logger, { worker, job, result, dependency }: ArrivedEvent): void {
  const event = result === 'released' ? 'job.released' : 'job.not_released'
  const fields = { event, ...fieldsOf(job, worker), result, dependency, state: job.state }
  logger[result === 'dependency-failed' ? 'warn' : 'debug'](fields, ARRIVALS[result])
}

function logRetention(logger: Logger, event: RetentionEvent): void {
  const { worker, outcome, keepMs, removed, keys, operator } = event
  const by = operator === undefined ? {} : { operator }
  const fields = { event: 'retention.removed', worker_id: worker, outcome, removed, keys, ...by }
  logger.info({ ...fields, keep_ms: keepMs }, `Retention removed ${removed} ended jobs`)
}

const LIMIT_WORDS = { declare: 'declared', set: 'set', reset: 'reset' } as const

function logLimit(logger: Logger, { worker, record }: LimitEvent): void {
  const { name, action, actor, operator, note, before, after } = record
  const by = { actor, ...(operator !== undefined && { operator }) }
  const why = note === undefined ? {} : { reason: note }
  const fields = { event: 'limit.changed', worker_id: worker, limit: name, action, ...by, ...why }
  logger.info({ ...fields, before, after }, `The limit was ${LIMIT_WORDS[action]}`)
}

function logConnection(
  logger: Logger,
  { state, waitedMs, error }: Extract<PawlEvent, { type: 'connection' }>,
): void {
  const fields = { event: 'store.connecting', state, waited_ms: waitedMs, code: error?.code }
  if (error !== undefined) logger.warn(fields, `Waiting for the store: ${error.message}`)
  else if (state === 'Connected') logger.info(fields, 'The store is open')
}

function logUnmoved(
  logger: Logger,
  { type, worker, command, job }: Extract<PawlEvent, { type: 'same' | 'asked' }>,
): void {
  const fields = { event: `transition.${type}`, ...fieldsOf(job, worker), command }
  if (type === 'same') logger.debug(fields, `Same state: ${job.state}`)
  else logger.info(fields, `The worker that holds the job was asked: ${command}`)
}

function logMoved(logger: Logger, event: MovedEvent): void {
  const { worker, job, path, trigger, actor, operator } = event
  const [from, to] = [path[0], path[path.length - 1]]
  const fields = {
    event: 'transition.moved',
    ...fieldsOf(job, worker),
    ...{ machine: job.lifecycle, from, to, trigger, actor },
    ...(operator !== undefined && { operator }),
  }
  const isByPerson = operator !== undefined || actor === 'doctor'
  logger[isByPerson ? 'info' : 'debug'](fields, path.join(' → '))
}

/** The fields of an error: its text with its causes, and its stack. */
function describe(error: unknown) {
  const thrown = describeThrown(error)
  const { stack } = thrown
  return { error: chainOf({ message: textOf(error), thrown }), ...(stack && { stack }) }
}

function logFailed(logger: Logger, event: FailedEvent): void {
  const { worker, job, attempt, error, thrown, retryAt } = event
  const fields = {
    event: retryAt === null ? 'job.failed' : 'job.retried',
    ...fieldsOf(job, worker),
    attempt,
    state: job.state,
    reason: job.reason,
    error: chainOf({ ...error, ...(thrown && { thrown }) }),
    error_kind: error.kind,
    ...(error.code !== undefined && { code: error.code }),
    ...(error.fingerprint !== undefined && { fingerprint: error.fingerprint }),
    ...(thrown?.stack !== undefined && { stack: thrown.stack }),
    ...(thrown?.cause !== undefined && { cause: thrown.cause }),
    ...(thrown?.errors !== undefined && { errors: thrown.errors }),
    ...(retryAt !== null && { retry_at: retryAt }),
  }
  if (retryAt === null) {
    const how = job.outcome === null ? 'is parked' : 'has ended'
    logger.error(fields, `Attempt ${attempt} failed and the job ${how}: ${error.message}`)
  } else {
    logger.warn(fields, `Attempt ${attempt} failed and is retried: ${error.message}`)
  }
}

function logLeftover(logger: Logger, event: LeftoverEvent): void {
  const { worker, job, problem, what, error } = event
  const fields = { event: `job.left_${problem}`, ...fieldsOf(job, worker), what }
  if (problem === 'running') {
    logger.warn(fields, `The handler ended while ${what} was still running: await it`)
  } else {
    const why = 'which the handler did not await'
    logger.error({ ...fields, ...describe(error) }, `An error occurred in ${what}, ${why}`)
  }
}

function logExpired(logger: Logger, event: ExpiredEvent): void {
  const { worker, job, attempt, holder, isStalled, expiredForMs, retryAt } = event
  const isFinal = retryAt === null && !isStalled
  const fields = {
    event: isStalled ? 'job.stalled' : 'job.recovered',
    ...fieldsOf(job, holder),
    attempt,
    found_by: worker,
    state: job.state,
    expired_ms: expiredForMs,
    age_ms: job.updatedAt - (job.startedAt ?? job.updatedAt),
  }
  const ended = job.outcome === null ? 'it is parked' : 'it has ended'
  const recovered = isFinal ? ended : 'it was recovered'
  const what = isStalled ? 'it is stalled and waits for an operator' : recovered
  logger[isFinal ? 'error' : 'warn'](fields, `The lease of a job has expired: ${what}`)
}

function logStuck(logger: Logger, { type, worker, job, forMs, stuck }: StuckEvent): void {
  const fields = { event: `worker.${type}`, ...fieldsOf(job, worker), for_ms: forMs, stuck }
  if (type === 'stuck') logger.warn(fields, 'A handler still runs after its signal was aborted')
  else logger.info(fields, 'A handler has ended long after its signal was aborted')
}

function logEffect(logger: Logger, event: EffectEvent): void {
  const { worker, result, key, jobId, jobType, name, tries, error, retryAt } = event
  const { fingerprint, thrown } = event
  const fields = {
    event: `effect.${result}`,
    ...{ job_id: jobId, kind: jobType, worker_id: worker, effect: name, key, tries },
    ...(error !== undefined && { error }),
    ...(retryAt !== null && { retry_at: retryAt }),
    ...(fingerprint !== undefined && { fingerprint }),
    ...(thrown?.stack !== undefined && { stack: thrown.stack }),
  }
  if (result === 'delivered') logger.debug(fields, 'An effect was delivered')
  else if (result === 'parked') logger.error(fields, 'An effect is parked: all tries failed')
  else logger.warn(fields, 'An effect will be delivered again')
}

const FINDING_LEVELS = { error: 'error', warning: 'warn', notice: 'debug' } as const

function logFinding(logger: Logger, worker: string, finding: Finding): void {
  const { check, promise, severity, subject, what } = finding
  const fields = { event: 'doctor.finding', worker_id: worker, check, promise, subject }
  logger[FINDING_LEVELS[severity]](fields, `${promise}, ${subject}: ${what}`)
}

/** A logger that adds the job and attempt to each line. */
export function jobLogger(
  logger: Logger,
  job: Job,
  more?: Readonly<Record<string, string>>,
): Logger {
  return loggerWith(logger, { ...fieldsOf(job, job.execution?.worker ?? null), ...more })
}

/** A logger that adds fields to each line; they override the fields of the line. */
export function loggerWith(logger: Logger, own: Readonly<Record<string, unknown>>): Logger {
  return {
    debug: (fields, msg) => logger.debug({ ...fields, ...own }, msg),
    info: (fields, msg) => logger.info({ ...fields, ...own }, msg),
    warn: (fields, msg) => logger.warn({ ...fields, ...own }, msg),
    error: (fields, msg) => logger.error({ ...fields, ...own }, msg),
  }
}

function fieldsOf({ id, attempt, queue, type }: Job, worker: string | null) {
  return { job_id: id, attempt, queue, kind: type, worker_id: worker }
}
