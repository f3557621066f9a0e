/** What a node is given: the surface of a run, for as long as the node lasts. */
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import type { RunCommand } from '../core/run/commands.ts'
import type { Issue, Run } from '../core/run/run.ts'
import { entryOf } from '../core/run/run.ts'
import type { Pawl } from '../engine/pawl.ts'
import { type ArtifactParts, artifactOf } from './artifacts.ts'
import { NodeOver, RunFailure } from './errors.ts'
import { byKey, fanOut } from './fan-out.ts'
import type { InputFolder, Inputs } from './input-files.ts'
import type { Author } from './journal/journal.ts'
import { jobDoer } from './queue-items.ts'
import type {
  ArtifactHandle,
  EachOptions,
  Issues,
  ItemContext,
  JobWork,
  RunContext,
  SectionHandle,
  WorkOptions,
} from './run-context.ts'
import type { WorkItems, WorkParts } from './work-items.ts'

/** What a context is made of. */
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
const FOLDER: FieldChecks<InputFolder> = { path: unchecked, extensions: unchecked }

type Work<Result> = (item: ItemContext) => Result | Promise<Result>

/** The context of one call of a node. */
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
      open: (issue: string, about: Pick<Issue, 'severity' | 'message'>) =>
        this.#tell({ kind: 'open-issue', issue, ...about }),
      resolve: (issue: string) => this.#tell({ kind: 'resolve-issue', issue }),
    }
  }

  /** Ends the context: what is still used of it is refused. */
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
      set: (to) => this.#tell({ kind: 'change-section', section, to }),
    }
  }

  validation(ok: boolean): Promise<void> {
    return this.#tell({ kind: 'record-validation', ok })
  }

  linkCommit(sha: string): Promise<void> {
    return this.#tell({ kind: 'link-commit', sha })
  }

  fail(reason: string): never {
    throw new RunFailure(this.runId, reason)
  }

  async #tell(command: RunCommand): Promise<void> {
    this.#assertLive()
    const { log, items } = this.#parts
    await log.tell(items.scope()?.author ?? this.#author, command)
  }

  #assertLive(): void {
    this.signal.throwIfAborted()
    if (this.#isOver) throw new NodeOver(this.#state)
  }
}
