/**
 * The events of a run, with the names that the run requirements (R4) and its telemetry use. An
 * event is a fact in an envelope. The log that writes the event adds `prev`, the hash of the line
 * before it.
 *
 * INVALID_STATE_TRANSITION changes nothing and goes to telemetry only: it is not an event of the
 * log. A rejection carries it (see `decide.ts`).
 */

/** The data of each event type. */
export interface RunEventData {
  readonly RUN_CREATED: {
    readonly state: string
    readonly machine: string
    readonly machine_version: number
    readonly max_fix_attempts: number
    /** The run can be resumed from the initial state. */
    readonly stable?: true
    /** The event of another run after which this run was forked. */
    readonly origin?: { readonly run_id: string; readonly seq: number; readonly hash: string }
  }
  readonly RUN_STATE_CHANGED: {
    readonly from_state: string
    readonly to_state: string
    /** The run can be resumed from this state. */
    readonly stable?: true
    /** Older logs: entering the state counted as a fix attempt, even if its work did not run. */
    readonly fixing?: true
    /** The run enters the fixing state. FIX_ATTEMPTED counts the attempt. */
    readonly fix_pending?: true
    /** Entering the state invalidates an earlier validation. */
    readonly validating?: true
  }
  readonly ARTIFACT_WRITTEN: {
    readonly name: string
    readonly path: string
    readonly sha256: string
    readonly schema_id: string | null
    readonly writer_worker: string
    readonly work_item: string | null
  }
  readonly ARTIFACT_STALE: { readonly name: string; readonly because: string }
  readonly ARTIFACT_REVALIDATED: { readonly name: string }
  readonly WORK_ITEM_STARTED: {
    readonly key: string
    readonly inputs: Readonly<Record<string, string>>
    readonly code: string | null
    readonly worker: string
    readonly because: StartBecause
  }
  readonly WORK_ITEM_FINISHED: {
    readonly key: string
    readonly inputs: Readonly<Record<string, string>>
  }
  readonly WORK_ITEM_FAILED: { readonly key: string; readonly error: string }
  readonly SECTION_STATE_CHANGED: {
    readonly section: string
    readonly from_state: string | null
    readonly to_state: string
  }
  readonly VALIDATION_RECORDED: {
    readonly ok: boolean
    /** How many stable states the run had visited; absent in older logs. */
    readonly trail_length?: number
  }
  /** The work of a fix has run. Spends one of `max_fix_attempts`. */
  readonly FIX_ATTEMPTED: { readonly attempt: number }
  /** An external input of the run changed, so the count of fix attempts starts at 0 again. */
  readonly FIX_ATTEMPTS_RESET: { readonly spent: number; readonly because: string }
  readonly ISSUE_OPENED: {
    readonly issue: string
    readonly severity: 'blocker' | 'error' | 'warning'
    readonly message: string
  }
  readonly ISSUE_RESOLVED: { readonly issue: string }
  readonly RESUME_REWIND: {
    readonly from_state: string
    readonly to_state: string
    readonly reason: 'resume' | 'stale'
    /** The run goes back to its initial state, although it is not stable. */
    readonly initial?: true
    /** The state was entered after the last validation, which therefore remains valid. */
    readonly keeps_validation?: true
  }
  readonly LOG_TAIL_DISCARDED: { readonly bytes: number; readonly sha256: string }
  readonly COMMIT_LINKED: { readonly sha: string }
  readonly RUN_FAILED: { readonly reason: string }
  readonly RUN_CANCELLED: { readonly reason: string }
}

/** Why a work item runs. */
export type StartBecause = 'new' | 'interrupted' | 'failed' | 'forced' | 'stale' | 'code_changed'

export type RunEventType = keyof RunEventData

/** What happened, without the envelope. */
export type RunFact = {
  readonly [T in RunEventType]: { readonly type: T; readonly data: RunEventData[T] }
}[RunEventType]

/** The fields of the envelope that the caller provides. */
export interface RunEnvelope {
  /** UTC, ISO 8601. */
  readonly ts: string
  readonly trace_id: string
  readonly span_id: string
  readonly actor: string
}

/** One event of the log. */
export type RunEvent = RunFact &
  RunEnvelope & {
    readonly event_id: string
    readonly run_id: string
    readonly seq: number
  }

/** Puts decided facts into envelopes, numbered after the last event of the run. */
export function toEvents(
  runId: string,
  lastSeq: number,
  facts: readonly RunFact[],
  envelope: RunEnvelope,
  newId: () => string,
): RunEvent[] {
  const { ts, trace_id, span_id, actor } = envelope
  // Field by field, in the order of a line: a spread would take longer than everything else here.
  return facts.map(({ type, data }, i) => {
    const event_id = newId()
    const seq = lastSeq + 1 + i
    return { actor, data, event_id, run_id: runId, seq, span_id, trace_id, ts, type } as RunEvent
  })
}
