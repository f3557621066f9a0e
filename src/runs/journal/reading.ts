/** Reading a run: log, snapshot, what was recorded beside them, and artifacts. */
import { createHash } from 'node:crypto'
import { RunNotFound } from '../../core/errors.ts'
import type { RunEvent } from '../../core/run/events.ts'
import type { Run } from '../../core/run/run.ts'
import type { Environment } from '../../environment/system.ts'
import { ArtifactChanged, ArtifactMissing, RunLogDamaged, RunNotDamaged } from './errors.ts'
import { extend } from './event-line.ts'
import type { FailureRecord } from './failure-record.ts'
import { guarded } from './guarded.ts'
import { sha256Of } from './hash.ts'
import type {
  ArtifactHashes,
  Author,
  CancelRequest,
  Damage,
  DecideFailure,
  EventRange,
  Holder,
  Replayed,
  RunFailureRecord,
  RunReader,
} from './journal.ts'
import { LogReplay, type ReplayOptions } from './log-replay.ts'
import { artifactPath } from './names.ts'
import type { ChainedEvent } from './schemas.ts'
import { claimOf, decodeSnapshot, isSnapshotOf, type ReadSnapshot, runOf } from './snapshot.ts'
import type { KnownLine, RunSource } from './source.ts'

/** A run whose log was read to its end. */
export interface Examined {
  readonly log: LogReplay
  /** The snapshot, read and checked by itself. */
  snapshot(): ReadSnapshot | { readonly kind: 'missing' }
  /** Whether the snapshot is, byte for byte, what the log folds to, and fits its schema. */
  isCurrent(): boolean
}

/**
 * Reads and checks everything but the artifacts; throws `RunLogDamaged`. The snapshot is read
 * first: a writer at work can only have added to the log since then, so that a snapshot that knows
 * more than the log proves damage.
 */
export async function examine(
  source: RunSource,
  onEvent?: ReplayOptions['onEvent'],
): Promise<Examined> {
  const { runId } = source
  const text = await source.snapshot()
  const known = (await source.known()) ?? (text === undefined ? undefined : knownBy(runId, text))
  const log = new LogReplay(runId, { ...(known && { known }), ...(onEvent && { onEvent }) })
  await feed(log, source)
  const damage = findContradiction(log, text !== undefined, known)
  if (damage !== undefined) throw new RunLogDamaged(runId, damage)
  return {
    log,
    snapshot: () => (text === undefined ? { kind: 'missing' } : decodeSnapshot(runId, text)),
    isCurrent: () =>
      log.run !== null && text !== undefined && isSnapshotOf(log.run, log.lastHash, text),
  }
}

/** A snapshot in other than the canonical form, which nobody writes, must be read as a whole. */
function knownBy(runId: string, text: string): KnownLine | undefined {
  const claim = claimOf(runId, text)
  if (claim !== undefined) return claim
  const read = decodeSnapshot(runId, text)
  if (read.kind !== 'valid') return undefined
  return { seq: read.snapshot.last_seq, hash: read.snapshot.last_event_hash }
}

/** A snapshot is written after its events, so the log must have every event that it knows. */
function findContradiction(
  log: LogReplay,
  hasSnapshot: boolean,
  known: KnownLine | undefined,
): Damage | undefined {
  if (log.lines === 0) {
    const why = 'the log is missing, though the run has a snapshot'
    return hasSnapshot ? { line: 0, offset: 0, why } : undefined
  }
  if (known === undefined || known.seq <= log.lines) return undefined
  const why = `the log ends here, though event ${known.seq} was written`
  return { line: log.lines + 1, offset: log.wholeBytes, why }
}

async function feed(log: LogReplay, source: RunSource): Promise<void> {
  if (log.done) return
  for await (const chunk of source.log()) {
    log.feed(chunk)
    if (log.done) return
  }
}

/** What was recorded of the damage that the log has now; nothing where nothing was. */
export async function findFailure(source: RunSource): Promise<FailureRecord | undefined> {
  const records = await source.failures()
  if (records.length === 0) return undefined
  const sha256 = await hashOfLog(source)
  return records.find((record) => record.sha256 === sha256)
}

