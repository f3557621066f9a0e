/**
 * THE contract of a journal: the place where runs live. There are two kinds, a folder of files
 * (`folder/`) and tables in a store (`store-journal.ts`). Both keep the same lines, byte for byte,
 * so that a run can be carried from one to the other, and both pass the same suite.
 *
 * A run in a journal is
 *
 *   its log        events in order, each in one canonical line that holds the hash of the line
 *                  before it (`event-line.ts`): the truth
 *   its snapshot   the fold of the log (`snapshot.ts`): derived, for fast looks
 *   its artifacts  named contents, kept by name and sha256: an earlier version is never replaced
 *   its holder     at most one at a time; only the holder appends
 *
 * Rules that hold for every kind:
 *
 *  1. An append is durable when it resolves. Its events are one write: a crash before it resolves
 *     leaves none of them, all of them, or the first few, in order and whole, and never a part of
 *     one that counts.
 *  2. An append that throws `JournalFailed` has added nothing, nor have those that were made after
 *     it, and the writer can go on. If even that cannot be made sure, the writer is broken: it
 *     refuses everything with `JournalClosed`, and the run must be opened again.
 *  3. A snapshot is written after its events are durable, never before. It is written when the
 *     state of the run changed, on `close`, and when 256 events have passed since the last one and
 *     the log has grown by four times its length.
 *     A failure to write it fails no append; `close` reports it.
 *  4. Whatever is read is checked: the chain of hashes, the schema of each event, its place in the
 *     order, and that it follows from the run before it. What does not pass is `RunLogDamaged`,
 *     with its place. Nothing is skipped, and nothing damaged is ever overwritten.
 *  5. Bytes after the last whole line are no event: a write that was cut short, or one under way.
 *     Readers leave them out and say so. Whoever opens the run for writing sets them aside, cuts
 *     them off and records LOG_TAIL_DISCARDED.
 *  6. A snapshot that is missing, older than the log or not valid is made anew from the log. One
 *     that its own hash fits, and that speaks of events that the log does not have, proves that the
 *     log was cut or replaced: `RunLogDamaged`.
 */
import type { RunEnvelope, RunEvent, RunFact } from '../../core/run/events.ts'
import type { Run } from '../../core/run/run.ts'

/** Who appends, and in which trace; the journal adds the time. */
export type Author = Omit<RunEnvelope, 'ts'>

/** Who holds a run. */
export interface Holder {
  readonly host: string
  readonly pid: number
  /** UTC, ISO 8601. */
  readonly since: string
}

/** A wish of somebody who does not hold the run; its holder honours it. */
export interface CancelRequest {
  readonly reason: string
  /** Who asked. */
  readonly actor: string
  /** UTC, ISO 8601. */
  readonly ts: string
}

/** A run as its log tells it. */
export interface Replayed {
  readonly run: Run
  /** The hash of the last line. */
  readonly lastHash: string
  /** How many bytes after the last whole line were left out; see rule 5. */
  readonly tornBytes: number
  /** Why the log cannot be read to its end, where that was recorded by `failDamaged`. */
  readonly damage?: Damage
}

/** What is wrong with a log, and where. */
export interface Damage {
  /** Counted from 1; 0 where the log is missing. */
  readonly line: number
  /** Where the line begins, in bytes from the beginning of the log. */
  readonly offset: number
  readonly why: string
}

/** How a run whose log is damaged has failed. */
export interface RunFailureRecord {
  /** The SHA-256 of the damaged log. */
  readonly id: string
  readonly damage: Damage
  /** They follow the last event before the damage. */
  readonly events: readonly RunEvent[]
}

/** The facts by which a damaged run fails. */
export type DecideFailure = (
  run: Run | null,
  damage: Damage,
) => readonly RunFact[] | Promise<readonly RunFact[]>

