/** What a node, and the function of a work item, are given to work with. */
import type { Logger } from '../core/ports.ts'
import type { Issue, Run } from '../core/run/run.ts'
import type { JobKey } from '../engine/pawl.ts'
import type { InputFolder } from './input-files.ts'

/** What an item depends on besides the artifacts that it reads: any JSON, or an artifact. */
export type WorkInputs = Readonly<Record<string, unknown>>

/** What is said of a work item before it runs. */
export interface WorkOptions {
  /** When one of these changes, the item is done again. */
  readonly inputs?: WorkInputs
  /** The version of its code; if it is given, another one makes the item be done again. */
  readonly code?: string
}

/** A work item that is done by a job on the queue. */
export interface JobWork<Input, Output> extends WorkOptions {
  readonly job: JobKey<Input, Output>
  readonly input: Input
}

/** What is said of many work items at once. */
export interface EachOptions<T> {
  /** The key of each; two must not share one. */
  readonly key: (value: T) => string
  readonly inputs?: (value: T) => WorkInputs
  readonly code?: string
  /** How many at a time; 4 if absent. */
  readonly concurrency?: number
}

/** What the function of a work item is given. */
export interface ItemContext {
  readonly key: string
  /**
   * For receivers outside that can tell repeats: made of the run, the item, its declared inputs and
   * its code, so that an attempt after a crash has the same one.
   */
  readonly effectKey: string
  /** From 1: how often the item was started. */
  readonly attempt: number
  readonly signal: AbortSignal
  readonly log: Logger
}

/** A named content of the run, of which every version is kept by its sha256. */
export interface ArtifactHandle {
  readonly name: string
  /** Its hash now; nothing where it was never written. */
  readonly sha256: string | undefined
  /** Throws `ArtifactUnknown` where it was never written. */
  read(): Promise<Uint8Array>
  text(): Promise<string>
  json<T = unknown>(): Promise<T>
  /**
   * Keeps a content: bytes, or a text in UTF-8. Inside a work item it becomes part of the run
   * together with the end of the item, and not at all if the item fails.
   */
  write(content: Uint8Array | string, options?: { readonly schemaId?: string }): Promise<void>
  /** Keeps a value as canonical JSON. */
  writeJson(value: unknown, options?: { readonly schemaId?: string }): Promise<void>
}

/** A part of what the run makes, with a state of its own. */
export interface SectionHandle {
  readonly state: string | undefined
  set(state: string): Promise<void>
}

/** What stands in the way of a run. */
export interface Issues {
  open(
    name: string,
    issue: { readonly severity: Issue['severity']; readonly message: string },
  ): Promise<void>
  resolve(name: string): Promise<void>
}

/** What a node works with. */
export interface RunContext<Input = unknown> {
  readonly runId: string
  readonly input: Input
  /** The run as it is now. */
  readonly snapshot: Run
  /** Aborted when the run is cancelled, when its process stops, and when it lost the run. */
  readonly signal: AbortSignal
  readonly log: Logger
  /**
   * Does something once. Where the item has finished before with the same inputs and the same
   * code, its result is given back, and nothing is done. The result is kept as JSON.
   *
   * What the function reads through `run.artifact` are inputs too, without being declared, and what
   * it writes are its outputs.
   */
  work<Result>(
    key: string,
    options: WorkOptions,
    work: (item: ItemContext) => Result | Promise<Result>,
  ): Promise<Result>
  /** The same, done by a job on the queue, wherever a worker takes it. */
  work<JobInput, Output>(key: string, options: JobWork<JobInput, Output>): Promise<Output>
  /**
   * Does an item for each value, a few at a time. The results are in the order of the keys. When
   * one fails no further one is begun, and the first failure in the order of keys is thrown.
   */
  each<T, Result>(
    values: Iterable<T>,
    options: EachOptions<T>,
    work: (value: T, item: ItemContext) => Result | Promise<Result>,
  ): Promise<ReadonlyMap<string, Result>>
  artifact(name: string): ArtifactHandle
  /** Takes a file from outside into the run, and looks at it again whenever the run is resumed. */
  inputFile(name: string, path: string): Promise<void>
  /** The same for the files of a folder; gives the names of their artifacts, sorted. */
  inputFolder(name: string, folder: InputFolder): Promise<string[]>
  section(name: string): SectionHandle
  readonly issue: Issues
  /** Says how the check went; the fix loop goes by it. */
  validation(ok: boolean): Promise<void>
  /** Remembers that a commit of a repository belongs to the run. */
  linkCommit(sha: string): Promise<void>
  /** Ends the run as failed. */
  fail(reason: string): never
}
