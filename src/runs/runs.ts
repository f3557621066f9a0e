/**
 * Runs: started, resumed, cancelled and explained. One process at a time works on a run; the
 * journal sees to that.
 *
 * The artifact `run:definition` says what a run is for: `{ "definition": <name>, "input": … }`. It
 * is written right after RUN_CREATED, and only then is the run acknowledged.
 */
import { hostname } from 'node:os'
import { encode } from '../core/canonical-json.ts'
import { CommandInvalid, DefinitionInvalid, RunEnded, RunExists } from '../core/errors.ts'
import type { Logger } from '../core/ports.ts'
import type { RunEvent } from '../core/run/events.ts'
import { entryOf, type Run } from '../core/run/run.ts'
import { InputInvalid } from '../engine/errors.ts'
import type { Pawl } from '../engine/pawl.ts'
import { validate } from '../engine/schema.ts'
import { harmlessLogger } from '../engine/watching/hooks.ts'
import { SILENT } from '../engine/watching/log.ts'
import { type Environment, systemEnvironment } from '../environment/system.ts'
import { ARTIFACT_JSON } from './artifacts.ts'
import { createFacts, damageFacts, machineOf } from './damage.ts'
import type { RunDefinition } from './define-run.ts'
import { RunDefinitionUnknown, RunIncomplete } from './errors.ts'
import { explainItems, type RunExplanation } from './explain.ts'
import { HistoryNotes } from './history.ts'
import { type InputDisk, inputDisk } from './input-disk.ts'
import { Inputs, keepNothing } from './input-files.ts'
import { RunHeld, RunLogDamaged } from './journal/errors.ts'
import { openFolderJournal } from './journal/folder/journal.ts'
import type {
  Author,
  CancelRequest,
  EventRange,
  Holder,
  Journal,
  Replayed,
  RunFinding,
  RunWriter,
} from './journal/journal.ts'
import { Orchestrator } from './orchestrator.ts'
import { endOf, type RunOutcome } from './outcome.ts'
import { planResume } from './resume-plan.ts'
import { RunLog, type RunObserver } from './run-log.ts'
import { type ResumeOptions, survey } from './survey.ts'
import { observersOf, telemetryOf } from './telemetry/observers.ts'
import type { Telemetry, TelemetrySink } from './telemetry/telemetry.ts'
import { WorkItems } from './work-items.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a run takes is an affair of its definition
type AnyRun = RunDefinition<any>

/** How to open runs. */
export interface RunsOptions {
  /** The folder in which each run has its own; or a journal that is open already. */
  readonly folder?: string
  readonly journal?: Journal
  /** The kinds of run that this process can resume. */
  readonly runs?: readonly AnyRun[]
  /** Where work items are enqueued that jobs do. */
  readonly pawl?: Pawl
  readonly environment?: Environment
  readonly logger?: Logger
  /** Told of what has become durable, and of transitions that were refused. */
  readonly observer?: RunObserver
  /** Where events are sent after they are durable; sent again while that cannot be reached. */
  readonly telemetry?: TelemetrySink
  /** Where telemetry keeps how far it has come; `.telemetry` in the folder of runs if absent. */
  readonly telemetryFolder?: string
  /** The name under which this process works; host and process if absent. */
  readonly worker?: string
  /** Where input files lie; the disk of this machine if absent. */
  readonly disk?: InputDisk
}

/** What may be said of a run when it is started. */
export interface StartOptions<Input> {
  /** An id of the caller's own. */
  readonly runId?: string
  readonly input?: Input
  /** Stops the work; the run can be resumed. */
  readonly signal?: AbortSignal
}

/** A run as it is listed: by its snapshot, and without one where that cannot be read. */
export interface ListedRun {
  readonly runId: string
  readonly run: Run | undefined
}

/** Everything that can be told of a run without its code. */
export interface ShownRun extends Replayed {
  readonly holder: Holder | undefined
  readonly cancelRequest: CancelRequest | undefined
}

/** Work on a run that goes on in this process. */
export interface RunHandle {
  readonly id: string
  /** What came of it; rejects where a node asked for no edge, or where the run was lost. */
  result(): Promise<RunOutcome>
}

const DEFINITION = 'run:definition'

/** Opens the place where runs are kept. */
export async function openRuns(options: RunsOptions): Promise<Runs> {
  const { folder, journal } = options
  const environment = options.environment ?? systemEnvironment()
  if ((folder === undefined) === (journal === undefined)) {
    throw new DefinitionInvalid('openRuns', 'it needs a folder or a journal, and not both')
  }
  const own = journal ?? (await openFolderJournal({ path: folder as string, environment }))
  const telemetry = telemetryOf(options, own, environment)
  await telemetry?.start()
  return new Runs(own, { ...options, environment }, telemetry)
}