/** The run as the snapshot has it, or as it failed if its damage was recorded. */
export async function peekRun(source: RunSource): Promise<Run | undefined> {
  const record = await findFailure(source)
  if (record !== undefined) return (await replayFailed(source, record)).run
  const text = await source.snapshot()
  const read = text === undefined ? undefined : decodeSnapshot(source.runId, text)
  return read?.kind === 'valid' ? runOf(read.snapshot) : undefined
}

/** The SHA-256 of the log as it is, damaged or not; of nothing where it is missing. */
async function hashOfLog(source: RunSource): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of source.log()) hash.update(chunk)
  return hash.digest('hex')
}

/**
 * Finds the damage of a run and what is to be recorded of it. A record that is there already is
 * given back, and `decide` is not asked. Throws `RunNotDamaged`.
 */
export async function describeFailure(
  source: RunSource,
  decide: DecideFailure,
  author: Author,
  environment: Environment,
): Promise<{ readonly record: FailureRecord; readonly isNew: boolean }> {
  const damage = await findDamage(source)
  const known = await findFailure(source)
  if (known !== undefined) return { record: known, isNew: false }
  const log = await replayBefore(source, damage)
  const facts = await decide(log.run, damage)
  const { lines } = extend(log.open(), facts, author, environment)
  return { record: { sha256: await hashOfLog(source), damage, lines }, isNew: true }
}

async function findDamage(source: RunSource): Promise<Damage> {
  try {
    const { log } = await examine(source)
    if (log.run === null) throw new RunNotFound()
  } catch (error) {
    if (error instanceof RunLogDamaged) return error.damage
    throw error
  }
  throw new RunNotDamaged(source.runId)
}

/** The run up to its damage, and then as it failed. */
export async function replayFailed(
  source: RunSource,
  { damage, lines }: FailureRecord,
): Promise<Replayed> {
  const log = await replayBefore(source, damage)
  log.continueWith(lines)
  return { run: log.run as Run, lastHash: log.lastHash, tornBytes: 0, damage }
}

async function replayBefore(
  source: RunSource,
  damage: Damage,
  onEvent?: ReplayOptions['onEvent'],
): Promise<LogReplay> {
  const to = Math.max(0, damage.line - 1)
  const log = new LogReplay(source.runId, { to, ...(onEvent && { onEvent }) })
  await feed(log, source)
  return log
}

/** The content of an artifact, which must have its hash. */
export async function readArtifact(
  source: RunSource,
  name: string,
  sha256: string,
): Promise<Uint8Array> {
  const content = await source.artifact(artifactPath(name, sha256))
  assertRight(source.runId, name, sha256, content)
  return content
}

function assertRight(
  runId: string,
  name: string,
  sha256: string,
  content: Uint8Array | undefined,
): asserts content is Uint8Array {
  if (content === undefined) throw new ArtifactMissing(runId, name, sha256)
  const found = sha256Of(content)
  if (found !== sha256) throw new ArtifactChanged(runId, name, sha256, found)
}

/** How many contents are looked at side by side. */
const LOOKS_AT_ONCE = 16

/** The names of artifacts whose content is gone or was changed, sorted; see `RunReader`. */
export async function findDamaged(
  source: RunSource,
  artifacts: ArtifactHashes,
  options: { readonly paranoid?: boolean; readonly remember?: boolean } = {},
): Promise<string[]> {
  const { paranoid = false, remember = false } = options
  const looks = await source.looks()
  const damaged: string[] = []
  const left = Object.entries(artifacts).values()
  const slot = async () => {
    for (const [name, { sha256 }] of left) {
      try {
        if (looks === undefined) await readArtifact(source, name, sha256)
        else {
          await looks.check(artifactPath(name, sha256), paranoid, (content) =>
            assertRight(source.runId, name, sha256, content),
          )
        }
      } catch (error) {
        if (!(error instanceof ArtifactChanged || error instanceof ArtifactMissing)) throw error
        damaged.push(name)
      }
    }
  }
  const slots = await Promise.allSettled(Array.from({ length: LOOKS_AT_ONCE }, slot))
  for (const ended of slots) if (ended.status === 'rejected') throw ended.reason
  if (remember) await looks?.keep()
  return damaged.sort()
}

