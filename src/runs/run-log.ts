/**
 * The log of a run that this process works on. A command is decided on the current state, and its
 * facts are appended in the same turn of the event loop, so that no other command comes between.
 * Several commands of one call are applied together or not at all.
 *
 * The order is: event, then snapshot, then telemetry.
 */
import type { Logger } from '../core/ports.ts'
import type { RunCommand } from '../core/run/commands.ts'
import { decideRun, type RefusedTransition } from '../core/run/decide.ts'
import { type RunEvent, type RunFact, toEvents } from '../core/run/events.ts'
import { evolveRun } from '../core/run/evolve.ts'
import type { RunMachine } from '../core/run/machine.ts'
import type { Run } from '../core/run/run.ts'
import type { Author, RunWriter } from './journal/journal.ts'

/** A refused transition, for telemetry. It is not in the log. */
export interface RefusedEvent extends RefusedTransition, Author {
  readonly run_id: string
  readonly ts: string
}

/** Receives events after they are durable, and refused transitions. */
export interface RunObserver {
  recorded(events: readonly RunEvent[]): void
  refused(event: RefusedEvent): void
}

export interface RunLogParts {
  readonly writer: RunWriter
  readonly machine: RunMachine
  readonly logger: Logger
  readonly observer: RunObserver
  readonly now: () => string
}

export class RunLog {
  readonly #parts: RunLogParts

  constructor(parts: RunLogParts) {
    this.#parts = parts
  }

  get run(): Run {
    return this.#parts.writer.run
  }

  get writer(): RunWriter {
    return this.#parts.writer
  }

  /** Applies commands and returns their events when they are durable. Throws if one is rejected. */
  async applyCommand(
    author: Author,
    ...commands: readonly RunCommand[]
  ): Promise<readonly RunEvent[]> {
    const { writer, observer } = this.#parts
    const facts = this.#decide(author, commands)
    if (facts.length === 0) return []
    const events = await writer.append(facts, author)
    this.#logEvents(events)
    observer.recorded(events)
    return events
  }

  #decide(author: Author, commands: readonly RunCommand[]): RunFact[] {
    const { machine, writer } = this.#parts
    return writer.preview((assume) => {
      const facts: RunFact[] = []
      for (const command of commands) {
        const decision = decideRun(machine, writer.run, command)
        if (decision.kind === 'rejected') {
          if (decision.telemetry !== undefined) this.#refused(decision.telemetry, author)
          throw decision.error
        }
        if (decision.kind === 'same') continue
        facts.push(...decision.facts)
        assume(decision.facts)
      }
      return facts
    })
  }

  #refused(refused: RefusedTransition, author: Author): void {
    const { logger, observer, now } = this.#parts
    const { from_state, to_state } = refused.data
    const fields = { event: 'run.transition_refused', run_id: this.run.run_id, ...refused.data }
    logger.error(fields, `Invalid transition: ${from_state} → ${to_state}`)
    observer.refused({ ...refused, ...author, run_id: this.run.run_id, ts: now() })
  }

  #logEvents(events: readonly RunEvent[]): void {
    const { logger } = this.#parts
    for (const { type, data, run_id, seq, trace_id, span_id } of events) {
      const fields = { event: `run.${type.toLowerCase()}`, run_id, seq, trace_id, span_id }
      if (type === 'RUN_STATE_CHANGED') {
        logger.info({ ...fields, ...data }, `${data.from_state} → ${data.to_state}`)
      } else if (type === 'RESUME_REWIND') {
        logger.warn({ ...fields, ...data }, `Rewound: ${data.from_state} → ${data.to_state}`)
      } else if (type === 'WORK_ITEM_FAILED') {
        logger.warn({ ...fields, ...data }, `Work item ${data.key} failed`)
      } else logger.debug({ ...fields, ...data }, type)
    }
  }
}

/** Returns the facts of a command, without appending them. Throws if the command is rejected. */
export function factsOf(
  machine: RunMachine,
  run: Run | null,
  command: RunCommand,
): readonly RunFact[] {
  const decision = decideRun(machine, run, command)
  if (decision.kind === 'rejected') throw decision.error
  return decision.kind === 'facts' ? decision.facts : []
}

/** Returns the run after facts. The facts get empty envelopes, so times and ids are missing. */
export function foldFacts<R extends Run | null>(run: R, facts: readonly RunFact[]): R | Run {
  const envelope = { ts: '', trace_id: '', span_id: '', actor: '' }
  const events = toEvents(run?.run_id ?? '', run?.last_seq ?? 0, facts, envelope, () => '')
  return events.reduce<R | Run>(evolveRun, run)
}
