/** Passes events to the user's observer and to telemetry. */
import { join } from 'node:path'
import { DefinitionInvalid } from '../../core/errors.ts'
import type { RunEvent, RunFact } from '../../core/run/events.ts'
import { harmless, harmlessLogger } from '../../engine/watching/hooks.ts'
import { SILENT } from '../../engine/watching/log.ts'
import type { Metrics } from '../../engine/watching/metrics.ts'
import type { Environment } from '../../environment/system.ts'
import type { Journal } from '../journal/journal.ts'
import type { RefusedEvent, RunObserver } from '../run-log.ts'
import type { RunsOptions } from '../runs-options.ts'
import { Telemetry } from './telemetry.ts'

/** Makes the telemetry of runs. Returns `undefined` if there is no sink. */
export function telemetryOf(
  { folder, telemetry: sink, telemetryFolder, logger = SILENT }: RunsOptions,
  journal: Journal,
  environment: Environment,
): Telemetry | undefined {
  if (sink === undefined) return undefined
  const own = telemetryFolder ?? (folder === undefined ? undefined : join(folder, '.telemetry'))
  if (own === undefined) {
    throw new DefinitionInvalid('openRuns', 'telemetry needs a telemetryFolder')
  }
  return new Telemetry({ journal, sink, folder: own, environment, logger: harmlessLogger(logger) })
}

export interface RunObservers extends RunObserver {
  /** Counts the first facts of a run. Telemetry reads them from the journal. */
  created(facts: readonly RunFact[]): void
}

/** Calls telemetry and the user's observer. Errors of the observer are caught and logged. */
export function observersOf(
  options: RunsOptions & { readonly environment: Environment },
  telemetry: Telemetry | undefined,
): RunObservers {
  const { observer, metrics, environment, logger = SILENT } = options
  const parts = { clock: environment.clock, logger: harmlessLogger(logger) }
  const recorded = observer && ((events: readonly RunEvent[]) => observer.recorded(events))
  const refused = observer && ((event: RefusedEvent) => observer.refused(event))
  const [tellRecorded, tellRefused] = [
    harmless('observer', recorded, parts),
    harmless('observer', refused, parts),
  ]
  const toMetrics = metrics && ((seen: Seen) => measureRun(metrics, seen))
  const measured = harmless('metrics', toMetrics, parts)
  return {
    created: (facts) => measured({ events: facts }),
    recorded(events) {
      telemetry?.recorded(events)
      measured({ events })
      tellRecorded(events)
    },
    refused(event) {
      telemetry?.refused(event)
      measured({ refused: event })
      tellRefused(event)
    },
  }
}

interface Seen {
  readonly events?: readonly Pick<RunEvent, 'type'>[]
  readonly refused?: RefusedEvent
}

/** Records the measurements of events. */
function measureRun(metrics: Metrics, { events = [], refused }: Seen): void {
  for (const { type } of events) metrics.count('pawl_run_events_total', { type })
  if (refused === undefined) return
  const { from_state: from, to_state: to } = refused.data
  metrics.count('pawl_run_transitions_rejected_total', { from, to })
}
