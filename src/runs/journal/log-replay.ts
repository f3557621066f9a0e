/**
 * Reads a log from chunks of bytes. Checks each event against the schema, the hash of the line
 * before it, its number, the ids before it and the run so far. Throws at the first that fails, with
 * its line and offset.
 */
import { LedgerBroken } from '../../core/errors.ts'
import { RunFold } from '../../core/run/evolve.ts'
import type { Run } from '../../core/run/run.ts'
import { RunLogDamaged } from './errors.ts'
import { LINE_BYTES_MAX, NO_HASH, type OpenLog } from './event-line.ts'
import { sha256Of } from './hash.ts'
import { type ChainedEvent, findEventFault } from './schemas.ts'
import type { KnownLine } from './source.ts'

export interface ReplayOptions {
  /** The last event to read. Default: all. Bytes after it are not checked. */
  readonly to?: number
  readonly onEvent?: (event: ChainedEvent, line: Buffer) => void
  readonly known?: KnownLine
}

const LINE_FEED = 0x0a
const NOTHING = Buffer.alloc(0)

export class LogReplay {
  readonly #runId: string
  readonly #options: ReplayOptions
  readonly #to: number
  readonly #fold: RunFold
  readonly #ids = new EventIds()
  #rest: Buffer = NOTHING
  #lines = 0
  /** The offsets of the next line and of the line before it. */
  #offset = 0
  #previousOffset = 0
  #lastHash = NO_HASH

  constructor(runId: string, options: ReplayOptions = {}) {
    this.#runId = runId
    this.#options = options
    this.#to = options.to ?? Number.POSITIVE_INFINITY
    this.#fold = new RunFold()
  }

  /** Returns a log to which lines can be appended. */
  open(): OpenLog {
    return { runId: this.#runId, fold: this.#fold.toUndoable(), lastHash: this.#lastHash }
  }

  /** The run so far; null before the first event. */
  get run(): Run | null {
    return this.#fold.run
  }

  get lines(): number {
    return this.#lines
  }

  get lastHash(): string {
    return this.#lastHash
  }

  /** The length of the whole lines in bytes, with their line feeds. */
  get wholeBytes(): number {
    return this.#offset
  }

  /** The bytes after the last line feed. */
  get torn(): Buffer {
    return this.#rest
  }

  /** True if all wanted events were read. */
  get done(): boolean {
    return this.#lines >= this.#to
  }

  /** Reads the next bytes of the log. Throws `RunLogDamaged`. */
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

  /** Reads lines from another source as if they followed in the log. */
  continueWith(lines: readonly string[]): void {
    for (const line of lines) this.#take(Buffer.from(line), NOTHING, 0)
  }

  #take(line: Buffer, chunk: Buffer, next: number): void {
    this.#assertShort(line)
    const event = this.#parse(line)
    const number = this.#lines + 1
    if (event.seq !== number) throw this.#damaged(`it contains event ${event.seq}`)
    if (event.prev !== this.#lastHash) throw this.#brokenChain(line, chunk.subarray(next))
    if (event.run_id !== this.#runId) throw this.#damaged(`it belongs to run ${event.run_id}`)
    if (!this.#ids.add(event.event_id))
      throw this.#damaged(`its id ${event.event_id} is not unique`)
    const hash = sha256Of(line)
    const { known, onEvent } = this.#options
    if (known?.seq === number && known.hash !== hash) {
      throw this.#damaged('its hash differs from the one in the snapshot')
    }
    this.#foldIn(event)
    this.#lines = number
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
   * The hash of a line differs from the `prev` of the next line. If the third line or the snapshot
   * confirms the second line, the first was changed. If neither can tell, the first line is
   * assumed to be changed, because its own checks cover fewer of its bytes.
   */
  #brokenChain(line: Buffer, following: Buffer): RunLogDamaged {
    const hash = sha256Of(line)
    const end = following.indexOf(LINE_FEED)
    const third = end < 0 ? undefined : following.subarray(0, end).toString()
    const { known } = this.#options
    const isConfirmed =
      third?.includes(`"prev":"${hash}"`) ?? (known?.seq !== this.#lines + 1 || known.hash === hash)
    if (this.#lines === 0 || !isConfirmed) {
      return this.#damaged('it does not contain the hash of the line before it')
    }
    const why = 'its hash differs from the one in the next line'
    const position = { line: this.#lines, offset: this.#previousOffset }
    return new RunLogDamaged(this.#runId, { ...position, why })
  }

  #damaged(why: string): RunLogDamaged {
    const position = { line: this.#lines + 1, offset: this.#offset }
    return new RunLogDamaged(this.#runId, { ...position, why })
  }
}

const TOO_LONG = `it is longer than ${LINE_BYTES_MAX} bytes`

const ID_BYTES = 16
const FIRST_IDS = 64

/**
 * Finds an event id that occurs twice in a log. Ids are lower-case UUIDs of version 7 (the schema
 * checks that) and mostly rise, because they begin with a time. Rising ids are stored in order, 16
 * bytes each, and found by binary search. The few others are stored as texts in a set.
 */
export class EventIds {
  #rising = Buffer.alloc(FIRST_IDS * ID_BYTES)
  #count = 0
  #last = ''
  readonly #others = new Set<string>()

  /** Adds an id. Returns false if it was added before. */
  add(id: string): boolean {
    if (id > this.#last) {
      this.#append(id)
      return true
    }
    if (this.#others.has(id) || this.#isRising(id)) return false
    this.#others.add(id)
    return true
  }

  #append(id: string): void {
    const end = this.#count * ID_BYTES
    if (end === this.#rising.length) {
      const larger = Buffer.alloc(this.#rising.length * 2)
      this.#rising.copy(larger)
      this.#rising = larger
    }
    this.#rising.write(id.replaceAll('-', ''), end, 'hex')
    this.#count++
    this.#last = id
  }

  #isRising(id: string): boolean {
    const wanted = Buffer.from(id.replaceAll('-', ''), 'hex')
    let [low, high] = [0, this.#count]
    while (low < high) {
      const middle = (low + high) >>> 1
      const at = middle * ID_BYTES
      const order = this.#rising.compare(wanted, 0, ID_BYTES, at, at + ID_BYTES)
      if (order === 0) return true
      if (order < 0) low = middle + 1
      else high = middle
    }
    return false
  }
}
