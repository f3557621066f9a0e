/**
 * Starts, resumes, cancels and explains runs. The journal ensures that one process at a time works
 * on a run. `creation.ts` describes how a run begins.
 */
import { hostname } from 'node:os'
import { abortSignal, flag } from '../core/checks.ts'
import { CommandInvalid, DefinitionInvalid, RunEnded, RunExists } from '../core/errors.ts'
import { checkDefinition, checkFields } from '../core/fields.ts'
import type { Logger } from '../core/ports.ts'
import type { RunEvent } from '../core/run/events.ts'
import type { RunMachine } from '../core/run/machine.ts'
import { entryOf, type Run } from '../core/run/run.ts'
import { InputInvalid } from '../engine/errors.ts'
import { validate } from '../engine/schema.ts'
import { loadTracing } from '../engine/tracing/opentelemetry.ts'
import { Tracer } from '../engine/tracing/tracer.ts'
import { harmlessLogger } from '../engine/watching/hooks.ts'
import { SILENT } from '../engine/watching/log.ts'
import { type Environment, systemEnvironment } from '../environment/system.ts'
import {
  assertMadeFor,
  createFacts,
  DEFINITION,
  encodeMadeFor,
  machineOf,
  type ReadContent,
  readMadeFor,
} from './creation.ts'
import { failDamaged, replayedOrNothing } from './damage.ts'
import type { RunDefinition } from './define-run.ts'
import { RunDefinitionUnknown } from './errors.ts'
import { explainRun, type RunExplanation } from './explain.ts'
import { HistoryNotes } from './history.ts'
import { inputDisk } from './input-disk.ts'
import { Inputs } from './input-files.ts'
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
  RunReader,
  RunWriter,
} from './journal/journal.ts'
import { type ListedRun, type ListOptions, listRuns } from './listing.ts'
import { endOf, Orchestrator, type RunOutcome } from './orchestrator.ts'
import { planResume, survey } from './resume-plan.ts'
import { authorsOf, type NewAuthor } from './run-authors.ts'
import { RunLog } from './run-log.ts'
import {
  type AnyRun,
  EVENT_RANGE,
  OPEN_OPTIONS,
  type ResumeOptions,
  type RunsOptions,
  START_OPTIONS,
  type StartOptions,
  type StartOrResumeOptions,
  SURVEY_OPTIONS,
} from './runs-options.ts'
import { observersOf, type RunObservers, telemetryOf } from './telemetry/observers.ts'
import type { Telemetry } from './telemetry/telemetry.ts'
import { WorkItems } from './work-items.ts'

/** The state of a run, read from its log without the code of its nodes. */
export interface ShownRun extends Replayed {
  readonly holder: Holder | undefined
  readonly cancelRequest: CancelRequest | undefined
}

/** A run that this process works on. */
export interface RunHandle {
  readonly id: string
  /**
   * Resolves when the work ends. Rejects if a node returns a state to which no edge leads, or if
   * the run was lost.
   */
  result(): Promise<RunOutcome>
}

const RESUME_OPTIONS = { ...SURVEY_OPTIONS, signal: abortSignal }

/** Opens the runs of a folder or journal. */
export async function openRuns(options: RunsOptions): Promise<Runs> {
  checkDefinition('openRuns', options, OPEN_OPTIONS)
  const { folder, journal } = options
  const environment = options.environment ?? systemEnvironment()
  if ((folder === undefined) === (journal === undefined)) {
    throw new DefinitionInvalid('openRuns', 'it needs a folder or a journal, and not both')
  }
  const own = journal ?? (await openFolderJournal({ path: folder as string, environment }))
  const telemetry = telemetryOf(options, own, environment)
  await telemetry?.start()
  const loaded = await loadTracing(options.tracing)
  const ports = { clock: environment.clock, logger: harmlessLogger(options.logger ?? SILENT) }
  const tracer = loaded && new Tracer(loaded, ports)
  return new Runs(own, { ...options, environment, tracer }, telemetry)
}

/** The options, and what was made of them. */
type OwnOptions = RunsOptions & {
  readonly environment: Environment
  readonly tracer: Tracer | undefined
}

