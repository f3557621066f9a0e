/** Who is told of what happens to runs: the user's own observer, and telemetry. */
import { join } from 'node:path'
import { DefinitionInvalid } from '../../core/errors.ts'
import type { RunEvent } from '../../core/run/events.ts'
import { harmless, harmlessLogger } from '../../engine/watching/hooks.ts'
import { SILENT } from '../../engine/watching/log.ts'
import type { Environment } from '../../environment/system.ts'
import type { Journal } from '../journal/journal.ts'
import type { RefusedEvent, RunObserver } from '../run-log.ts'
import type { RunsOptions } from '../runs-options.ts'
import { Telemetry } from './telemetry.ts'

/** The telemetry of runs; nothing where there is no sink. */
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

/** Both are told; what the user's own throws hurts nobody. */
export function observersOf(
  { observer, environment, logger = SILENT }: RunsOptions & { readonly environment: Environment },
  telemetry: Telemetry | undefined,
): RunObserver {
  const parts = { clock: environment.clock, logger: harmlessLogger(logger) }
  const recorded = observer && ((events: readonly RunEvent[]) => observer.recorded(events))
  const refused = observer && ((event: RefusedEvent) => observer.refused(event))
  const [tellRecorded, tellRefused] = [
    harmless('observer', recorded, parts),
    harmless('observer', refused, parts),
  ]
  return {
    recorded(events) {
      telemetry?.recorded(events)
      tellRecorded(events)
    },
    refused(event) {
      telemetry?.refused(event)
      tellRefused(event)
    },
  }
}
