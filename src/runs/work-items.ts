/**
 * Work items: what a node does once. An item that has finished with the same inputs and the same
 * code is not done again (promise P14); its result is read back. What an item writes, its result
 * and its end are one append, so a crash leaves an item that is finished or one that never was.
 *
 *   asked for → fresh: the remembered result
 *             → stale in name only: its outputs are revalidated, then the remembered result
 *             → else: started, done, finished; or failed, if it threw; or left as started, if it
 *               was interrupted, and then it is done anew
 *
 * A result is kept as the artifact `result:<key>`; a key too long for that is replaced by its hash.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { encode } from '../core/canonical-json.ts'
import { NAME_MAX } from '../core/checks.ts'
import { classify } from '../core/failure.ts'
import type { Logger } from '../core/ports.ts'
import type { RunCommand } from '../core/run/commands.ts'
import type { RunEvent, StartBecause } from '../core/run/events.ts'
import { entryOf, type Run } from '../core/run/run.ts'
import {
  freshnessOf,
  type ItemRequest,
  isUnchanged,
  staleOutputsOf,
} from '../core/run/staleness.ts'
import { loggerWith } from '../engine/watching/log.ts'
import { ARTIFACT_JSON, type ItemScope, isArtifact, writeCommands } from './artifacts.ts'
import { ArtifactUnknown, WorkNested, WorkTwice } from './errors.ts'
import { fulfilCommands } from './forced.ts'
import { ArtifactChanged, ArtifactMissing } from './journal/errors.ts'
import { sha256Of } from './journal/hash.ts'
import type { Author } from './journal/journal.ts'
import type { ItemContext, WorkOptions } from './run-context.ts'
import type { RunLog } from './run-log.ts'

/** What work items need of their run. */
export interface WorkParts {
  readonly log: RunLog
  readonly logger: Logger
  readonly signal: AbortSignal
  /** Items to be done again though they are finished; each is taken out when it starts. */
  readonly forced: Set<string>
  /** Whether what is stale in name only is done again all the same. */
  readonly strict: boolean
  /** A new span in the trace of the run. */
  readonly newAuthor: () => Author
}

/** Does an item; `because` says why it is done. */
type DoItem<Result> = (item: ItemContext, because: StartBecause) => Result | Promise<Result>

/** Who does an item. */
export interface Doer<Result> {
  readonly worker: string
  readonly run: DoItem<Result>
}

/**
 * The item in which a call is made. One storage serves all runs: one for each would stay with Node
 * for ever, and every promise of the process would pay for every run that it ever worked on.
 */
const scopes = new AsyncLocalStorage<{ readonly items: WorkItems; readonly scope: ItemScope }>()

/** The work items of a run that is being worked on. */
export class WorkItems {
  readonly #parts: WorkParts
  readonly #underWay = new Map<string, Promise<unknown>>()

  constructor(parts: WorkParts) {
    this.#parts = parts
  }

  /** The item of this run in which the caller is, if any. */
  readonly scope = (): ItemScope | undefined => {
    const inner = scopes.getStore()
    return inner?.items === this ? inner.scope : undefined
  }

  /** The result of an item: remembered, or made now. */
  async work<Result>(key: string, options: WorkOptions, doer: Doer<Result>): Promise<Result> {
    const outer = this.scope()
    if (outer !== undefined) throw new WorkNested(key, outer.key)
    if (this.#underWay.has(key)) throw new WorkTwice(key)
    const asked = this.#work(key, options, doer)
    this.#underWay.set(key, asked)
    try {
      return await asked
    } finally {
      this.#underWay.delete(key)
    }
  }

  /** Resolves when nothing is under way, whether it succeeded or not; gives the first failure. */
  async settled(): Promise<{ readonly error: unknown } | undefined> {
    const ended = await Promise.allSettled(this.#underWay.values())
    const failed = ended.find(({ status }) => status === 'rejected')
    return failed === undefined ? undefined : { error: (failed as PromiseRejectedResult).reason }
  }

  async #work<Result>(key: string, options: WorkOptions, doer: Doer<Result>): Promise<Result> {
    const { log, signal, forced, strict } = this.#parts
    signal.throwIfAborted()
    const request: ItemRequest = {
      key,
      inputs: inputsOf(log.run, options),
      code: options.code ?? null,
      forced: forced.has(key),
    }
    let freshness = freshnessOf(log.run, request)
    if (freshness.kind === 'run' && !strict && isUnchanged(log.run, request)) {
      await this.#revalidate(key)
      freshness = freshnessOf(log.run, request)
    }
    if (freshness.kind === 'run') return this.#run(request, doer)
    try {
      return (await this.#remembered(key)) as Result
    } catch (error) {
      // A result that is gone can only be made again.
      if (!(error instanceof ArtifactChanged || error instanceof ArtifactMissing)) throw error
      return this.#run({ ...request, forced: true }, doer)
    }
  }

  async #revalidate(key: string): Promise<void> {
    const { log, newAuthor } = this.#parts
    const stale = staleOutputsOf(log.run, key)
    const commands = stale.map((name) => ({ kind: 'revalidate-artifact', name }) as const)
    await log.tell(newAuthor(), ...commands)
  }

  async #remembered(key: string): Promise<unknown> {
    const { log } = this.#parts
    const name = resultName(key)
    const result = entryOf(log.run.artifacts_index, name)
    if (result === undefined) return undefined
    const content = await log.writer.readArtifact(name, result.sha256)
    return JSON.parse(new TextDecoder().decode(content))
  }

