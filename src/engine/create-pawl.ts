/** Opens Pawl: checks the options, opens the store, and connects the observers. */
import { LIFECYCLES } from '../core/lifecycles/index.ts'
import type { Logger } from '../core/ports.ts'
import { type Environment, systemEnvironment } from '../environment/system.ts'
import { payloadBoundsOf } from '../stores/requests.ts'
import type { Asker } from '../stores/store.ts'
import type { TimeChange } from '../stores/store-time.ts'
import { openWhenThere } from './connecting.ts'
import { toMs } from './durations.ts'
import { type NotifyOptions, noticesOf } from './effects/notify.ts'
import { type AnyJob, byName } from './job-types.ts'
import { openStore } from './open-store.ts'
import { checkPawlOptions, limitsOf, type PawlOptions } from './options.ts'
import { Pawl } from './pawl.ts'
import type { PawlParts } from './start-worker.ts'
import type { PawlEvent } from './watching/events.ts'
import { harmless, harmlessLogger } from './watching/hooks.ts'
import { logEvent, SILENT } from './watching/log.ts'
import { measure } from './watching/metrics.ts'
import { observeStore } from './watching/observe-store.ts'

/** How the ledger names the author of queue limits that come from the options. */
const OPENER: Asker = { actor: 'client', note: 'the option queues of createPawl' }

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
  const observe = observerOf(options, environment, logger)
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
  const open = (name: string) =>
    openWhenThere(options, { environment, observe }, (hooks) =>
      openStore(name, { ...opening, ...hooks }),
    )
  const store = typeof given === 'string' ? await open(given) : given
  const storeName = typeof given === 'string' ? given : undefined
  const observed = observeStore(store, { worker: null, observe, lifecycles })
  for (const [queue, limits] of Object.entries(options.queues ?? {})) {
    await observed.limitQueue(queue, limitsOf(limits), OPENER)
  }
  const deliverable = deliverableOf(jobs, options.notify, environment)
  const parts = { environment, isReal, logger, jobs, deliverable, bounds, lifecycles, observe }
  return new Pawl({ store, storeName, timeoutMs, ...parts })
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

/** Writes to the log, then calls `onEvent` and `metrics`. Their exceptions are logged. */
function observerOf(
  { onEvent, metrics }: PawlOptions,
  { clock }: Environment,
  logger: Logger,
): (event: PawlEvent) => void {
  const emit = harmless('onEvent', onEvent, { clock, logger })
  const toMetrics = metrics && ((event: PawlEvent) => measure(metrics, event))
  const measured = harmless('metrics', toMetrics, { clock, logger })
  return (event) => {
    logEvent(logger, event)
    emit(event)
    measured(event)
  }
}
