/** The context of a node: what it can do with its run while it runs. */
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import type { Logger } from '../core/ports.ts'
import type { RunCommand } from '../core/run/commands.ts'
import { entryOf, type Issue, type Run } from '../core/run/run.ts'
import type { JobKey } from '../engine/job-types.ts'
import type { Pawl } from '../engine/pawl.ts'
import { type ArtifactParts, artifactOf } from './artifacts.ts'
import { NodeOver, RunFailure } from './errors.ts'
import { byKey, fanOut } from './fan-out.ts'
import type { InputFolder, Inputs } from './input-files.ts'
import type { Author } from './journal/journal.ts'
import { jobDoer } from './queue-items.ts'
import type { WorkItems, WorkParts } from './work-items.ts'

/** The declared inputs of a work item, by name: JSON values or artifacts. */
export type WorkInputs = Readonly<Record<string, unknown>>

/** The options of `run.work`. */
export interface WorkOptions {
  /** If one of them changes, the item runs again. */
  readonly inputs?: WorkInputs
  /** The version of the item's code. If it changes, the item runs again. */
  readonly code?: string
}

/** The options of a work item that a job on the queue does. */
export interface JobWork<Input, Output> extends WorkOptions {
  readonly job: JobKey<Input, Output>
  readonly input: Input
}

/** The options of `run.each`. */
export interface EachOptions<T> {
  /** Returns the key of a value. Keys must be unique. */
  readonly key: (value: T) => string
  readonly inputs?: (value: T) => WorkInputs
  readonly code?: string
  /** How many items run at a time. Default: 4. */
  readonly concurrency?: number
}

/** The context of a work item. */
export interface ItemContext {
  readonly key: string
  /**
   * An idempotency key for other systems, made of the run, the item, its declared inputs and its
   * code. An attempt after a crash has the same key.
   */
  readonly effectKey: string
  /** How often the item was started, counted from 1. */
  readonly attempt: number
  readonly signal: AbortSignal
  readonly log: Logger
}

/** A named content of the run. The run keeps every version. */
export interface ArtifactHandle {
  readonly name: string
  /** The hash of the current version; `undefined` if the artifact was never written. */
  readonly sha256: string | undefined
  /** Throws `ArtifactUnknown` if the artifact was never written. */
  read(): Promise<Uint8Array>
  text(): Promise<string>
  json<T = unknown>(): Promise<T>
  /**
   * Writes a new version: bytes, or text in UTF-8. Inside a work item, the version becomes part of
   * the run when the item finishes, and is dropped if the item fails.
   */
  write(content: Uint8Array | string, options?: { readonly schemaId?: string }): Promise<void>
  /** Writes a value as canonical JSON. */
  writeJson(value: unknown, options?: { readonly schemaId?: string }): Promise<void>
}

/** A named part of the run's result, with a state. */
export interface SectionHandle {
  readonly state: string | undefined
  set(state: string): Promise<void>
}

/** Opens and resolves issues of the run. */
export interface Issues {
  open(
    name: string,
    issue: { readonly severity: Issue['severity']; readonly message: string },
  ): Promise<void>
  resolve(name: string): Promise<void>
}

/** What a node can do with its run. */
export interface RunContext<Input = unknown> {
  readonly runId: string
  readonly input: Input
  /** The current state of the run. */
  readonly snapshot: Run
  /** Aborted when the run is cancelled, the process stops, or the process lost the run. */
  readonly signal: AbortSignal
  readonly log: Logger
  /**
   * Runs a work item once. If the item has finished before with the same inputs and code, returns
   * the stored result and does not call the function. The result is stored as JSON.
   *
   * Artifacts that the function reads through `run.artifact` are inputs without being declared.
   * Artifacts that it writes are its outputs.
   */
  work<Result>(
    key: string,
    options: WorkOptions,
    work: (item: ItemContext) => Result | Promise<Result>,
  ): Promise<Result>
  /** The same, done by a job on the queue. */
  work<JobInput, Output>(key: string, options: JobWork<JobInput, Output>): Promise<Output>
  /**
   * Runs one work item for each value, several at a time. The results are in the order of the keys.
   * If an item fails, no further item starts; throws the first error in the order of the keys.
   */
  each<T, Result>(
    values: Iterable<T>,
    options: EachOptions<T>,
    work: (value: T, item: ItemContext) => Result | Promise<Result>,
  ): Promise<ReadonlyMap<string, Result>>
  artifact(name: string): ArtifactHandle
  /** Copies a file into the run. Resuming the run checks the file again. */
  inputFile(name: string, path: string): Promise<void>
  /** Copies the files of a folder. Returns the names of their artifacts, sorted. */
  inputFolder(name: string, folder: InputFolder): Promise<string[]>
  section(name: string): SectionHandle
  readonly issue: Issues
  /** Records the result of a validation. The fix loop depends on it. */
  validation(ok: boolean): Promise<void>
  /** Records that a commit of a repository belongs to the run. */
  linkCommit(sha: string): Promise<void>
  /** Ends the run as failed. */
  fail(reason: string): never
}