  async #run<Result>(request: ItemRequest, { worker, run }: Doer<Result>): Promise<Result> {
    const { log, signal, forced, newAuthor } = this.#parts
    const { key, inputs, code } = request
    const author = newAuthor()
    const start: RunCommand = {
      kind: 'start-item',
      ...{ key, inputs, worker, forced: request.forced },
      ...(code !== null && { code }),
    }
    const started = await log.tell(author, start, ...fulfilCommands(log.run, key))
    forced.delete(key)
    const scope: ItemScope = { key, author, reads: new Map(), writes: new Map() }
    const context = this.#contextOf(request)
    try {
      signal.throwIfAborted()
      const made = await scopes.run({ items: this, scope }, async () =>
        run(context, becauseOf(started)),
      )
      const result = await this.#keep(scope, made)
      await this.#finish(scope, worker)
      return result
    } catch (error) {
      await this.#failed(scope, error)
      throw error
    }
  }

  #contextOf({ key, inputs, code }: ItemRequest): ItemContext {
    const { log, logger, signal } = this.#parts
    const { run_id } = log.run
    return {
      key,
      effectKey: effectKeyOf(run_id, key, sha256Of(encode({ inputs, code }, ARTIFACT_JSON))),
      attempt: entryOf(log.run.work_items, key)?.attempts ?? 1,
      signal,
      log: loggerWith(logger, { run_id, work_item: key }),
    }
  }

  /** Keeps the result, and gives it as it will be read back. */
  async #keep<Result>({ key, writes }: ItemScope, made: Result): Promise<Result> {
    const { log } = this.#parts
    const name = resultName(key)
    const hadOne = entryOf(log.run.artifacts_index, name) !== undefined
    if (made === undefined && !hadOne) return made
    const text = encode(made ?? null, ARTIFACT_JSON)
    const stored = await log.writer.writeArtifact(name, Buffer.from(text))
    writes.set(name, { ...stored, schemaId: undefined })
    return JSON.parse(text) as Result
  }

  async #finish({ key, author, reads, writes }: ItemScope, worker: string): Promise<void> {
    const { log, signal } = this.#parts
    signal.throwIfAborted()
    // What it read and then replaced has its own hash from now on: the item is fresh for as long as
    // its writing stands, and is done again when somebody else has written there.
    const inputs = Object.fromEntries(
      [...reads].map(([name, sha256]) => [name, writes.get(name)?.sha256 ?? sha256]),
    )
    const outputs = [...writes].sort(([a], [b]) => (a < b ? -1 : 1))
    const by = { worker, workItem: key }
    const commands = outputs.flatMap(([name, output]) => writeCommands(log.run, name, output, by))
    await log.tell(author, ...commands, { kind: 'finish-item', key, inputs })
  }

  /** An item that was interrupted has not failed: it is left as started. */
  async #failed({ key, author }: ItemScope, error: unknown): Promise<void> {
    const { log, signal } = this.#parts
    if (signal.aborted || entryOf(log.run.work_items, key)?.status !== 'started') return
    const message = classify(error).message.trim() || 'an error without a message'
    const failure = { kind: 'fail-item', key, error: message.slice(0, MESSAGE_MAX) } as const
    // Where not even that can be recorded, the item is left as started, and the error still told.
    await log.tell(author, failure).catch(() => {})
  }
}

const MESSAGE_MAX = 4000

/** The names and hashes of what an item declares. */
function inputsOf(run: Run, { inputs = {} }: WorkOptions): Readonly<Record<string, string>> {
  const entries = Object.entries(inputs).filter(([, value]) => value !== undefined)
  return Object.fromEntries(
    entries.map(([name, value]) => {
      if (!isArtifact(value)) return [`param:${name}`, sha256Of(encode(value, ARTIFACT_JSON))]
      if (value.sha256 === undefined) throw new ArtifactUnknown(run.run_id, value.name)
      return [value.name, value.sha256]
    }),
  )
}

function becauseOf(events: readonly RunEvent[]): StartBecause {
  const started = events.find(({ type }) => type === 'WORK_ITEM_STARTED')
  return (started as Extract<RunEvent, { type: 'WORK_ITEM_STARTED' }>).data.because
}

function effectKeyOf(runId: string, key: string, hash: string): string {
  const whole = `${runId}/${key}/${hash.slice(0, 32)}`
  return whole.length <= NAME_MAX ? whole : `${runId}/${sha256Of(whole)}`
}

/** The artifact that keeps the result of an item. */
function resultName(key: string): string {
  const name = `result:${key}`
  return name.length <= NAME_MAX ? name : `result:~${sha256Of(key)}`
}
