/** Opens Pawl: checks the options, opens the store, and connects the observers. */

import { toMs } from '../core/durations.ts'
import { LIFECYCLES } from '../core/lifecycles/index.ts'
import type { Logger } from '../core/ports.ts'
import { type Environment, systemEnvironment } from '../environment/system.ts'
import { payloadBoundsOf } from '../stores/contract/requests.ts'
import type { Requester, Store } from '../stores/contract/store.ts'
import type { TimeChange } from '../stores/store-time.ts'
import { openWhenThere } from './connecting.ts'
import { type NotifyOptions, noticesOf } from './effects/notify.ts'
import { type AnyJob, byName } from './job-types.ts'
import { declareLimits } from './limits/limits.ts'
import { openStore } from './open-store.ts'
import { checkPawlOptions, limitsOf, type PawlOptions } from './options.ts'
import { Pawl } from './pawl.ts'
import { policyOf } from './retention/policy.ts'
import { SignalTokens } from './signal-tokens.ts'
import type { PawlParts } from './start-worker.ts'
import { type Place, placeOfOption } from './store-options.ts'
import { loadTracing } from './tracing/opentelemetry.ts'
import { traceStore } from './tracing/trace-store.ts'
import { Tracer } from './tracing/tracer.ts'
import type { PawlEvent } from './watching/events.ts'
import { errorObserver, safeRedact } from './watching/failures.ts'
import { harmless, harmlessLogger } from './watching/hooks.ts'
import { logEvent, SILENT } from './watching/log.ts'
import { type Measuring, measureStore } from './watching/measure-store.ts'
import { measure } from './watching/metrics.ts'
import { observeStore } from './watching/observe-store.ts'
import { observeUnread } from './watching/unread.ts'

/** How the ledger names the author of queue limits that come from the options. */
const OPENER: Requester = { actor: 'client', note: 'the option queues of createPawl' }

const REFUSED_MS = 1000

/** Opens Pawl. Creates the store or migrates its schema if needed. */
export async function createPawl(options: PawlOptions): Promise<Pawl> {
  checkPawlOptions(options)
  const environment = options.environment ?? systemEnvironment()
  const isReal = options.environment === undefined
  const logger = harmlessLogger(options.logger ?? SILENT)
  const jobs = byName(options.jobs ?? [])
  const bounds = payloadBoundsOf(options)
  const ofJobs = [...jobs.values()].map((job) => job.lifecycle)
  const lifecycles = [...new Set([...LIFECYCLES, ...ofJobs, ...(options.lifecycles ?? [])])]
  const { store: given, payloadBytesMax, payloadDepthMax, onFindings } = options
  const measuring = measuringOf(options, environment, logger)
  const observe = observerOf(options, environment, logger, measuring)
  const timeoutMs = options.storeTimeout && toMs(options.storeTimeout, 'storeTimeout')
  const opening = {
    lifecycles,
    environment,
    logger,
    onTimeChange: (change: TimeChange) => observe({ type: 'time', change }),
    ...(payloadBytesMax !== undefined && { payloadBytesMax }),
    ...(payloadDepthMax !== undefined && { payloadDepthMax }),
    ...(onFindings !== undefined && { onFindings }),
    ...(timeoutMs !== undefined && { timeoutMs }),
  }
  const open = (place: Place) =>
    openWhenThere(options, { environment, observe }, (hooks) =>
      openStore(place, { ...opening, ...refusedOf(options, place), ...hooks }),
    )
  const place = placeOfOption(given)
  const tracer = await tracerOf(options, environment, logger)
  const opened = place === undefined ? (given as Store) : await open(place)
  const { clock } = environment
  const measured = measuring === undefined ? opened : measureStore(opened, clock, measuring)
  const store = tracer === undefined ? measured : traceStore(measured, tracer, clock)
  const observed = observeStore(store, { worker: null, observe, lifecycles })
  for (const [queue, limits] of Object.entries(options.queues ?? {})) {
    await observed.limitQueue(queue, limitsOf(limits), OPENER)
  }
  await declareLimits(observed, jobs.values(), options.queues ?? {}, logger)
  const deliverable = deliverableOf(jobs, options.notify, environment)
  const redact = safeRedact(options.redactError, { clock: environment.clock, logger })
  const retention = policyOf(options.retention ?? {}, jobs.values())
  const hearers = [options.onEvent, options.metrics, options.logger]
  const isHeard = hearers.some((hearer) => hearer !== undefined)
  const ports = { environment, isReal, isHeard, logger, retention }
  const tokens = new SignalTokens(options.signalTokens)
  const watching = { observe: observeUnread(observe, store, jobs) }
  const own = { jobs, deliverable, bounds, lifecycles, ...watching, redact, tracer, tokens }
  const parts = { ...ports, ...own }
  const schedules = options.schedules ?? []
  const pawl = new Pawl({ store, place, timeoutMs, schedules, ...parts })
  try {
    for (const schedule of schedules) await pawl.schedules.putAs(schedule, 'code')
    return pawl
  } catch (error) {
    await pawl.close()
    throw error
  }
}

/** Calls a function with the metrics, if there are any. Its exceptions are logged. */
function measuringOf(
  { metrics }: PawlOptions,
  { clock }: Environment,
  logger: Logger,
): Measuring | undefined {
  if (metrics === undefined) return undefined
  const record = (work: Parameters<Measuring>[0]) => work(metrics)
  return harmless('metrics', record, { clock, logger })
}

/** Loads OpenTelemetry, if it is asked for. */
async function tracerOf(
  { tracing }: PawlOptions,
  { clock }: Environment,
  logger: Logger,
): Promise<Tracer | undefined> {
  const loaded = await loadTracing(tracing)
  return loaded && new Tracer(loaded, { clock, logger })
}

/** How long the opening tries if nothing listens at the address; see `connectTimeout`. */
function refusedOf({ connect, connectTimeout, storeTimeout }: PawlOptions, place: Place) {
  if (connectTimeout !== undefined) return { refusedMs: toMs(connectTimeout, 'connectTimeout') }
  const { connectionString = '' } = place.kind === 'postgres' ? place.options : {}
  const hasSeveralHosts = /^[^/]*\/\/[^/?]*,/.test(connectionString)
  const isDefault = connect !== 'wait' && storeTimeout === undefined && !hasSeveralHosts
  return isDefault ? { refusedMs: REFUSED_MS } : {}
}

/** The effects and notices that a dispatcher of this process can deliver. */
function deliverableOf(
  jobs: ReadonlyMap<string, AnyJob>,
  notify: NotifyOptions | undefined,
  { clock }: Environment,
): PawlParts['deliverable'] {
  const known = [...jobs].filter(([, { effects }]) => effects.size > 0)
  const notices = notify === undefined ? [] : [noticesOf(notify, clock)]
  return new Map([...known, ...notices.map((one) => [one.name, one] as const)])
}

/** Writes to the log, then calls `onEvent`, `metrics` and `onError`. Exceptions are logged. */
function observerOf(
  { onEvent, onError, logger: given }: PawlOptions,
  { clock }: Environment,
  logger: Logger,
  measuring: Measuring | undefined,
): (event: PawlEvent) => void {
  const isLogged = given !== undefined
  const emit = harmless('onEvent', onEvent, { clock, logger })
  const toHook = errorObserver(onError, { clock, logger })
  return (event) => {
    if (isLogged) logEvent(logger, event)
    emit(event)
    measuring?.((metrics) => measure(metrics, event))
    toHook(event)
  }
}
