/**
 * Runs: started, resumed, cancelled and explained. One process at a time works on a run; the
 * journal sees to that.
 *
 * The artifact `run:definition` says what a run is for (`made-for.ts`). It is written right after
 * RUN_CREATED, and only then is the run acknowledged.
 */
import { hostname } from 'node:os'
import { abortSignal, flag } from '../core/checks.ts'
import { CommandInvalid, DefinitionInvalid, RunEnded, RunExists } from '../core/errors.ts'
import { checkDefinition, checkFields } from '../core/fields.ts'
import type { Logger } from '../core/ports.ts'
import type { RunEvent } from '../core/run/events.ts'
import { documentationRun, type RunMachine } from '../core/run/machine.ts'
import { entryOf, type Run } from '../core/run/run.ts'
import { InputInvalid } from '../engine/errors.ts'
import { validate } from '../engine/schema.ts'
import { harmlessLogger } from '../engine/watching/hooks.ts'
import { SILENT } from '../engine/watching/log.ts'
import { type Environment, systemEnvironment } from '../environment/system.ts'
import { createFacts, damageFacts } from './damage.ts'
import type { RunDefinition } from './define-run.ts'
import { RunDefinitionUnknown } from './errors.ts'
import type { RunExplanation } from './explain.ts'
import { explainRun } from './explain-run.ts'
import { HistoryNotes } from './history.ts'
import { inputDisk } from './input-disk.ts'
import { Inputs } from './input-files.ts'
import { RunHeld, RunLogDamaged } from './journal/errors.ts'
import { openFolderJournal } from './journal/folder/journal.ts'
import type {
  Author,
  CancelRequest,
  DecideFailure,
  EventRange,
  Holder,
  Journal,
  Replayed,
  RunFinding,
  RunReader,
  RunWriter,
} from './journal/journal.ts'
import { type ListedRun, type ListOptions, listRuns } from './listing.ts'
import {
  assertMadeFor,
  DEFINITION,
  encodeMadeFor,
  machineOf,
  type ReadContent,
  readMadeFor,
} from './made-for.ts'
import { Orchestrator } from './orchestrator.ts'
import { endOf, type RunOutcome } from './outcome.ts'
import { planResume } from './resume-plan.ts'
import { RunLog, type RunObserver } from './run-log.ts'
import {
  type AnyRun,
  OPEN_OPTIONS,
  type RunsOptions,
  START_OPTIONS,
  type StartOptions,
  type StartOrResumeOptions,
} from './runs-options.ts'
import { type ResumeOptions, SURVEY_OPTIONS, survey } from './survey.ts'
import { observersOf, telemetryOf } from './telemetry/observers.ts'
import type { Telemetry } from './telemetry/telemetry.ts'
import { WorkItems } from './work-items.ts'

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

const RESUME_OPTIONS = { ...SURVEY_OPTIONS, signal: abortSignal }

/** Opens the place where runs are kept. */
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

  /** Made by `openRuns`. @internal */
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
    checkFields(options, START_OPTIONS, { what: 'options' })
    this.#know(definition)
    const { environment } = this.#options
    const { runId = environment.ids.next(), input = null, signal } = options
    const content = encodeMadeFor(definition.name, definition.machine, input)
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
   * Starts a run, or resumes the one that is there under this id. Throws `RunDiffers` if that one
   * is of another kind or has another input.
   */
  async startOrResume<Input>(
    definition: RunDefinition<Input>,
    options: StartOrResumeOptions<Input>,
  ): Promise<RunHandle> {
    checkFields(options, { ...START_OPTIONS, ...SURVEY_OPTIONS }, { what: 'options' })
    const { runId, input, signal, ...resuming } = options
    if (runId === undefined) throw new CommandInvalid('runId', 'must say which run')
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
    const reader = await this.journal.read(runId)
    const { run, damage } = await replayedOrNothing(reader)
    // Of a damaged run only its failure can be told, which resuming does.
    if (run !== undefined && damage === undefined) {
      const read: ReadContent = (name, sha256) => reader.readArtifact(name, sha256)
      await assertMadeFor(run, { definition: definition.name, input }, read)
    }
    return this.resume(runId, { ...resuming, ...common })
  }

  /**
   * Continues a run where it was left, as R4 says. A run that is done is left alone; one
   * that has failed or was cancelled is refused with `RunEnded`, and can be forked.
   */
  async resume(
    runId: string,
    options: ResumeOptions & { readonly signal?: AbortSignal } = {},
  ): Promise<RunHandle> {
    checkFields(options, RESUME_OPTIONS, { what: 'options' })
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

  /** Every run, by id, as its snapshot has it; see `ListOptions` for more. */
  async list(options: ListOptions = {}): Promise<ListedRun[]> {
    checkFields(options, { check: flag }, { what: 'options' })
    return listRuns(this.journal, options)
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
    checkFields(options, SURVEY_OPTIONS, { what: 'options' })
    const { disk = inputDisk, environment } = this.#options
    return explainRun(await this.journal.read(runId), options, {
      disk,
      environment,
      machineOf: (run, reader) => this.#machineOf(run, reader),
      checkDefinition: (run, reader) => this.#definitionOf(run, reader),
    })
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

  async #definitionOf(
    run: Run,
    source: Pick<RunReader, 'readArtifact'>,
  ): Promise<{ definition: AnyRun; input: unknown }> {
    const read: ReadContent = (each, sha256) => source.readArtifact(each, sha256)
    const { definition: name, input } = await readMadeFor(run, read)
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
    const machine = await this.#machineOf(writer.run, writer)
    await this.#logOf({ machine }, writer).tell(newAuthor(), command as never)
  }

  async #failDamaged(runId: string, newAuthor: () => Author): Promise<RunHandle> {
    const reader = await this.journal.read(runId)
    const { damage, run } = await replayedOrNothing(reader)
    if (damage !== undefined && run !== undefined) throw new RunEnded(runId, run.run_state)
    const decide: DecideFailure = async (before, found) =>
      // Of a run that cannot be read at all, it is not even known which machine it had.
      damageFacts(before, found, before ? await this.#machineOf(before, reader) : documentationRun)
    const failed = await this.journal.failDamaged(runId, decide, newAuthor())
    this.#observer.recorded((await reader.failure())?.events ?? [])
    const reason = failed.run.ended_because ?? 'SnapshotInvalid'
    const outcome = { kind: 'failed', run: failed.run, reason } as const
    const told = { ...outcome, ...(failed.damage && { damage: failed.damage }) }
    return handleOf(runId, Promise.resolve(told))
  }

  #logOf({ machine }: Pick<AnyRun, 'machine'>, writer: RunWriter): RunLog {
    const { environment } = this.#options
    const now = () => new Date(environment.clock.now()).toISOString()
    const [logger, observer] = [this.#logger, this.#observer]
    return new RunLog({ writer, machine, logger, observer, now })
  }

  #machineOf(run: Run, source: Pick<RunReader, 'readArtifact'>): Promise<RunMachine> {
    const known = [...this.#definitions.values()].map(({ machine }) => machine)
    return machineOf(run, known, (name, sha256) => source.readArtifact(name, sha256))
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

/** Nothing if the log is damaged and nobody has recorded it. */
async function replayedOrNothing(reader: RunReader): Promise<Partial<Replayed>> {
  try {
    return await reader.replay()
  } catch (error) {
    if (error instanceof RunLogDamaged) return {}
    throw error
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