/** The hash of the line before belongs to the log, not to what happened. */
function eventOf({ prev: _prev, ...event }: ChainedEvent): RunEvent {
  return event
}

/** A run, for those who only read it. */
export class SourceReader implements RunReader {
  readonly #source: RunSource

  constructor(source: RunSource) {
    this.#source = source
  }

  get runId(): string {
    return this.#source.runId
  }

  replay(onEvent?: (event: RunEvent) => void): Promise<Replayed> {
    return guarded(this.runId, 'replay', async () => {
      try {
        const { log } = await examine(this.#source, onEvent)
        if (log.run === null) throw new RunNotFound()
        return { run: log.run, lastHash: log.lastHash, tornBytes: log.torn.length }
      } catch (error) {
        if (!(error instanceof RunLogDamaged)) throw error
        const record = await findFailure(this.#source)
        if (record === undefined) throw error
        return replayFailed(this.#source, record)
      }
    })
  }

  async *lines({ to }: Pick<EventRange, 'to'> = {}): AsyncGenerator<string> {
    for await (const { line } of this.#read(to)) yield line.toString()
  }

  async *events({ from = 1, to }: EventRange = {}): AsyncGenerator<RunEvent> {
    try {
      for await (const { event } of this.#read(to)) if (event.seq >= from) yield eventOf(event)
    } catch (error) {
      if (!(error instanceof RunLogDamaged)) throw error
      const failure = await this.failure()
      if (failure === undefined) throw error
      const wanted = ({ seq }: RunEvent) => seq >= from && (to === undefined || seq <= to)
      yield* failure.events.filter(wanted)
    }
  }

  failure(): Promise<RunFailureRecord | undefined> {
    return guarded(this.runId, 'read', async () => {
      const record = await findFailure(this.#source)
      if (record === undefined) return undefined
      const events: RunEvent[] = []
      const log = await replayBefore(this.#source, record.damage, (event) =>
        events.push(eventOf(event)),
      )
      const before = events.length
      log.continueWith(record.lines)
      return { id: record.sha256, damage: record.damage, events: events.slice(before) }
    })
  }

  asOf(seq: number): Promise<Run | undefined> {
    return guarded(this.runId, 'replay', async () => {
      const log = new LogReplay(this.runId, { to: seq })
      await feed(log, this.#source)
      return log.lines === seq ? (log.run ?? undefined) : undefined
    })
  }

  readArtifact(name: string, sha256: string): Promise<Uint8Array> {
    return guarded(this.runId, 'read of an artifact', () =>
      readArtifact(this.#source, name, sha256),
    )
  }

  findDamaged(artifacts: ArtifactHashes, options?: { paranoid?: boolean }): Promise<string[]> {
    const { paranoid = false } = options ?? {}
    return guarded(this.runId, 'read of artifacts', () =>
      findDamaged(this.#source, artifacts, { paranoid }),
    )
  }

  holder(): Promise<Holder | undefined> {
    return guarded(this.runId, 'read', () => this.#source.holder())
  }

  cancelRequest(): Promise<CancelRequest | undefined> {
    return guarded(this.runId, 'read', () => this.#source.cancelRequest())
  }

  async *#read(to: number | undefined): AsyncGenerator<{ event: ChainedEvent; line: Buffer }> {
    let read: { event: ChainedEvent; line: Buffer }[] = []
    const log = new LogReplay(this.runId, {
      ...(to !== undefined && { to }),
      onEvent: (event, line) => read.push({ event, line }),
    })
    if (log.done) return
    for await (const chunk of this.#source.log()) {
      log.feed(chunk)
      yield* read
      read = []
      if (log.done) return
    }
  }
}
