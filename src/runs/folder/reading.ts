/** Reading the folder of a run: log, snapshot, what was recorded beside them, and artifacts. */
import { createHash } from 'node:crypto'
import { RunNotFound } from '../../core/errors.ts'
import type { RunEvent } from '../../core/run/events.ts'
import type { Run } from '../../core/run/run.ts'
import { ArtifactChanged, ArtifactMissing, RunLogDamaged } from '../errors.ts'
import { decodeFailure, type FailureRecord } from '../failure-record.ts'
import { guarded } from '../guarded.ts'
import { sha256Of } from '../hash.ts'
import type { CancelRequest, Damage, EventRange, Holder, Replayed, RunReader } from '../journal.ts'
import { LogReplay, type ReplayOptions } from '../log-replay.ts'
import { artifactPath } from '../names.ts'
import type { ChainedEvent } from '../schemas.ts'
import { decodeSnapshot, encodeSnapshot, type ReadSnapshot } from '../snapshot.ts'
import {
  ARTIFACTS,
  CANCEL,
  chunksOf,
  type Disk,
  HOLDER,
  isFolder,
  LOG,
  openToRead,
  readWhole,
  SNAPSHOT,
} from './disk.ts'

/** What the folder of a run holds; its log was read to the end. */
export interface Examined {
  readonly log: LogReplay
  readonly snapshot: ReadSnapshot | { readonly kind: 'missing' }
  /** Whether the snapshot is, byte for byte, what the log folds to. */
  isCurrent(): boolean
}

/** The folder of a run. */
export function folderOf({ root }: Disk, runId: string): string {
  return `${root}/${runId}`
}

/**
 * Reads and checks everything but the artifacts; throws `RunLogDamaged`. The snapshot is read
 * first: a writer at work can only have added to the log since then, so that a snapshot that knows
 * more than the log proves damage.
 */
export async function examine(
  disk: Disk,
  runId: string,
  onEvent?: ReplayOptions['onEvent'],
): Promise<Examined> {
  const bytes = await readWhole(disk, `${folderOf(disk, runId)}/${SNAPSHOT}`)
  const text = bytes && Buffer.from(bytes).toString()
  const snapshot = text === undefined ? MISSING : decodeSnapshot(runId, text)
  const known = snapshot.kind === 'valid' ? snapshot.snapshot : undefined
  const log = new LogReplay(runId, {
    ...(known && { known: { seq: known.last_seq, hash: known.last_event_hash } }),
    ...(onEvent && { onEvent }),
  })
  await replayInto(disk, runId, log)
  const damage = findContradiction(log, snapshot)
  if (damage !== undefined) throw new RunLogDamaged(runId, damage)
  const isCurrent = () => log.run !== null && text === encodeSnapshot(log.run, log.lastHash)
  return { log, snapshot, isCurrent }
}

const MISSING = { kind: 'missing' } as const

/** A snapshot is written after its events, so the log must have every event that it knows. */
function findContradiction(log: LogReplay, snapshot: Examined['snapshot']): Damage | undefined {
  if (log.lines === 0) {
    const why = 'the log is missing, though the run has a snapshot'
    return snapshot.kind === 'missing' ? undefined : { line: 0, offset: 0, why }
  }
  if (snapshot.kind !== 'valid') return undefined
  const { last_seq } = snapshot.snapshot
  if (last_seq <= log.lines) return undefined
  const why = `the log ends here, though the snapshot knows event ${last_seq}`
  return { line: log.lines + 1, offset: log.wholeBytes, why }
}

/** Reads the log of a run; nothing where there is no such file. */
export async function replayInto(disk: Disk, runId: string, log: LogReplay): Promise<void> {
  const handle = await openToRead(disk, `${folderOf(disk, runId)}/${LOG}`)
  if (handle === undefined) return
  try {
    for await (const chunk of chunksOf(handle)) {
      log.feed(chunk)
      if (log.done) break
    }
  } finally {
    await handle.close()
  }
}

/** The SHA-256 of the log as it is, damaged or not; of nothing where it is missing. */
export async function hashOfLog(disk: Disk, runId: string): Promise<string> {
  const hash = createHash('sha256')
  const handle = await openToRead(disk, `${folderOf(disk, runId)}/${LOG}`)
  if (handle !== undefined) {
    try {
      for await (const chunk of chunksOf(handle)) hash.update(chunk)
    } finally {
      await handle.close()
    }
  }
  return hash.digest('hex')
}

export const FAILED_FILE = /^events\.failed-([1-9]\d{0,5})\.ndjson$/

/** What was recorded of the damage that the log has now; nothing where nothing was. */
export async function findFailure(disk: Disk, runId: string): Promise<FailureRecord | undefined> {
  const folder = folderOf(disk, runId)
  const names = (await disk.files.list(folder)).filter((name) => FAILED_FILE.test(name))
  if (names.length === 0) return undefined
  const sha256 = await hashOfLog(disk, runId)
  for (const name of names) {
    const bytes = await readWhole(disk, `${folder}/${name}`)
    const record = bytes && decodeFailure(Buffer.from(bytes).toString())
    if (record?.sha256 === sha256) return record
  }
  return undefined
}

