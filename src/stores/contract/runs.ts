/**
 * The tables of runs, for the journal in a store (`src/runs/journal/store/`). The store keeps lines
 * and contents as they are and does not parse them.
 *
 * A process holds a run by its lease until the lease ends. Every write has the lease in its
 * condition, so a process that lost the run changes nothing. A lease that ended cannot be renewed.
 * Every verb is atomic, and the store repeats it if the reply was lost.
 */

/** The right to write to a run. */
export interface RunLease {
  readonly runId: string
  /** A unique id, different for every lease. */
  readonly fence: string
}

/** The end of a log. */
interface LogEnd {
  readonly seq: number
  readonly hash: string
}

/** The row of a run, without its lines and contents. */
export interface RunRow {
  readonly end: LogEnd
  readonly snapshot: string
  /** The holder, as JSON text; absent if the run is not held or its lease has ended. */
  readonly holder?: string
  /** Present if its lease ends later than any lease can; it counts as ended. */
  readonly endless?: true
  /** The last request to cancel it, as JSON text. */
  readonly cancel?: string
  /** The record of its damage, as text. */
  readonly failure?: string
}

export interface NewRun {
  readonly runId: string
  readonly lines: readonly string[]
  readonly end: LogEnd
  readonly snapshot: string
  /** The lease of its creator; if absent, the run is not held. */
  readonly lease?: RunLease & HoldOptions
  readonly contents: readonly Content[]
}

export interface HoldOptions {
  /** JSON text. */
  readonly holder: string
  readonly leaseMs: number
}

export interface Content {
  readonly path: string
  readonly bytes: Uint8Array
}

/** Lines that follow the end of a log. */
export interface Addition {
  readonly after: number
  readonly lines: readonly string[]
  readonly end: LogEnd
  /** If absent, the run keeps its snapshot. */
  readonly snapshot?: string
}

/** The result of `hold`. */
export type Hold =
  | { readonly kind: 'held' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'taken'; readonly holder: string }

export interface RunTables {
  /** Adds a run with its lines and contents. Returns false if there is one with this id. */
  add(run: NewRun): Promise<boolean>
  /** Takes the lease of a run if no other lease is valid. */
  hold(lease: RunLease, options: HoldOptions): Promise<Hold>
  /** Extends the lease. Returns false if the run was lost. */
  renew(lease: RunLease, leaseMs: number): Promise<boolean>
  /** Ends the lease. Does nothing if the run was lost. */
  release(lease: RunLease): Promise<void>
  /** Appends all lines or none. Returns false if the run was lost. */
  append(lease: RunLease, addition: Addition): Promise<boolean>
  /** Replaces the snapshot. Returns false if the run was lost. */
  putSnapshot(lease: RunLease, snapshot: string): Promise<boolean>
  /** Writes a content. Returns false if the run was lost. */
  putContent(lease: RunLease, content: Content): Promise<boolean>
  content(runId: string, path: string): Promise<Uint8Array | undefined>
  get(runId: string): Promise<RunRow | undefined>
  /** Returns lines after a position, in order. */
  lines(runId: string, after: number, limit: number): Promise<string[]>
  /** Returns ids after the given one, in order; the empty text precedes all. */
  ids(after: string, limit: number): Promise<string[]>
  /** Writes a request to cancel, as JSON text. Returns false if the run does not exist. */
  askCancel(runId: string, request: string): Promise<boolean>
  /** Writes the record of damage. Returns false if the run was lost. */
  putFailure(lease: RunLease, failure: string): Promise<boolean>
}
