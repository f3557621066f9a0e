/**
 * The contract of a journal, which stores runs. There are two journals: a folder of files
 * (`folder/`) and tables in a store (`store/`). Both store the same lines, byte for byte, so that a
 * run can be moved from one to the other. Both pass the same suite (`test/contract/journal/`).
 *
 * A run in a journal has
 *
 *   a log        the events in order, one canonical line each, with the hash of the line before it
 *                (`event-line.ts`); all other data except the artifacts can be derived from it
 *   a snapshot   the fold of the log (`snapshot.ts`), for fast reads
 *   artifacts    named contents, stored by name and SHA-256; earlier versions are never replaced
 *   a holder     at most one at a time; only the holder appends
 *
 * Rules of both journals:
 *
 *  1. An append is durable when it resolves. Its events are one write: a crash before it resolves
 *     leaves none of them, all of them, or the first few, whole and in order. A part of an event is
 *     never read as an event.
 *  2. An append that throws `JournalFailed` has added nothing. The appends after it fail as well,
 *     and the writer can continue. If the journal cannot ensure that nothing was added, the writer
 *     is broken: it rejects all calls with `JournalClosed`, and the run must be opened again.
 *  3. A snapshot is written after its events are durable, never before. It is written when the
 *     state of the run changes, on `close`, and when at least 256 events were added since the last
 *     snapshot and the log has grown by four times the length of the snapshot. If it cannot be
 *     written, no append fails; `close` throws.
 *  4. Every read is checked: the chain of hashes, the schema of each event, its number, and that it
 *     follows from the events before it. The first event that fails is reported as `RunLogDamaged`
 *     with its line and offset. No event is skipped, and damaged data is never overwritten.
 *  5. Bytes after the last whole line are not an event: a write was interrupted, or is running.
 *     Readers ignore them and report their number. `open` copies them to another file, removes them
 *     from the log and records LOG_TAIL_DISCARDED.
 *  6. A snapshot that is missing, older than the log or invalid is written again from the log. If
 *     a snapshot has its correct hash and contains events that the log does not have, the log was
 *     cut or replaced: `RunLogDamaged`.
 */
import type { RunEnvelope, RunEvent, RunFact } from '../../core/run/events.ts'
import type { Run } from '../../core/run/run.ts'

/** The author and trace of events. The journal adds the time. */
export type Author = Omit<RunEnvelope, 'ts'>

/** The process that holds a run. */
export interface Holder {
  readonly host: string
  readonly pid: number
  /** UTC, ISO 8601. */
  readonly since: string
}

/** A request to cancel a run that another process holds. Its holder cancels it. */
export interface CancelRequest {
  readonly reason: string
  readonly actor: string
  /** UTC, ISO 8601. */
  readonly ts: string
}

/** A run, read from its log. */
export interface Replayed {
  readonly run: Run
  /** The hash of the last line. */
  readonly lastHash: string
  /** The number of bytes after the last whole line; see rule 5. */
  readonly tornBytes: number
  /** The damage of the log, if `failDamaged` recorded it. */
  readonly damage?: Damage
}

/** The first damaged line of a log. */
export interface Damage {
  /** Counted from 1; 0 if the log is missing. */
  readonly line: number
  /** The offset of the line in the log, in bytes. */
  readonly offset: number
  readonly why: string
}

/** The recorded failure of a run with a damaged log. */
export interface RunFailureRecord {
  /** The SHA-256 of the damaged log. */
  readonly id: string
  readonly damage: Damage
  /** The events of the failure. They follow the last event before the damage. */
  readonly events: readonly RunEvent[]
}

/** Returns the facts by which a damaged run fails. */
export type DecideFailure = (
  run: Run | null,
  damage: Damage,
) => readonly RunFact[] | Promise<readonly RunFact[]>