interface Working {
  readonly orchestrator: Orchestrator
  readonly log: RunLog
  readonly newAuthor: () => Author
  readonly result: Promise<RunOutcome>
}

/** The runs of a journal, and those that this process works on. */
export class Runs implements AsyncDisposable {
  readonly journal: Journal
  readonly #options: OwnOptions
  readonly #logger: Logger
  readonly #worker: string
  readonly #definitions = new Map<string, AnyRun>()
  readonly #working = new Map<string, Working>()
  readonly #telemetry: Telemetry | undefined
  readonly #observer: RunObservers

  /** Made by `openRuns`. @internal */
  constructor(journal: Journal, options: OwnOptions, telemetry?: Telemetry) {
    this.journal = journal
    this.#options = options
    this.#telemetry = telemetry
    this.#observer = observersOf(options, telemetry)
    this.#logger = harmlessLogger(options.logger ?? SILENT)
    this.#worker = options.worker ?? `${hostname()}-${process.pid}`
    for (const definition of options.runs ?? []) this.#know(definition)
  }

  /** The definitions that this process knows, by name. */
  get definitions(): ReadonlyMap<string, AnyRun> {
    return this.#definitions
  }

  /** Starts a run and works on it in this process. The run is durable when the promise resolves. */
  async start<Input>(
    definition: RunDefinition<Input>,
    options: StartOptions<Input> = {},
  ): Promise<RunHandle> {
    checkFields(options, START_OPTIONS, { what: 'options' })
    this.#know(definition)
    const { environment } = this.#options
    const { runId = environment.ids.next(), input = null, signal } = options
    const content = encodeMadeFor(definition.name, definition.machine, input)
    const parsed = await parse(definition, input)
    const { newAuthor } = this.#authors()
    newAuthor.spans?.begin(definition.name, runId)
    const writer = await this.#create(definition, runId, newAuthor)
    return this.#holding(writer, async () => {
      const log = this.#logOf(definition, writer)
      const stored = await writer.writeArtifact(DEFINITION, content)
      const worker = this.#worker
      await log.applyCommand(newAuthor(), {
        kind: 'write-artifact',
        name: DEFINITION,
        ...stored,
        worker,
      })
      return this.#work({ definition, input: parsed }, log, newAuthor, { signal })
    })
  }

  /**
   * Starts a run, or resumes the run with this id. Throws `RunDiffers` if that run has another
   * definition or input.
   */
  async startOrResume<Input>(
    definition: RunDefinition<Input>,
    options: StartOrResumeOptions<Input>,
  ): Promise<RunHandle> {
    checkFields(options, { ...START_OPTIONS, ...SURVEY_OPTIONS }, { what: 'options' })
    const { runId, input, signal, ...resuming } = options
    if (runId === undefined) throw new CommandInvalid('runId', 'must be the id of a run')
    const common = signal === undefined ? {} : { signal }
    try {
      return await this.start(definition, {
        runId,
        ...(input !== undefined && { input }),
        ...common,
      })
    } catch (error) {
      if (!(error instanceof RunExists)) throw error
    }
    const expected = { definition: definition.name, input }
    try {
      return await this.#resume(runId, { ...resuming, ...common }, expected)
    } catch (error) {
      // A run of another kind is the caller's mistake, even while another process holds the run.
      if (error instanceof RunHeld) await this.#assertMadeFor(runId, expected)
      throw error
    }
  }

  /**
   * Continues a run from its last stable state (R4). Does nothing if the run is done. Throws
   * `RunEnded` if it has failed or was cancelled; such a run can be forked.
   */
  async resume(
    runId: string,
    options: ResumeOptions & { readonly signal?: AbortSignal } = {},
  ): Promise<RunHandle> {
    checkFields(options, RESUME_OPTIONS, { what: 'options' })
    return this.#resume(runId, options)
  }

  /** Reads the log once, while it opens the run: a log can be long. */
  async #resume(
    runId: string,
    options: ResumeOptions & { readonly signal?: AbortSignal },
    expected?: Expected,
  ): Promise<RunHandle> {
    const { note, newAuthor } = this.#authors()
    const history = new HistoryNotes()
    let writer: RunWriter
    try {
      writer = await this.journal.open(runId, newAuthor, (event) => {
        note(event)
        history.note(event)
      })
    } catch (error) {
      if (error instanceof RunLogDamaged) return this.#failDamaged(runId, newAuthor)
      throw error
    }
    return this.#holding(writer, async () => {
      if (expected !== undefined) await assertMadeFor(writer.run, expected, contentsOf(writer))
      const ended = endOf(await this.#machineOf(writer.run, writer), writer.run)
      if (ended?.kind === 'done') {
        await writer.close()
        return handleOf(runId, Promise.resolve(ended))
      }
      if (ended !== undefined) throw new RunEnded(runId, writer.run.run_state)
      const { definition, input } = await this.#definitionOf(writer.run, writer)
      const log = this.#logOf(definition, writer)
      const known = { machine: definition.machine, run: writer.run, history }
      const { forced, commands } = planResume(await this.#survey(writer, known, options))
      await log.applyCommand(newAuthor(), ...commands)
      const { signal, strict = false } = options
      return this.#work({ definition, input }, log, newAuthor, { forced, strict, signal })
    })
  }

  /**
   * Cancels a run. Returns `requested` if another process holds the run: that process cancels it
   * soon.
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
      await this.#applyCommand(runId, { kind: 'cancel', reason })
      return 'cancelled'
    } catch (error) {
      if (!(error instanceof RunHeld)) throw error
      await this.journal.requestCancel(runId, { reason, actor: this.#worker })
      return 'requested'
    }
  }

  /** Records that a commit of a repository belongs to a run. Also works after the run's end. */
  async linkCommit(runId: string, sha: string): Promise<void> {
    const here = this.#working.get(runId)
    const command = { kind: 'link-commit', sha } as const
    if (here === undefined) await this.#applyCommand(runId, command)
    else await here.log.applyCommand(here.newAuthor(), command)
  }

  /** Returns all runs by id, from their snapshots unless `check` is set. */
  async list(options: ListOptions = {}): Promise<ListedRun[]> {
    checkFields(options, { check: flag }, { what: 'options' })
    return listRuns(this.journal, options)
  }

  /** Reads a run from its whole log. */
  async show(runId: string): Promise<ShownRun> {
    const reader = await this.journal.read(runId)
    const replayed = await reader.replay()
    const [holder, cancelRequest] = [await reader.holder(), await reader.cancelRequest()]
    return { ...replayed, holder, cancelRequest }
  }

  /** Yields the events of a run, in order. */
  async *events(runId: string, range: EventRange = {}): AsyncIterable<RunEvent> {
    checkFields(range, EVENT_RANGE, { what: 'range' })
    const reader = await this.journal.read(runId)
    yield* reader.events(range)
  }

  /** Returns what resuming a run would do, and why. Changes nothing. */
  async explain(runId: string, options: ResumeOptions = {}): Promise<RunExplanation> {
    checkFields(options, SURVEY_OPTIONS, { what: 'options' })
    const { disk = inputDisk, environment } = this.#options
    return explainRun(await this.journal.read(runId), options, {
      disk,
      environment,
      machineOf: (run, reader) => this.#machineOf(run, reader),
      checkDefinition: (run, reader) => this.#definitionOf(run, reader),
    })
  }

  /** Checks log, chain, schemas, snapshot and artifacts of a run. Changes nothing. */
  verify(runId: string): Promise<RunFinding[]> {
    return this.journal.verify(runId)
  }

  /** Stops the work on all runs of this process. They can be resumed. */
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
      throw new DefinitionInvalid(`run "${definition.name}"`, 'another definition has this name')
    }
    this.#definitions.set(definition.name, definition)
  }

  /** A run whose creation was interrupted by a crash was never acknowledged. It is completed. */
  async #create(
    { machine, maxFixAttempts }: AnyRun,
    runId: string,
    newAuthor: () => Author,
  ): Promise<RunWriter> {
    try {
      const facts = createFacts(machine, maxFixAttempts)
      const writer = await this.journal.create(runId, facts, newAuthor())
      this.#observer.created(facts)
      return writer
    } catch (error) {
      if (!(error instanceof RunExists)) throw error
      const there = await this.journal.peek(runId)
      if (there !== undefined && there.last_seq > 1) throw error
      const writer = await this.journal.open(runId, newAuthor)
      if (entryOf(writer.run.artifacts_index, DEFINITION) === undefined) return writer
      await writer.close()
      throw error
    }
  }

  async #definitionOf(
    run: Run,
    source: Pick<RunReader, 'readArtifact'>,
  ): Promise<{ definition: AnyRun; input: unknown }> {
    const { definition: name, input } = await readMadeFor(run, contentsOf(source))
    const definition = this.#definitions.get(name)
    if (definition === undefined) {
      throw new RunDefinitionUnknown(run.run_id, name, [...this.#definitions.keys()])
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
    newAuthor: NewAuthor,
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
    const { spans } = newAuthor
    spans?.begin(definition.name, runId)
    const work = () => orchestrator.work()
    const result = (spans === undefined ? work() : spans.work(work)).finally(() => {
      this.#working.delete(runId)
      options.signal?.removeEventListener('abort', interrupt)
    })
    // A caller who does not ask for the result must not cause an unhandled rejection.
    result.catch(() => {})
    this.#working.set(runId, { orchestrator, log, newAuthor, result })
    return handleOf(runId, result)
  }

  /** Runs a function and closes the writer if the function throws. */
  async #holding<T>(writer: RunWriter, act: () => Promise<T>): Promise<T> {
    try {
      return await act()
    } catch (error) {
      await writer.close()
      throw error
    }
  }

  /** Opens a run that is not held, applies one command, and closes the run. */
  async #applyCommand(
    runId: string,
    command: Parameters<RunLog['applyCommand']>[1],
  ): Promise<void> {
    const { note, newAuthor } = this.#authors()
    await using writer = await this.journal.open(runId, newAuthor, note)
    const machine = await this.#machineOf(writer.run, writer)
    await this.#logOf({ machine }, writer).applyCommand(newAuthor(), command as never)
  }

  async #failDamaged(runId: string, newAuthor: () => Author): Promise<RunHandle> {
    const reader = await this.journal.read(runId)
    const outcome = await failDamaged(this.journal, reader, {
      newAuthor,
      machineOf: (run) => this.#machineOf(run, reader),
      recorded: (events) => this.#observer.recorded(events),
    })
    return handleOf(runId, Promise.resolve(outcome))
  }

  #logOf({ machine }: Pick<AnyRun, 'machine'>, writer: RunWriter): RunLog {
    const { environment } = this.#options
    const now = () => new Date(environment.clock.now()).toISOString()
    return new RunLog({ writer, machine, logger: this.#logger, observer: this.#observer, now })
  }

  #machineOf(run: Run, source: Pick<RunReader, 'readArtifact'>): Promise<RunMachine> {
    const known = [...this.#definitions.values()].map(({ machine }) => machine)
    return machineOf(run, known, contentsOf(source))
  }

  #runLogger(run_id: string): Logger {
    const at =
      (level: keyof Logger): Logger['info'] =>
      (fields, msg) =>
        this.#logger[level]({ ...fields, run_id }, msg)
    return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  }

  #authors() {
    const { tracer, environment } = this.#options
    return authorsOf({ ids: environment.ids, worker: this.#worker, tracer })
  }

  async #assertMadeFor(runId: string, expected: Expected): Promise<void> {
    const reader = await this.journal.read(runId)
    const { run, damage } = await replayedOrNothing(reader)
    if (run === undefined || damage !== undefined) return
    await assertMadeFor(run, expected, contentsOf(reader))
  }
}

/** What the caller of `startOrResume` takes a run to be. */
type Expected = Parameters<typeof assertMadeFor>[1]

function contentsOf(source: Pick<RunReader, 'readArtifact'>): ReadContent {
  return (name, sha256) => source.readArtifact(name, sha256)
}

function handleOf(id: string, result: Promise<RunOutcome>): RunHandle {
  return { id, result: () => result }
}

async function parse(definition: AnyRun, input: unknown): Promise<unknown> {
  const checked = await validate(definition.schema, input)
  if (checked.ok) return checked.value
  throw new InputInvalid(definition.name, checked.why)
}