interface Working {
  readonly orchestrator: Orchestrator
  readonly log: RunLog
  readonly newAuthor: () => Author
  readonly result: Promise<RunOutcome>
}

/** The runs of a journal. */
export class Runs implements AsyncDisposable {
  readonly journal: Journal
  readonly #options: RunsOptions & { readonly environment: Environment }
  readonly #logger: Logger
  readonly #worker: string
  readonly #definitions = new Map<string, AnyRun>()
  readonly #working = new Map<string, Working>()
  readonly #telemetry: Telemetry | undefined
  readonly #observer: RunObserver

  /** Made by `openRuns`. */
  constructor(
    journal: Journal,
    options: RunsOptions & { readonly environment: Environment },
    telemetry?: Telemetry,
  ) {
    this.journal = journal
    this.#options = options
    this.#telemetry = telemetry
    this.#observer = observersOf(options, telemetry)
    this.#logger = harmlessLogger(options.logger ?? SILENT)
    this.#worker = options.worker ?? `${hostname()}-${process.pid}`
    for (const definition of options.runs ?? []) this.#know(definition)
  }

  /** Begins a run. It is durable when this returns, and is then worked on here. */
  async start<Input>(
    definition: RunDefinition<Input>,
    options: StartOptions<Input> = {},
  ): Promise<RunHandle> {
    this.#know(definition)
    const { environment } = this.#options
    const { runId = environment.ids.next(), input = null, signal } = options
    const content = Buffer.from(encode({ definition: definition.name, input }, ARTIFACT_JSON))
    const parsed = await parse(definition, input)
    const newAuthor = this.#authorsOf(environment.ids.next().replaceAll('-', ''))
    const writer = await this.#create(definition, runId, newAuthor)
    return this.#holding(writer, async () => {
      const log = this.#logOf(definition, writer)
      const stored = await writer.writeArtifact(DEFINITION, content)
      const worker = this.#worker
      await log.tell(newAuthor(), { kind: 'write-artifact', name: DEFINITION, ...stored, worker })
      return this.#work({ definition, input: parsed }, log, newAuthor, { signal })
    })
  }

  /**
   * Continues a run where it was left, as document 004 says. A run that is done is left alone; one
   * that has failed or was cancelled is refused with `RunEnded`, and can be forked.
   */
  async resume(
    runId: string,
    options: ResumeOptions & { readonly signal?: AbortSignal } = {},
  ): Promise<RunHandle> {
    const newAuthor = this.#authorsOf(await this.#traceOf(runId))
    const history = new HistoryNotes()
    let writer: RunWriter
    try {
      writer = await this.journal.open(runId, newAuthor(), history.note)
    } catch (error) {
      if (error instanceof RunLogDamaged) return this.#failDamaged(runId, newAuthor)
      throw error
    }
    return this.#holding(writer, async () => {
      const ended = endOf(this.#machineOf(writer.run), writer.run)
      if (ended?.kind === 'done') {
        await writer.close()
        return handleOf(runId, Promise.resolve(ended))
      }
      if (ended !== undefined) throw new RunEnded(runId, writer.run.run_state)
      const { definition, input } = await this.#definitionOf(writer)
      const log = this.#logOf(definition, writer)
      const known = { machine: definition.machine, run: writer.run, history }
      const { forced, commands } = planResume(await this.#survey(writer, known, options))
      await log.tell(newAuthor(), ...commands)
      const { signal, strict = false } = options
      return this.#work({ definition, input }, log, newAuthor, { forced, strict, signal })
    })
  }

  /**
   * Cancels a run: at once where it is worked on here or by nobody; where another process holds it,
   * that one is asked to, and `requested` is the answer.
   */
  async cancel(runId: string, reason: string): Promise<'cancelled' | 'requested'> {
    if (typeof reason !== 'string' || reason.trim() === '') {
      throw new CommandInvalid('reason', 'must not be empty')
    }
    const here = this.#working.get(runId)
    if (here !== undefined) {
      here.orchestrator.cancel(reason)
      const { kind } = await here.result
      if (kind !== 'cancelled') throw new RunEnded(runId, here.log.run.run_state)
      return 'cancelled'
    }
    try {
      await this.#tell(runId, { kind: 'cancel', reason })
      return 'cancelled'
    } catch (error) {
      if (!(error instanceof RunHeld)) throw error
      await this.journal.requestCancel(runId, { reason, actor: this.#worker })
      return 'requested'
    }
  }

  /** Remembers that a commit of a repository belongs to a run, also after its end. */
  async linkCommit(runId: string, sha: string): Promise<void> {
    const here = this.#working.get(runId)
    const command = { kind: 'link-commit', sha } as const
    if (here === undefined) await this.#tell(runId, command)
    else await here.log.tell(here.newAuthor(), command)
  }

  /** Every run, by id, as its snapshot has it. */
  async list(): Promise<ListedRun[]> {
    const ids = await this.journal.list()
    return Promise.all(ids.map(async (runId) => ({ runId, run: await this.journal.peek(runId) })))
  }

  /** A run, from its whole log. */
  async show(runId: string): Promise<ShownRun> {
    const reader = await this.journal.read(runId)
    const replayed = await reader.replay()
    const [holder, cancelRequest] = [await reader.holder(), await reader.cancelRequest()]
    return { ...replayed, holder, cancelRequest }
  }

  /** The events of a run, in order. */
  async *events(runId: string, range?: EventRange): AsyncIterable<RunEvent> {
    const reader = await this.journal.read(runId)
    yield* reader.events(range)
  }

  /** What resuming a run would do, and why; changes nothing. */
  async explain(runId: string, options: ResumeOptions = {}): Promise<RunExplanation> {
    const reader = await this.journal.read(runId)
    const history = new HistoryNotes()
    const { run } = await reader.replay(history.note)
    const machine = this.#machineOf(run)
    const { disk = inputDisk, environment } = this.#options
    const inputs = {
      disk,
      now: () => environment.clock.now(),
      keep: keepNothing,
      read: (name: string, sha256: string) => reader.readArtifact(name, sha256),
      findDamaged: reader.findDamaged.bind(reader),
    }
    const situation = await survey({ machine, run, history }, inputs, options)
    const { damaged, changes } = situation
    const hasEnded = endOf(machine, run) !== undefined
    const asIs = { commands: [], run, rewinds: [], forced: new Set<string>() }
    const plan = hasEnded ? asIs : planResume(situation)
    const { strict = false } = options
    return {
      runId,
      state: run.run_state,
      hasEnded,
      rewinds: plan.rewinds,
      continuesIn: plan.run.run_state,
      changedInputs: changes.map(({ name }) => name).filter((name) => !name.startsWith('run:')),
      damaged,
      items: explainItems({ plan, history, damaged, strict }),
    }
  }

  /** Checks log, chain, schemas, snapshot and artifacts of a run; changes nothing. */
  verify(runId: string): Promise<RunFinding[]> {
    return this.journal.verify(runId)
  }

  /** Stops the work on every run of this process; each can be resumed. */
  async close(): Promise<void> {
    for (const { orchestrator } of this.#working.values()) orchestrator.interrupt()
    await Promise.allSettled([...this.#working.values()].map(({ result }) => result))
    await this.#telemetry?.close()
    await this.journal.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #know(definition: AnyRun): void {
    const known = this.#definitions.get(definition.name)
    if (known !== undefined && known !== definition) {
      throw new DefinitionInvalid(`run "${definition.name}"`, 'another one has its name')
    }
    this.#definitions.set(definition.name, definition)
  }

  /** A creation that a crash cut short was acknowledged to nobody, and is taken up again. */
  async #create(
    { machine, maxFixAttempts }: AnyRun,
    runId: string,
    newAuthor: () => Author,
  ): Promise<RunWriter> {
    try {
      return await this.journal.create(runId, createFacts(machine, maxFixAttempts), newAuthor())
    } catch (error) {
      if (!(error instanceof RunExists)) throw error
      const there = await this.journal.peek(runId)
      if (there !== undefined && there.last_seq > 1) throw error
      const writer = await this.journal.open(runId, newAuthor())
      if (entryOf(writer.run.artifacts_index, DEFINITION) === undefined) return writer
      await writer.close()
      throw error
    }
  }

  async #definitionOf(writer: RunWriter): Promise<{ definition: AnyRun; input: unknown }> {
    const { runId, run } = writer
    const known = entryOf(run.artifacts_index, DEFINITION)
    if (known === undefined) throw new RunIncomplete(runId)
    const text = new TextDecoder().decode(await writer.readArtifact(DEFINITION, known.sha256))
    const { definition: name, input } = JSON.parse(text) as { definition: string; input: unknown }
    const definition = this.#definitions.get(name)
    if (definition === undefined) {
      throw new RunDefinitionUnknown(runId, name, [...this.#definitions.keys()])
    }
    return { definition, input: await parse(definition, input) }
  }

  #survey(writer: RunWriter, known: Parameters<typeof survey>[0], options: ResumeOptions) {
    const { disk = inputDisk, environment } = this.#options
    const inputs = {
      disk,
      now: () => environment.clock.now(),
      keep: (name: string, content: Uint8Array) => writer.writeArtifact(name, content),
      read: (name: string, sha256: string) => writer.readArtifact(name, sha256),
      findDamaged: writer.findDamaged.bind(writer),
    }
    return survey(known, inputs, options)
  }

  #work(
    { definition, input }: { readonly definition: AnyRun; readonly input: unknown },
    log: RunLog,
    newAuthor: () => Author,
    options: { forced?: ReadonlySet<string>; strict?: boolean; signal?: AbortSignal | undefined },
  ): RunHandle {
    const { environment, pawl, disk = inputDisk } = this.#options
    const { runId } = log.writer
    const node = (signal: AbortSignal) => {
      const forced = new Set(options.forced)
      const { strict = false } = options
      const logger = this.#runLogger(runId)
      const work = { log, logger, signal, forced, strict, newAuthor }
      const inputs = new Inputs(log, { disk, now: () => environment.clock.now() })
      const worker = this.#worker
      return { ...work, items: new WorkItems(work), inputs, input, worker, pawl }
    }
    const orchestrator = new Orchestrator({ definition, environment, node, newAuthor })
    const interrupt = () => orchestrator.interrupt()
    if (options.signal?.aborted) interrupt()
    options.signal?.addEventListener('abort', interrupt, { once: true })
    const result = orchestrator.work().finally(() => {
      this.#working.delete(runId)
      options.signal?.removeEventListener('abort', interrupt)
    })
    // Whoever asks for the result learns of its failure; nobody has to ask.
    result.catch(() => {})
    this.#working.set(runId, { orchestrator, log, newAuthor, result })
    return handleOf(runId, result)
  }

  /** Does something with a writer that is closed if that fails. */
  async #holding<T>(writer: RunWriter, act: () => Promise<T>): Promise<T> {
    try {
      return await act()
    } catch (error) {
      await writer.close()
      throw error
    }
  }

  /** Opens a run that nobody holds, tells it something, and closes it. */
  async #tell(runId: string, command: Parameters<RunLog['tell']>[1]): Promise<void> {
    const newAuthor = this.#authorsOf(await this.#traceOf(runId))
    await using writer = await this.journal.open(runId, newAuthor())
    const machine = this.#machineOf(writer.run)
    await this.#logOf({ machine }, writer).tell(newAuthor(), command as never)
  }

  async #failDamaged(runId: string, newAuthor: () => Author): Promise<RunHandle> {
    const { damage, run } = await this.journal
      .read(runId)
      .then((reader) => reader.replay())
      .catch((error) => {
        if (error instanceof RunLogDamaged) return { damage: undefined, run: undefined }
        throw error
      })
    if (damage !== undefined && run !== undefined) throw new RunEnded(runId, run.run_state)
    const failed = await this.journal.failDamaged(
      runId,
      (before, found) => damageFacts(before, found, (one) => this.#machineOf(one)),
      newAuthor(),
    )
    const reason = failed.run.ended_because ?? 'SnapshotInvalid'
    return handleOf(runId, Promise.resolve({ kind: 'failed', run: failed.run, reason }))
  }

  #logOf({ machine }: Pick<AnyRun, 'machine'>, writer: RunWriter): RunLog {
    const { environment } = this.#options
    const now = () => new Date(environment.clock.now()).toISOString()
    const [logger, observer] = [this.#logger, this.#observer]
    return new RunLog({ writer, machine, logger, observer, now })
  }

  #machineOf(run: Run) {
    return machineOf(
      run,
      [...this.#definitions.values()].map(({ machine }) => machine),
    )
  }

  #runLogger(run_id: string): Logger {
    const at =
      (level: keyof Logger): Logger['info'] =>
      (fields, msg) =>
        this.#logger[level]({ ...fields, run_id }, msg)
    return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  }

  /** Events of one run belong to one trace; each piece of work is a span of it. */
  #authorsOf(trace_id: string): () => Author {
    const { ids } = this.#options.environment
    return () => {
      const span_id = ids.next().replaceAll('-', '').slice(-16)
      return { trace_id, span_id, actor: this.#worker }
    }
  }

  async #traceOf(runId: string): Promise<string> {
    try {
      for await (const event of this.events(runId, { from: 1, to: 1 })) return event.trace_id
    } catch (error) {
      if (!(error instanceof RunLogDamaged)) throw error
    }
    return this.#options.environment.ids.next().replaceAll('-', '')
  }
}

function handleOf(id: string, result: Promise<RunOutcome>): RunHandle {
  return { id, result: () => result }
}

async function parse(definition: AnyRun, input: unknown): Promise<unknown> {
  const checked = await validate(definition.schema, input)
  if (checked.ok) return checked.value
  throw new InputInvalid(definition.name, checked.why)
}
