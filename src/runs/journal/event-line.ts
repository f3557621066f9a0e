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
 * without its line feed, in lower-case hex; in the first line it is 64 zeros. So the line after a
 * changed line reveals the change. For the last line, the snapshot does, which contains its hash.
 *
 * Bytes after the last line feed are not an event, even if they are a whole object: their write was
 * interrupted and was not acknowledged.
 */
import { encode, encodeText } from '../../core/canonical-json.ts'
import { type RunEvent, type RunFact, toEvents } from '../../core/run/events.ts'
import { RunFold } from '../../core/run/evolve.ts'
import type { Environment } from '../../environment/system.ts'
import { EventInvalid } from './errors.ts'
import { sha256Of } from './hash.ts'
import type { Author } from './journal.ts'
import { type ChainedEvent, findEventFault } from './schemas.ts'

/** The `prev` of the first line. */
export const NO_HASH = '0'.repeat(64)

/** The longest line, without its line feed. */
export const LINE_BYTES_MAX = 16 * 1024 * 1024

/** The other fields of an event are far shorter than the difference. */
const DATA_BOUNDS = { depthMax: 7, bytesMax: LINE_BYTES_MAX - 8192 }

/** The end of a log to which lines are appended. */
export interface OpenLog {
  readonly runId: string
  /** The fold of all lines. Must be undoable. */
  readonly fold: RunFold
  readonly lastHash: string
}

export function emptyLog(runId: string): OpenLog {
  return { runId, fold: new RunFold().toUndoable(), lastHash: NO_HASH }
}

/** Events and lines that were appended to a log. */
export interface Extension {
  readonly events: readonly RunEvent[]
  /** Without line feeds. */
  readonly lines: readonly string[]
  /** The hash of the last line. */
  readonly lastHash: string
}

/** Appends facts. If they do not follow from the log, throws and leaves the log unchanged. */
export function extend(
  log: OpenLog,
  facts: readonly RunFact[],
  author: Author,
  { clock, ids }: Pick<Environment, 'clock' | 'ids'>,
): Extension {
  const { trace_id, span_id, actor } = author
  const envelope = { ts: new Date(clock.now()).toISOString(), trace_id, span_id, actor }
  const lastSeq = log.fold.run?.last_seq ?? 0
  return chain(
    log,
    toEvents(log.runId, lastSeq, facts, envelope, () => ids.next()),
  )
}

/** Appends events. If they do not follow from the log, throws and leaves the log unchanged. */
export function chain(log: OpenLog, events: readonly RunEvent[]): Extension {
  const { runId, fold } = log
  const before = fold.run?.last_seq ?? 0
  let { lastHash } = log
  try {
    const lines = events.map((event) => {
      const chained = chainedTo(lastHash, event)
      const fault = findEventFault(chained)
      if (fault !== undefined) throw new EventInvalid(runId, event.type, fault)
      const line = lineOf(chained)
      fold.add(event)
      lastHash = sha256Of(line)
      return line
    })
    if (fold.run === null) throw new EventInvalid(runId, 'RUN_CREATED', 'it is missing')
    return { events, lines, lastHash }
  } catch (error) {
    fold.undoAfter(before)
    throw error
  }
}

/** Field by field, in the order of a line: faster than a spread. */
function chainedTo(prev: string, event: RunEvent): ChainedEvent {
  const { actor, data, event_id, run_id, seq, span_id, trace_id, ts, type } = event
  const fields = { actor, data, event_id, prev, run_id, seq, span_id, trace_id, ts, type }
  return fields as ChainedEvent
}

/**
 * Returns the canonical text of an event that conforms to the schema. Written out, because its
 * names and their order are known, and most values need no escaping.
 */
function lineOf(event: ChainedEvent): string {
  const { actor, data, event_id, prev, run_id, seq, span_id, trace_id, ts, type } = event
  const who = `{"actor":${encodeText(actor)},"data":${encode(data, DATA_BOUNDS)}`
  const where = `"event_id":"${event_id}","prev":"${prev}","run_id":"${run_id}","seq":${seq}`
  const trace = `"span_id":${encodeText(span_id)},"trace_id":${encodeText(trace_id)}`
  return `${who},${where},${trace},"ts":"${ts}","type":"${type}"}`
}