/** The run up to its damage, and then as it failed. */
export async function replayFailed(
  disk: Disk,
  runId: string,
  { damage, lines }: FailureRecord,
): Promise<Replayed> {
  const log = await replayBefore(disk, runId, damage)
  log.continueWith(lines)
  return { run: log.run as Run, lastHash: log.lastHash, tornBytes: 0, damage }
}

/** The log up to the line before a damage. */
export async function replayBefore(disk: Disk, runId: string, damage: Damage): Promise<LogReplay> {
  const log = new LogReplay(runId, { to: Math.max(0, damage.line - 1) })
  if (!log.done) await replayInto(disk, runId, log)
  return log
}

/** The content of an artifact, which must have its hash. */
export async function readArtifact(
  disk: Disk,
  runId: string,
  name: string,
  sha256: string,
): Promise<Uint8Array> {
  const path = artifactPath(name, sha256)
  const folder = folderOf(disk, runId)
  const there = await isFolder(disk, `${folder}/${ARTIFACTS}`)
  const content = there ? await readWhole(disk, `${folder}/${path}`) : undefined
  if (content === undefined) throw new ArtifactMissing(runId, name, sha256)
  const found = sha256Of(content)
  if (found !== sha256) throw new ArtifactChanged(runId, name, sha256, found)
  return content
}

/** A small file of JSON that only informs: nothing where it cannot be read. */
async function readNote<T>(disk: Disk, runId: string, name: string): Promise<T | undefined> {
  const bytes = await readWhole(disk, `${folderOf(disk, runId)}/${name}`)
  try {
    return bytes && (JSON.parse(Buffer.from(bytes).toString()) as T)
  } catch {
    return undefined
  }
}

/** Who holds the run, or held it last and died. */
export function readHolder(disk: Disk, runId: string): Promise<Holder | undefined> {
  return readNote(disk, runId, HOLDER)
}

/** The wish that the run be cancelled. */
export function readCancel(disk: Disk, runId: string): Promise<CancelRequest | undefined> {
  return readNote(disk, runId, CANCEL)
}

/** A run in a folder, for those who only read it. */
export class FolderReader implements RunReader {
  readonly runId: string
  readonly #disk: Disk

  constructor(disk: Disk, runId: string) {
    this.#disk = disk
    this.runId = runId
  }

  replay(): Promise<Replayed> {
    return guarded(this.runId, 'replay', async () => {
      try {
        const { log } = await examine(this.#disk, this.runId)
        if (log.run === null) throw new RunNotFound()
        return { run: log.run, lastHash: log.lastHash, tornBytes: log.torn.length }
      } catch (error) {
        if (!(error instanceof RunLogDamaged)) throw error
        const record = await findFailure(this.#disk, this.runId)
        if (record === undefined) throw error
        return replayFailed(this.#disk, this.runId, record)
      }
    })
  }

  async *lines(): AsyncGenerator<string> {
    for await (const { line } of this.#read(undefined)) yield line.toString()
  }

  async *events({ from = 1, to }: EventRange = {}): AsyncGenerator<RunEvent> {
    for await (const { event } of this.#read(to)) {
      // The hash of the line before belongs to the log, not to what happened.
      const { prev: _prev, ...own } = event
      if (event.seq >= from) yield own
    }
  }

  async asOf(seq: number): Promise<Run | undefined> {
    return guarded(this.runId, 'replay', async () => {
      const log = new LogReplay(this.runId, { to: seq })
      if (!log.done) await replayInto(this.#disk, this.runId, log)
      return log.lines === seq ? (log.run ?? undefined) : undefined
    })
  }

  readArtifact(name: string, sha256: string): Promise<Uint8Array> {
    return guarded(this.runId, 'read of an artifact', () =>
      readArtifact(this.#disk, this.runId, name, sha256),
    )
  }

  holder(): Promise<Holder | undefined> {
    return guarded(this.runId, 'read', () => readHolder(this.#disk, this.runId))
  }

  cancelRequest(): Promise<CancelRequest | undefined> {
    return guarded(this.runId, 'read', () => readCancel(this.#disk, this.runId))
  }

  async *#read(to: number | undefined): AsyncGenerator<{ event: ChainedEvent; line: Buffer }> {
    let read: { event: ChainedEvent; line: Buffer }[] = []
    const log = new LogReplay(this.runId, {
      ...(to !== undefined && { to }),
      onEvent: (event, line) => read.push({ event, line }),
    })
    if (log.done) return
    const path = `${folderOf(this.#disk, this.runId)}/${LOG}`
    const handle = await guarded(this.runId, 'read', () => openToRead(this.#disk, path))
    if (handle === undefined) return
    try {
      for await (const chunk of chunksOf(handle)) {
        log.feed(chunk)
        yield* read
        read = []
        if (log.done) return
      }
    } finally {
      await handle.close()
    }
  }
}
