/**
 * The tables of runs, for a journal that keeps them in a store (`src/runs/journal/store/`). They
 * hold lines and contents and never look inside.
 *
 * A run is held by whoever took its grip last, until the lease ends; the grip is in the condition
 * of every write, so that one who lost the run changes nothing. A lease that ended is not revived.
 * Every verb is one transaction, and may be repeated where its answer was lost.
 */

/** The right to write to a run. */
export interface Grip {
  readonly runId: string
  /** An id that nobody else has. */
  readonly fence: string
}

/** The end of a log. */
interface LogEnd {
  readonly seq: number
  readonly hash: string
}

/** What is kept of a run beside its lines and contents. */
export interface RunRow {
  readonly end: LogEnd
  readonly snapshot: string
  /** Who holds it, as JSON text; absent where nobody does, or the lease has ended. */
  readonly holder?: string
  /** Present if its lease ends later than any lease can; it counts as ended. */
  readonly endless?: true
  /** The wish that it be cancelled, as JSON text. */
  readonly cancel?: string
  /** What was recorded of its damage. */
  readonly failure?: string
}

/** A run to be added. */
export interface NewRun {
  readonly runId: string
  readonly lines: readonly string[]
  readonly end: LogEnd
  readonly snapshot: string
  /** The holder from the first moment; absent where nobody is to hold it. */
  readonly grip?: Grip & HoldOptions
  readonly contents: readonly Content[]
}

/** Who takes a run, and for how long. */
export interface HoldOptions {
  /** JSON text. */
  readonly holder: string
  readonly leaseMs: number
}

/** A content under its path. */
export interface Content {
  readonly path: string
  readonly bytes: Uint8Array
}

/** Lines that follow the end of a log. */
export interface Addition {
  readonly after: number
  readonly lines: readonly string[]
  readonly end: LogEnd
  /** The one before is kept where this is absent. */
  readonly snapshot?: string
}

/** What became of an attempt to hold a run. */
export type Hold =
  | { readonly kind: 'held' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'taken'; readonly holder: string }

/** The tables of runs. */
export interface RunTables {
  /** Adds a run with everything that it has; false where there is one with this id. */
  add(run: NewRun): Promise<boolean>
  hold(grip: Grip, options: HoldOptions): Promise<Hold>
  /** Renews the lease; false where the run was lost. */
  renew(grip: Grip, leaseMs: number): Promise<boolean>
  release(grip: Grip): Promise<void>
  /** Adds lines, all of them or none; false where the run was lost. */
  append(grip: Grip, addition: Addition): Promise<boolean>
  /** Replaces the snapshot; false where the run was lost. */
  putSnapshot(grip: Grip, snapshot: string): Promise<boolean>
  /** Keeps a content; false where the run was lost. */
  putContent(grip: Grip, content: Content): Promise<boolean>
  content(runId: string, path: string): Promise<Uint8Array | undefined>
  get(runId: string): Promise<RunRow | undefined>
  /** Lines after a place, in order. */
  lines(runId: string, after: number, limit: number): Promise<string[]>
  /** Ids after one, or from the first, in order. */
  ids(after: string, limit: number): Promise<string[]>
  /** Notes the wish to cancel, as JSON text; false where there is no such run. */
  askCancel(runId: string, request: string): Promise<boolean>
  /** Records damage beside a log, under the grip of whoever found it. */
  putFailure(grip: Grip, failure: string): Promise<boolean>
}
