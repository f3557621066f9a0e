/** Reads a run: log, snapshot, record of failure, and artifacts. */
import { createHash } from 'node:crypto'
import { RunNotFound } from '../../core/errors.ts'
import type { RunEvent } from '../../core/run/events.ts'
import type { Run } from '../../core/run/run.ts'
import type { Environment } from '../../environment/system.ts'
import { ArtifactChanged, ArtifactMissing, RunLogDamaged, RunNotDamaged } from './errors.ts'
import { extend } from './event-line.ts'
import type { FailureRecord } from './failure-record.ts'
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
import { guarded } from './open-journal.ts'
import type { ChainedEvent } from './schemas.ts'
import { claimOf, decodeSnapshot, isSnapshotOf, type ReadSnapshot, runOf } from './snapshot.ts'
import type { KnownLine, RunSource } from './source.ts'

export interface Examined {
  readonly log: LogReplay
  /** Parses and checks the snapshot. */
  snapshot(): ReadSnapshot | { readonly kind: 'missing' }
  /** Returns true if the snapshot equals the fold of the log, byte for byte. */
  isCurrent(): boolean
}

/**
 * Reads and checks everything except the artifacts. Throws `RunLogDamaged`. The snapshot is read
 * before the log, because a writer may add to the log meanwhile: a snapshot that contains more
 * events than the log proves damage.
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

/** A snapshot that is not in canonical form must be parsed as a whole. */
function knownBy(runId: string, text: string): KnownLine | undefined {
  const claim = claimOf(runId, text)
  if (claim !== undefined) return claim
  const read = decodeSnapshot(runId, text)
  if (read.kind !== 'valid') return undefined
  return { seq: read.snapshot.last_seq, hash: read.snapshot.last_event_hash }
}

/** A snapshot is written after its events, so the log must have all of them. */
function findContradiction(
  log: LogReplay,
  hasSnapshot: boolean,
  known: KnownLine | undefined,
): Damage | undefined {
  if (log.lines === 0) {
    const why = 'the log is missing, although the run has a snapshot'
    return hasSnapshot ? { line: 0, offset: 0, why } : undefined
  }
  if (known === undefined || known.seq <= log.lines) return undefined
  const why = `the log ends here, although event ${known.seq} was written`
  return { line: log.lines + 1, offset: log.wholeBytes, why }
}

async function feed(log: LogReplay, source: RunSource): Promise<void> {
  if (log.done) return
  for await (const chunk of source.log()) {
    log.feed(chunk)
    if (log.done) return
  }
}

/** Returns the record of the current damage. Reads the log only if there are records. */
export async function findFailure(source: RunSource): Promise<FailureRecord | undefined> {
  const records = await source.failures()
  if (records.length === 0) return undefined
  const sha256 = await hashOfLog(source)
  return records.find((record) => record.sha256 === sha256)
}

/** Returns the run from its snapshot, or as it failed if its damage was recorded. */
export async function peekRun(source: RunSource): Promise<Run | undefined> {
  const record = await findFailure(source)
  if (record !== undefined) return (await replayFailed(source, record)).run
  const text = await source.snapshot()
  const read = text === undefined ? undefined : decodeSnapshot(source.runId, text)
  return read?.kind === 'valid' ? runOf(read.snapshot) : undefined
}

/** Returns the SHA-256 of the log, or of no bytes if it is missing. */
async function hashOfLog(source: RunSource): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of source.log()) hash.update(chunk)
  return hash.digest('hex')
}

/**
 * Makes the record of a run's damage. If the damage was recorded before, returns that record and
 * does not call `decide`. Throws `RunNotDamaged`.
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

/** Replays the log up to the damage, then the events of the record. */
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

export async function readArtifact(
  source: RunSource,
  name: string,
  sha256: string,
): Promise<Uint8Array> {
  const content = await source.artifact(artifactPath(name, sha256))
  assertContent(source.runId, name, sha256, content)
  return content
}

function assertContent(
  runId: string,
  name: string,
  sha256: string,
  content: Uint8Array | undefined,
): asserts content is Uint8Array {
  if (content === undefined) throw new ArtifactMissing(runId, name, sha256)
  const found = sha256Of(content)
  if (found !== sha256) throw new ArtifactChanged(runId, name, sha256, found)
}

/** How many contents are checked at the same time. */
const LOOKS_AT_ONCE = 16

/** See `RunReader.findDamaged`. */
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
            assertContent(source.runId, name, sha256, content),
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

interface ReadLine {
  readonly event: ChainedEvent
  readonly line: Buffer
}

/** Removes `prev`, which belongs to the log and not to the event. */
function eventOf({ prev: _prev, ...event }: ChainedEvent): RunEvent {
  return event
}

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
      const { damage, lines } = await this.#damageUpTo(seq)
      const log = damage
        ? await replayBefore(this.#source, damage)
        : new LogReplay(this.runId, { to: seq })
      await feed(log, this.#source)
      log.continueWith(lines.slice(0, Math.max(0, seq - log.lines)))
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

  /**
   * Returns the record of damage in the first lines, if any. A line can be valid by itself and
   * still be changed: only the next line or the snapshot shows that, so the whole log is checked.
   * Throws `RunLogDamaged` if the damage was not recorded.
   */
  async #damageUpTo(seq: number): Promise<{ damage?: Damage; lines: readonly string[] }> {
    try {
      await examine(this.#source)
    } catch (error) {
      if (!(error instanceof RunLogDamaged)) throw error
      if (error.damage.line <= seq) {
        const record = await findFailure(this.#source)
        if (record === undefined) throw error
        return record
      }
    }
    return { lines: [] }
  }

  /**
   * Yields events up to `to`. A line can be valid by itself and still be changed, which only the
   * next line shows. So each event waits for the line after it, and the line after `to` is read.
   */
  async *#read(to = Number.POSITIVE_INFINITY): AsyncGenerator<ReadLine> {
    if (to < 1) return
    let read: ReadLine[] = []
    const log = new LogReplay(this.runId, {
      to: to + 1,
      onEvent: (event, line) => read.push({ event, line }),
    })
    try {
      for await (const chunk of this.#source.log()) {
        log.feed(chunk)
        const last = read.splice(-1)
        yield* read
        read = last
        if (log.done) return
      }
    } catch (error) {
      if (!(error instanceof RunLogDamaged)) throw error
      const { line } = error.damage
      yield* read.filter(({ event }) => event.seq < line && event.seq <= to)
      if (line <= to) throw error
      return
    }
    yield* read
  }
}
