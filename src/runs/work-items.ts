/**
 * Work items. An item that has finished with the same inputs and code does not run again (promise
 * P14): its stored result is returned. The artifacts, the result and the end of an item are one
 * append, so after a crash the item is either finished or has no effect.
 *
 *   fresh                          return the stored result
 *   stale, but inputs unchanged    revalidate its outputs, return the stored result
 *   otherwise                      start it, then finish it, or fail it if the function throws; an
 *                                  interrupted item stays started, and runs again on resume
 *
 * The result is stored as the artifact `result:<key>`. If that name is too long, the key is
 * replaced by its hash.
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
import { decodeValue, encodeValue } from '../core/values.ts'
import { loggerWith } from '../engine/watching/log.ts'
import { ARTIFACT_JSON, type ItemScope, isArtifact, writeCommands } from './artifacts.ts'
import { ArtifactUnknown, WorkNested, WorkTwice } from './errors.ts'
import { fulfilCommands } from './forced.ts'
import { ArtifactChanged, ArtifactMissing } from './journal/errors.ts'
import { sha256Of } from './journal/hash.ts'
import type { Author } from './journal/journal.ts'
import type { ItemContext, WorkOptions } from './node-context.ts'
import type { NewAuthor } from './run-authors.ts'
import type { RunLog } from './run-log.ts'

export interface WorkParts {
  readonly log: RunLog
  readonly logger: Logger
  readonly signal: AbortSignal
  /** Finished items that run again. An item is removed when it starts. */
  readonly forced: Set<string>
  /** Runs stale items again even if their inputs are unchanged. */
  readonly strict: boolean
  /** Makes a new span in the trace of the run. */
  readonly newAuthor: NewAuthor
}

type DoItem<Result> = (item: ItemContext, because: StartBecause) => Result | Promise<Result>

/** What runs an item: a function, or a job on the queue. */
export interface Doer<Result> {
  readonly worker: string
  readonly run: DoItem<Result>
}

/**
 * The item in which a call is made. All runs share one storage, because Node never frees a storage
 * and each of them makes every promise of the process slower.
 */
const scopes = new AsyncLocalStorage<{ readonly items: WorkItems; readonly scope: ItemScope }>()

export class WorkItems {
  readonly #parts: WorkParts
  readonly #underWay = new Map<string, Promise<unknown>>()

  constructor(parts: WorkParts) {
    this.#parts = parts
  }

  /** Returns the item of this run in which the caller runs, if any. */
  readonly scope = (): ItemScope | undefined => {
    const inner = scopes.getStore()
    return inner?.items === this ? inner.scope : undefined
  }

  /** Returns the result of an item: the stored one, or that of a new execution. */
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

  /** Waits for all running items. Returns the first error, if any. */
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
      if (!(error instanceof ArtifactChanged || error instanceof ArtifactMissing)) throw error
      return this.#run({ ...request, forced: true }, doer)
    }
  }

  async #revalidate(key: string): Promise<void> {
    const { log, newAuthor } = this.#parts
    const stale = staleOutputsOf(log.run, key)
    const commands = stale.map((name) => ({ kind: 'revalidate-artifact', name }) as const)
    await log.applyCommand(newAuthor(), ...commands)
  }

  async #remembered(key: string): Promise<unknown> {
    const { log } = this.#parts
    const name = resultName(key)
    const result = entryOf(log.run.artifacts_index, name)
    if (result === undefined) return undefined
    const content = await log.writer.readArtifact(name, result.sha256)
    return decodeValue(new TextDecoder().decode(content))
  }

  #run<Result>(request: ItemRequest, doer: Doer<Result>): Promise<Result> {
    const { log, newAuthor } = this.#parts
    const { spans } = newAuthor
    if (spans === undefined) return this.#runAs(newAuthor(), request, doer)
    const item = { runId: log.run.run_id, key: request.key }
    return spans.item(item, (author) => this.#runAs(author ?? newAuthor(), request, doer))
  }

  async #runAs<Result>(
    author: Author,
    request: ItemRequest,
    { worker, run }: Doer<Result>,
  ): Promise<Result> {
    const { log, signal, forced } = this.#parts
    const { key, inputs, code } = request
    const start: RunCommand = {
      kind: 'start-item',
      ...{ key, inputs, worker, forced: request.forced },
      ...(code !== null && { code }),
    }
    const started = await log.applyCommand(author, start, ...fulfilCommands(log.run, key))
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

  /** Stores the result. Returns it as a later run will read it. */
  async #keep<Result>({ key, writes }: ItemScope, made: Result): Promise<Result> {
    const { log } = this.#parts
    const name = resultName(key)
    const hadOne = entryOf(log.run.artifacts_index, name) !== undefined
    if (made === undefined && !hadOne) return made
    const text = encodeValue(made ?? null, ARTIFACT_JSON)
    const stored = await log.writer.writeArtifact(name, Buffer.from(text))
    writes.set(name, { ...stored, schemaId: undefined })
    return decodeValue(text) as Result
  }

  async #finish({ key, author, reads, writes }: ItemScope, worker: string): Promise<void> {
    const { log, signal } = this.#parts
    signal.throwIfAborted()
    // If the item replaced an artifact that it read, the input is its own version. The item is then
    // stale only if another writer replaces that version.
    const inputs = Object.fromEntries(
      [...reads].map(([name, sha256]) => [name, writes.get(name)?.sha256 ?? sha256]),
    )
    const outputs = [...writes].sort(([a], [b]) => (a < b ? -1 : 1))
    const by = { worker, workItem: key }
    const commands = outputs.flatMap(([name, output]) => writeCommands(log.run, name, output, by))
    await log.applyCommand(author, ...commands, { kind: 'finish-item', key, inputs })
  }

  /** An interrupted item has not failed: it stays started. */
  async #failed({ key, author }: ItemScope, error: unknown): Promise<void> {
    const { log, signal } = this.#parts
    if (signal.aborted || entryOf(log.run.work_items, key)?.status !== 'started') return
    const message = classify(error).message.trim() || 'an error without a message'
    const failure = { kind: 'fail-item', key, error: message.slice(0, MESSAGE_MAX) } as const
    // If the failure cannot be recorded, the item stays started. The caller gets the first error.
    await log.applyCommand(author, failure).catch(() => {})
  }
}

const MESSAGE_MAX = 4000

/** Returns the names and hashes of declared inputs. */
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

function resultName(key: string): string {
  const name = `result:${key}`
  return name.length <= NAME_MAX ? name : `result:~${sha256Of(key)}`
}
