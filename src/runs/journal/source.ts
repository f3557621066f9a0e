/** What a kind of journal can read of one of its runs; what it means is worked out in one place. */
import type { FailureRecord } from './failure-record.ts'
import type { CancelRequest, Holder } from './journal.ts'

/** The raw record of a run. Whatever is missing is answered with nothing. */
export interface RunSource {
  readonly runId: string
  /** The text of the snapshot; must be asked for before the log. */
  snapshot(): Promise<string | undefined>
  /** The end of the log, where something beside the snapshot vouches for it. */
  known(): Promise<KnownLine | undefined>
  /** The bytes of the log in pieces; none where there is no log. */
  log(): AsyncIterable<Uint8Array>
  /** What was recorded of damage, of whatever bytes. */
  failures(): Promise<readonly FailureRecord[]>
  artifact(path: string): Promise<Uint8Array | undefined>
  /** What is known of the contents; nothing where each must be read. */
  looks(): Promise<ArtifactLooks | undefined>
  holder(): Promise<Holder | undefined>
  cancelRequest(): Promise<CancelRequest | undefined>
}

/** A line of which the hash is known from elsewhere. */
export interface KnownLine {
  readonly seq: number
  readonly hash: string
}

/** What is known of contents without reading them. */
export interface ArtifactLooks {
  /** Has a content judged, unless it is known to be right and nobody is `paranoid`. */
  check(path: string, paranoid: boolean, judge: JudgeContent): Promise<void>
  /** Remembers what was checked; fails for nobody. */
  keep(): Promise<void>
}

/** Throws where a content is not the right one; it gets nothing where there is none. */
export type JudgeContent = (content: Uint8Array | undefined) => void
