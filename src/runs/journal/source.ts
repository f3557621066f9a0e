/** What each journal reads of a run. `reading.ts` interprets it for both. */
import type { FailureRecord } from './failure-record.ts'
import type { CancelRequest, Holder } from './journal.ts'

/** The stored data of a run. Returns `undefined` for missing parts. */
export interface RunSource {
  readonly runId: string
  /** The text of the snapshot. Must be read before the log. */
  snapshot(): Promise<string | undefined>
  /** The end of the log, if it is stored outside of the snapshot. */
  known(): Promise<KnownLine | undefined>
  /** Yields the bytes of the log; nothing if the log is missing. */
  log(): AsyncIterable<Uint8Array>
  /** All records of failure, also those of logs that were restored since. */
  failures(): Promise<readonly FailureRecord[]>
  artifact(path: string): Promise<Uint8Array | undefined>
  /** The cache of checked contents; `undefined` if each content must be read. */
  looks(): Promise<ArtifactLooks | undefined>
  holder(): Promise<Holder | undefined>
  cancelRequest(): Promise<CancelRequest | undefined>
}

/** The number and hash of a line, from another source than the log. */
export interface KnownLine {
  readonly seq: number
  readonly hash: string
}

/** A cache of the sizes and times of contents that were checked. */
export interface ArtifactLooks {
  /** Calls `judge` with a content, unless its file is unchanged since the last check. */
  check(path: string, paranoid: boolean, judge: JudgeContent): Promise<void>
  /** Stores what was checked. Never throws. */
  keep(): Promise<void>
}

/** Throws if a content is wrong. Receives `undefined` if it is missing. */
export type JudgeContent = (content: Uint8Array | undefined) => void