/** Something that `verify` found. */
export interface RunFinding {
  readonly kind: 'log' | 'tail' | 'snapshot' | 'artifact' | 'lease'
  /** Whether the run is still whole: tail, late snapshot and lease are mended by opening it. */
  readonly severity: 'error' | 'notice'
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

/** A content that was stored. */
export interface StoredArtifact {
  /** Where it is, from the run's folder on; made of name and hash alone (`names.ts`). */
  readonly path: string
  readonly sha256: string
}

/** A run that comes from another journal. */
export interface RestoredRun {
  readonly runId: string
  readonly lines: readonly string[]
  readonly artifacts: readonly { readonly name: string; readonly content: Uint8Array }[]
}

/** Artifacts by name. */
export type ArtifactHashes = Readonly<Record<string, { readonly sha256: string }>>

/** The events of a run that are asked for; both ends are included. */
export interface EventRange {
  readonly from?: number
  readonly to?: number
}

/** A run, for those who only read it. Nothing is kept open between calls. */
export interface RunReader {
  readonly runId: string
  /**
   * Reads and checks the whole log. A run whose damage was recorded is shown as it failed.
   * `onEvent` is told of every event up to the end or the damage.
   */
  replay(onEvent?: (event: RunEvent) => void): Promise<Replayed>
  /** The lines of the log as they are, checked as they are read, without their line feeds. */
  lines(range?: Pick<EventRange, 'to'>): AsyncIterable<string>
  /**
   * Every event in order, checked as it is read. At the first that is damaged it goes on with those
   * by which the run failed, if they were recorded, and throws if not.
   */
  events(range?: EventRange): AsyncIterable<RunEvent>
  /** What was recorded of the damage that the log has now; nothing if nothing was. */
  failure(): Promise<RunFailureRecord | undefined>
  /** The run as it was after an event; nothing where the log has no such event. */
  asOf(seq: number): Promise<Run | undefined>
  /** The content of an artifact; throws `ArtifactMissing` or `ArtifactChanged`. */
  readArtifact(name: string, sha256: string): Promise<Uint8Array>
  /**
   * The names of artifacts whose content is gone or was changed, sorted. In a folder, a file that
   * looks as it did when its content was last found right is not read, unless `paranoid`.
   */
  findDamaged(
    artifacts: ArtifactHashes,
    options?: { readonly paranoid?: boolean },
  ): Promise<string[]>
  /** Who holds the run now, as far as can be told; a hint. */
  holder(): Promise<Holder | undefined>
  cancelRequest(): Promise<CancelRequest | undefined>
}

/** A run, for the one who holds it. */
export interface RunWriter extends AsyncDisposable {
  readonly runId: string
  /**
   * The fold of everything that was appended, also of what is not durable yet. Decide on it and
   * append in the same turn of the event loop, and nothing can come between. It is the run as it
   * is, not as it was: the next append changes it in place, because a copy for every event would
   * be dear where a run holds much.
   */
  readonly run: Run
  /** The hash of the line of its last event. */
  readonly lastHash: string
  /** Aborted with `RunLost` when the right to write was lost: in a store, an expired lease. */
  readonly signal: AbortSignal
  /**
   * Adds events for these facts, which were decided on `run`; resolves when they are durable, see
   * rules 1 to 3. Appends keep their order, and those that wait while one is being written share
   * the next write. Facts that do not follow from the run are refused with `LedgerBroken`, and
   * nothing is written. Throws `RunLost` where another holds the run by now.
   */
  append(facts: readonly RunFact[], author: Author): Promise<RunEvent[]>
  /**
   * Lets somebody see the run as it would be after facts that are not appended: `assume` adds them
   * to `run`, and when `look` returns or throws, they are taken back.
   */
  preview<T>(look: (assume: (facts: readonly RunFact[]) => void) => T): T
  /** Keeps a content, durably; the event that makes it an artifact is the caller's to append. */
  writeArtifact(name: string, content: Uint8Array): Promise<StoredArtifact>
  readArtifact(name: string, sha256: string): Promise<Uint8Array>
  /** As a reader does, and remembers what the files look like. */
  findDamaged(
    artifacts: ArtifactHashes,
    options?: { readonly paranoid?: boolean },
  ): Promise<string[]>
  /** Whether somebody asked that the run be cancelled. */
  cancelRequest(): Promise<CancelRequest | undefined>
  /** Brings the snapshot up to date and gives the run free; a second call does nothing. */
  close(): Promise<void>
}

/** A place where runs live. Ids are checked first: see `names.ts`, `RunNameInvalid`. */
export interface Journal extends AsyncDisposable {
  /**
   * Begins a run with its first facts, and holds it. Throws `RunExists` where its log has an event.
   * A creation that a crash cut short left nothing, and can be repeated.
   */
  create(runId: string, facts: readonly RunFact[], author: Author): Promise<RunWriter>
  /**
   * Takes the right to write; throws `RunHeld` where another has it, `RunNotFound` and
   * `RunLogDamaged`. Mends what may be mended: the tail (rule 5) and the snapshot (rule 6).
   * `onEvent` is told of every event as it is read, so that nobody has to read the log again.
   */
  open(runId: string, author: Author, onEvent?: (event: RunEvent) => void): Promise<RunWriter>
  /** Throws `RunNotFound`. */
  read(runId: string): Promise<RunReader>
  /** The ids of all runs, sorted. */
  list(): Promise<string[]>
  /**
   * The run by its snapshot, perhaps behind its log, or as it failed if its damage was recorded;
   * nothing if there is no valid snapshot. The log is not read.
   */
  peek(runId: string): Promise<Run | undefined>
  /** Checks log, chain, schemas, order, snapshot and artifacts; changes nothing. */
  verify(runId: string): Promise<RunFinding[]>
  /** Asks whoever holds the run to cancel it; durable, and repeated at will. */
  requestCancel(runId: string, request: Omit<CancelRequest, 'ts'>): Promise<void>
  /**
   * Records that a damaged run has failed, beside its log, which stays as it is. `decide` gets the
   * run up to the damage, or null where not even its first event can be read, and gives the facts:
   * the issue SnapshotInvalid and the failure. Once recorded for the same bytes, nothing is added.
   * Throws `RunNotDamaged` where the log can be read.
   */
  failDamaged(runId: string, decide: DecideFailure, author: Author): Promise<Replayed>
  /**
   * Takes over a whole run with lines that came from elsewhere, checked before anything is kept;
   * all of it is there afterwards, or nothing that counts. Nothing is done where the run exists
   * with the same lines; throws `RunExists` where it has others.
   */
  restore(restored: RestoredRun): Promise<'restored' | 'same'>
  /** Closes every writer that is still open. */
  close(): Promise<void>
}