export interface NodeParts extends WorkParts {
  readonly items: WorkItems
  readonly inputs: Inputs
  readonly input: unknown
  readonly worker: string
  readonly pawl: Pawl | undefined
}

const WORK: FieldChecks<WorkOptions> = { inputs: unchecked, code: unchecked }
const JOB_WORK: FieldChecks<JobWork<unknown, unknown>> = {
  ...WORK,
  job: unchecked,
  input: unchecked,
}
const EACH: FieldChecks<EachOptions<unknown>> = {
  ...WORK,
  key: unchecked,
  concurrency: unchecked,
}
// The rules of runs check the values.
const ISSUE: FieldChecks<Pick<Issue, 'severity' | 'message'>> = {
  severity: unchecked,
  message: unchecked,
}
const FOLDER: FieldChecks<InputFolder> = { path: unchecked, extensions: unchecked }

type Work<Result> = (item: ItemContext) => Result | Promise<Result>

export class NodeContext implements RunContext<never> {
  readonly runId: string
  readonly input: never
  readonly issue: Issues
  readonly signal: AbortSignal
  readonly log: RunContext['log']
  readonly #parts: NodeParts
  readonly #artifacts: ArtifactParts
  readonly #author: Author
  readonly #state: string
  #isOver = false

  constructor(parts: NodeParts) {
    const { log, worker, items } = parts
    this.#parts = parts
    this.#author = parts.newAuthor()
    this.#state = log.run.run_state
    this.runId = log.run.run_id
    this.input = parts.input as never
    this.signal = parts.signal
    this.log = parts.logger
    const author = () => this.#author
    const assertLive = () => this.#assertLive()
    this.#artifacts = { log, worker, scope: items.scope, author, assertLive }
    this.issue = {
      open: async (issue: string, about: Pick<Issue, 'severity' | 'message'>) => {
        checkFields(about, ISSUE, { what: 'issue' })
        return this.#applyCommand({ kind: 'open-issue', issue, ...about })
      },
      resolve: (issue: string) => this.#applyCommand({ kind: 'resolve-issue', issue }),
    }
  }

  /** Ends the context. Later calls are rejected. */
  end(): void {
    this.#isOver = true
  }

  get snapshot(): Run {
    return this.#parts.log.run
  }

  async work<Result>(
    key: string,
    options: WorkOptions | JobWork<unknown, Result>,
    work?: Work<Result>,
  ): Promise<Result> {
    this.#assertLive()
    const { items, pawl, worker } = this.#parts
    checkFields(options, 'job' in options ? JOB_WORK : WORK, { what: 'options' })
    if (!('job' in options)) return items.work(key, options, { worker, run: work as Work<Result> })
    const { job, input, inputs } = options
    const all = { ...options, inputs: { ...inputs, job: job.name, input } }
    return items.work(key, all, jobDoer(pawl, options))
  }

  async each<T, Result>(
    values: Iterable<T>,
    every: EachOptions<T>,
    work: (value: T, item: ItemContext) => Result | Promise<Result>,
  ): Promise<ReadonlyMap<string, Result>> {
    this.#assertLive()
    checkFields<EachOptions<T>>(every, EACH, { what: 'options' })
    const { key, inputs, code, concurrency } = every
    return fanOut(byKey(values, key), concurrency, (one, stop) => {
      const options = {
        ...(inputs !== undefined && { inputs: inputs(one.value) }),
        ...(code !== undefined && { code }),
      }
      return this.work(one.key, options, async (item) => {
        try {
          return await work(one.value, item)
        } catch (error) {
          stop()
          throw error
        }
      })
    })
  }

  artifact(name: string): ArtifactHandle {
    return artifactOf(this.#artifacts, name)
  }

  async inputFile(name: string, path: string): Promise<void> {
    this.#assertLive()
    await this.#parts.inputs.takeFile(this.#author, name, path)
  }

  async inputFolder(name: string, folder: InputFolder): Promise<string[]> {
    this.#assertLive()
    checkFields(folder, FOLDER, { what: 'folder' })
    return this.#parts.inputs.takeFolder(this.#author, name, folder)
  }

  section(section: string): SectionHandle {
    const { log } = this.#parts
    return {
      get state() {
        return entryOf(log.run.section_states, section)
      },
      set: (to) => this.#applyCommand({ kind: 'change-section', section, to }),
    }
  }

  validation(ok: boolean): Promise<void> {
    return this.#applyCommand({ kind: 'record-validation', ok })
  }

  linkCommit(sha: string): Promise<void> {
    return this.#applyCommand({ kind: 'link-commit', sha })
  }

  fail(reason: string): never {
    throw new RunFailure(this.runId, reason)
  }

  async #applyCommand(command: RunCommand): Promise<void> {
    this.#assertLive()
    const { log, items } = this.#parts
    await log.applyCommand(items.scope()?.author ?? this.#author, command)
  }

  #assertLive(): void {
    this.signal.throwIfAborted()
    if (this.#isOver) throw new NodeOver(this.#state)
  }
}