/** A finding of `verify`. */
export interface RunFinding {
  readonly kind: 'log' | 'tail' | 'snapshot' | 'artifact' | 'lease'
  /** `notice`: opening the run repairs it (tail, late snapshot, lease). */
  readonly severity: 'error' | 'notice'
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

/** A stored content. */
export interface StoredArtifact {
  /** Its path in the run's folder, made of name and hash (`names.ts`). */
  readonly path: string
  readonly sha256: string
}

/** A run from another journal. */
export interface RestoredRun {
  readonly runId: string
  readonly lines: readonly string[]
  readonly artifacts: readonly { readonly name: string; readonly content: Uint8Array }[]
}

/** Artifacts by name. */
export type ArtifactHashes = Readonly<Record<string, { readonly sha256: string }>>

/** A range of events, both ends included. */
export interface EventRange {
  readonly from?: number
  readonly to?: number
}

/** Reads a run. Nothing stays open between calls. */
export interface RunReader {
  readonly runId: string
  /**
   * Reads and checks the whole log. Returns a run with recorded damage as it failed. `onEvent`
   * receives every event up to the end or the damage.
   */
  replay(onEvent?: (event: RunEvent) => void): Promise<Replayed>
  /** Yields the lines of the log without line feeds. Each line is checked. */
  lines(range?: Pick<EventRange, 'to'>): AsyncIterable<string>
  /**
   * Yields the events in order. Each event is checked. At the damage it continues with the events
   * of the recorded failure, or throws `RunLogDamaged` if none was recorded.
   */
  events(range?: EventRange): AsyncIterable<RunEvent>
  /** Returns the record of the current damage, or `undefined` if there is none. */
  failure(): Promise<RunFailureRecord | undefined>
  /**
   * Returns the run after an event, or `undefined` if the log has no such event. If the log is
   * damaged up to this event, returns the run as it failed, or throws `RunLogDamaged` if the damage
   * was not recorded.
   */
  asOf(seq: number): Promise<Run | undefined>
  /** Returns the content of an artifact. Throws `ArtifactMissing` or `ArtifactChanged`. */
  readArtifact(name: string, sha256: string): Promise<Uint8Array>
  /**
   * Returns the names of artifacts with a missing or changed content, sorted. In a folder, a file
   * with the same size and times as at the last check is not read, unless `paranoid`.
   */
  findDamaged(
    artifacts: ArtifactHashes,
    options?: { readonly paranoid?: boolean },
  ): Promise<string[]>
  /** Returns the current holder. The answer may be outdated at once. */
  holder(): Promise<Holder | undefined>
  cancelRequest(): Promise<CancelRequest | undefined>
}

/** Writes to a run that this process holds. */
export interface RunWriter extends AsyncDisposable {
  readonly runId: string
  /**
   * The fold of all appended events, including those that are not durable yet. If you decide on it
   * and append in the same turn of the event loop, no other append comes between. The next append
   * changes the object in place: copying a large run for every event would be slow.
   */
  readonly run: Run
  /** The hash of the last line. */
  readonly lastHash: string
  /** Aborted with `RunLost` if this process no longer holds the run: its lease expired. */
  readonly signal: AbortSignal
  /**
   * Appends events for these facts, which were decided on `run`. Resolves when they are durable
   * (rules 1 to 3). Appends keep their order; those that wait for a write share the next one.
   * Throws `LedgerBroken` if the facts do not follow from the run, and `RunLost` if another process
   * holds the run; nothing is written then.
   */
  append(facts: readonly RunFact[], author: Author): Promise<RunEvent[]>
  /**
   * Calls `look` with a function that adds facts to `run` without appending them. When `look`
   * returns or throws, these facts are removed from `run`.
   */
  preview<T>(look: (assume: (facts: readonly RunFact[]) => void) => T): T
  /** Stores a content durably. The caller appends the event that makes it an artifact. */
  writeArtifact(name: string, content: Uint8Array): Promise<StoredArtifact>
  readArtifact(name: string, sha256: string): Promise<Uint8Array>
  /** The same as `RunReader.findDamaged`; also stores the sizes and times of the files. */
  findDamaged(
    artifacts: ArtifactHashes,
    options?: { readonly paranoid?: boolean },
  ): Promise<string[]>
  /** Returns the last request to cancel the run. */
  cancelRequest(): Promise<CancelRequest | undefined>
  /** Writes the snapshot and releases the run. A second call does nothing. */
  close(): Promise<void>
}

/** Stores runs. Every method throws `RunNameInvalid` for an invalid id (`names.ts`). */
export interface Journal extends AsyncDisposable {
  /**
   * Creates a run with its first facts and holds it. Throws `RunExists` if its log has an event. A
   * creation that a crash interrupted left nothing and can be repeated.
   */
  create(runId: string, facts: readonly RunFact[], author: Author): Promise<RunWriter>
  /**
   * Opens a run for writing. Throws `RunHeld` if another process holds it, `RunNotFound` and
   * `RunLogDamaged`. Repairs the tail (rule 5) and the snapshot (rule 6).
   * `onEvent` receives every event while the log is read, so that the log need not be read again.
   * `author` may be a function; it is called after that.
   */
  open(
    runId: string,
    author: Author | (() => Author),
    onEvent?: (event: RunEvent) => void,
  ): Promise<RunWriter>
  /** Throws `RunNotFound`. */
  read(runId: string): Promise<RunReader>
  /** Returns the ids of all runs, sorted. */
  list(): Promise<string[]>
  /**
   * Returns the run from its snapshot, which may be older than the log, or as it failed if its
   * damage was recorded. Returns `undefined` if there is no valid snapshot.
   */
  peek(runId: string): Promise<Run | undefined>
  /** Checks log, chain, schemas, order, snapshot and artifacts. Changes nothing. */
  verify(runId: string): Promise<RunFinding[]>
  /** Asks the holder to cancel the run. The request is durable and may be repeated. */
  requestCancel(runId: string, request: Omit<CancelRequest, 'ts'>): Promise<void>
  /**
   * Records beside the log that a damaged run has failed. The log is not changed. `decide` receives
   * the run before the damage, or null if not even the first event can be read, and returns the
   * facts: the issue SnapshotInvalid and the failure. Does nothing if this was recorded for the
   * same bytes. Throws `RunNotDamaged` if the log can be read.
   */
  failDamaged(runId: string, decide: DecideFailure, author: Author): Promise<Replayed>
  /**
   * Imports a whole run. Checks it before anything is written; afterwards the run exists completely
   * or not at all. Returns `same` if the run exists with the same lines, and throws `RunExists` if
   * it has others.
   */
  restore(restored: RestoredRun): Promise<'restored' | 'same'>
  /** Closes all open writers. */
  close(): Promise<void>
}
