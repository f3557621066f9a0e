/**
 * Reading a log: bytes go in, as they come, and events come out, each checked against the schema,
 * the hash of the line before, its place, the ids before it and the run so far. The first that does
 * not pass ends it, with its place.
 */
import { LedgerBroken } from '../../core/errors.ts'
import { RunFold } from '../../core/run/evolve.ts'
import type { Run } from '../../core/run/run.ts'
import { RunLogDamaged } from './errors.ts'
import { EventIds } from './event-ids.ts'
import { LINE_BYTES_MAX, NO_HASH, type OpenLog } from './event-line.ts'
import { sha256Of } from './hash.ts'
import { type ChainedEvent, findEventFault } from './schemas.ts'
import type { KnownLine } from './source.ts'

/** What to do with what is read. */
export interface ReplayOptions {
  /** The last event that is wanted; all if absent. What follows is not looked at. */
  readonly to?: number
  readonly onEvent?: (event: ChainedEvent, line: Buffer) => void
  readonly known?: KnownLine
}

const LINE_FEED = 0x0a
const NOTHING = Buffer.alloc(0)

/** A log that is being read. */
export class LogReplay {
  readonly #runId: string
  readonly #options: ReplayOptions
  readonly #to: number
  readonly #fold: RunFold
  readonly #ids = new EventIds()
  #rest: Buffer = NOTHING
  #lines = 0
  /** Where the line begins that is read next, and where the one before it began. */
  #offset = 0
  #previousOffset = 0
  #lastHash = NO_HASH

  constructor(runId: string, options: ReplayOptions = {}) {
    this.#runId = runId
    this.#options = options
    this.#to = options.to ?? Number.POSITIVE_INFINITY
    this.#fold = new RunFold()
  }

  /** What was read, as a log to which lines can be added. */
  open(): OpenLog {
    return { runId: this.#runId, fold: this.#fold.toUndoable(), lastHash: this.#lastHash }
  }

  /** The run so far; nothing before the first event. */
  get run(): Run | null {
    return this.#fold.run
  }

  get lines(): number {
    return this.#lines
  }

  get lastHash(): string {
    return this.#lastHash
  }

  /** How many bytes the whole lines have, with their line feeds. */
  get wholeBytes(): number {
    return this.#offset
  }

  /** The bytes after the last line feed. */
  get torn(): Buffer {
    return this.#rest
  }

  /** Whether everything that was wanted was read. */
  get done(): boolean {
    return this.#lines >= this.#to
  }

  /** Takes the next bytes of the log; throws `RunLogDamaged`. */
  feed(bytes: Uint8Array): void {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    let start = 0
    if (this.#rest.length > 0) {
      const end = chunk.indexOf(LINE_FEED)
      const part = end < 0 ? chunk : chunk.subarray(0, end)
      this.#rest = Buffer.concat([this.#rest, part])
      this.#assertShort(this.#rest)
      if (end < 0 || this.done) return
      this.#take(this.#rest, chunk, end + 1)
      start = end + 1
    }
    for (let end = chunk.indexOf(LINE_FEED, start); end >= 0; ) {
      if (this.done) break
      this.#take(chunk.subarray(start, end), chunk, end + 1)
      start = end + 1
      end = chunk.indexOf(LINE_FEED, start)
    }
    this.#rest = chunk.subarray(start)
    this.#assertShort(this.#rest)
  }

  #assertShort(line: Buffer): void {
    if (line.length > LINE_BYTES_MAX) throw this.#damaged(TOO_LONG)
  }

  /** Takes lines from elsewhere as if they followed what was read, to the end. */
  continueWith(lines: readonly string[]): void {
    for (const line of lines) this.#take(Buffer.from(line), NOTHING, 0)
  }

  #take(line: Buffer, chunk: Buffer, next: number): void {
    this.#assertShort(line)
    const event = this.#parse(line)
    const place = this.#lines + 1
    if (event.seq !== place) throw this.#damaged(`it holds event ${event.seq}`)
    if (event.prev !== this.#lastHash) throw this.#brokenChain(line, chunk.subarray(next))
    if (event.run_id !== this.#runId) throw this.#damaged(`it belongs to run ${event.run_id}`)
    if (!this.#ids.add(event.event_id))
      throw this.#damaged(`its id ${event.event_id} is not unique`)
    const hash = sha256Of(line)
    const { known, onEvent } = this.#options
    if (known?.seq === place && known.hash !== hash) {
      throw this.#damaged('its hash is not the one that was noted for it')
    }
    this.#foldIn(event)
    this.#lines = place
    this.#previousOffset = this.#offset
    this.#offset += line.length + 1
    this.#lastHash = hash
    onEvent?.(event, line)
  }

  #foldIn(event: ChainedEvent): void {
    try {
      this.#fold.add(event)
    } catch (error) {
      throw error instanceof LedgerBroken ? this.#damaged(String(error.details.why)) : error
    }
  }

  #parse(line: Buffer): ChainedEvent {
    let value: unknown
    try {
      value = JSON.parse(line.toString())
    } catch {
      throw this.#damaged('it is not JSON')
    }
    const fault = findEventFault(value)
    if (fault !== undefined) throw this.#damaged(fault)
    return value as ChainedEvent
  }

  /**
   * Two lines do not fit together. If the third line or the snapshot vouches for the second one,
   * the first was changed. Where nobody can say, the first is more likely: it has more bytes that
   * its own checks cannot judge.
   */
  #brokenChain(line: Buffer, following: Buffer): RunLogDamaged {
    const hash = sha256Of(line)
    const end = following.indexOf(LINE_FEED)
    const third = end < 0 ? undefined : following.subarray(0, end).toString()
    const { known } = this.#options
    const vouched =
      third?.includes(`"prev":"${hash}"`) ?? (known?.seq !== this.#lines + 1 || known.hash === hash)
    if (this.#lines === 0 || !vouched) {
      return this.#damaged('it does not hold the hash of the line before it')
    }
    const why = 'its hash is not the one that the next line holds'
    const place = { line: this.#lines, offset: this.#previousOffset }
    return new RunLogDamaged(this.#runId, { ...place, why })
  }

  #damaged(why: string): RunLogDamaged {
    const place = { line: this.#lines + 1, offset: this.#offset }
    return new RunLogDamaged(this.#runId, { ...place, why })
  }
}

const TOO_LONG = `it is longer than ${LINE_BYTES_MAX} bytes`
