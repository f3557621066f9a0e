/**
 * The run as folded from its events. This is the content of `snapshot.json`, with the names of the
 * run requirements (R4). Collections are keyed, and canonical JSON sorts keys, so their order does
 * not depend on the order in which work was completed.
 */

/** A named file of the run. */
export interface Artifact {
  readonly path: string
  readonly sha256: string
  readonly schema_id: string | null
  readonly writer_worker: string
  readonly ts: string
  /** The work item that wrote it. */
  readonly work_item: string | null
  /** The changed artifact that made this one stale; null if it is not stale. */
  readonly stale_because: string | null
}

/** A unit of work inside the run. */
export interface WorkItem {
  readonly status: 'started' | 'finished' | 'failed'
  readonly attempts: number
  /** What it read: artifact or parameter name → hash. */
  readonly inputs: Readonly<Record<string, string>>
  /** The names in `inputs` that were declared before it ran. It read the others while it ran. */
  readonly declared: readonly string[]
  /** Its declared code version; null if none was declared. */
  readonly code: string | null
  readonly worker: string
  readonly started_at: string
  readonly finished_at: string | null
  readonly error: string | null
}

/** A problem of the run. */
export interface Issue {
  readonly status: 'open' | 'resolved'
  readonly severity: 'blocker' | 'error' | 'warning'
  readonly message: string
  readonly opened_at: string
  readonly resolved_at: string | null
}

export interface Validation {
  readonly ok: boolean
  readonly ts: string
  /** How many stable states had been visited then; absent in older logs. */
  readonly trail_length?: number
}

/** A run: the fold of its events. */
export interface Run {
  readonly run_id: string
  readonly run_state: string
  readonly machine: { readonly name: string; readonly version: number }
  readonly last_seq: number
  readonly section_states: Readonly<Record<string, string>>
  readonly artifacts_index: Readonly<Record<string, Artifact>>
  readonly work_items: Readonly<Record<string, WorkItem>>
  readonly issues: Readonly<Record<string, Issue>>
  /** The last validation since the validating state was entered. */
  readonly validation: Validation | null
  /** How many fix attempts have run since the run began or its inputs changed. */
  readonly fix_attempts: number
  /** Set while the run is in its fixing state and no work of that attempt has run. */
  readonly fix_pending?: true | undefined
  readonly max_fix_attempts: number
  /** The visited stable states, in order. A rewind removes those after its target. */
  readonly stable_trail: readonly string[]
  /** The hashes of the commits that belong to the run. */
  readonly commits: readonly string[]
  /** Why the run failed or was cancelled. */
  readonly ended_because: string | null
}

/** Returns an own entry of a record. Users choose the names, and `__proto__` is a valid name. */
export function entryOf<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}
