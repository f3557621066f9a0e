/**
 * The log of a run, version 1: `events.ndjson`.
 *
 * One event per line, as one object in canonical JSON (`src/core/canonical-json.ts`), in UTF-8,
 * ended by one line feed. A line is at most 16 MiB long. Its fields are those of
 * `specs/schemas/event.schema.json`, which is the authority:
 *
 *   actor, data, event_id, prev, run_id, seq, span_id, trace_id, ts, type
 *
 * `seq` counts from 1 without gaps: event n is in line n. `prev` is the SHA-256 of the line before,
 * without its line feed, in lower-case hex; in the first line it is 64 zeros. So a change anywhere
 * shows in the line after it, and a change of the last line in the snapshot, which holds its hash.
 *
 * Bytes after the last line feed are no event, even where they would be a whole object: the write
 * that put them there was cut short, and nobody was told that it was done.
 */
import { encode } from '../core/canonical-json.ts'
import { type RunEvent, type RunFact, toEvents } from '../core/run/events.ts'
import { evolveRun } from '../core/run/evolve.ts'
import type { Run } from '../core/run/run.ts'
import type { Environment } from '../environment/system.ts'
import { EventInvalid } from './errors.ts'
import { sha256Of } from './hash.ts'
import type { Author } from './journal.ts'
import { findEventFault } from './schemas.ts'

/** The `prev` of the first line. */
export const NO_HASH = '0'.repeat(64)

/** The longest line, without its line feed. */
export const LINE_BYTES_MAX = 16 * 1024 * 1024

const BOUNDS = { depthMax: 8, bytesMax: LINE_BYTES_MAX }

/** Where a log ends. */
export interface Head {
  readonly run: Run | null
  readonly lastHash: string
}

/** A log that has no line yet. */
export const EMPTY: Head = { run: null, lastHash: NO_HASH }

/** What is added to a log, and where the log ends with it. */
export interface Extension {
  readonly events: readonly RunEvent[]
  /** Without line feeds. */
  readonly lines: readonly string[]
  readonly head: Head & { readonly run: Run }
}

/** The lines of new facts after the end of a log; throws where they do not follow from it. */
export function extend(
  head: Head,
  runId: string,
  facts: readonly RunFact[],
  author: Author,
  { clock, ids }: Pick<Environment, 'clock' | 'ids'>,
): Extension {
  const { trace_id, span_id, actor } = author
  const envelope = { ts: new Date(clock.now()).toISOString(), trace_id, span_id, actor }
  const events = toEvents(runId, head.run?.last_seq ?? 0, facts, envelope, () => ids.next())
  return chain(head, events)
}

/** The lines of events that are put after the end of a log. */
export function chain(head: Head, events: readonly RunEvent[]): Extension {
  let { run, lastHash } = head
  const lines: string[] = []
  for (const event of events) {
    const chained = { ...event, prev: lastHash }
    const fault = findEventFault(chained)
    if (fault !== undefined) throw new EventInvalid(event.run_id, event.type, fault)
    run = evolveRun(run, event)
    const line = encode(chained, BOUNDS)
    lastHash = sha256Of(line)
    lines.push(line)
  }
  if (run === null) throw new EventInvalid('?', '?', 'is missing: a log begins with an event')
  return { events, lines, head: { run, lastHash } }
}
