/**
 * The leases of a worker in memory that it shares with the thread that renews them. The worker
 * writes a lease before its handler starts, and clears it after its report is recorded. Neither
 * wakes the thread: it reads the board by a timer, and most jobs end before it would have to know
 * of them. A message for each claim costs both threads more than all the rest of a short job.
 *
 * Format, in the byte order of the machine: 64 bytes, of which the first 4 count the entries that
 * were ever used, then entries of 160 bytes:
 *
 *   0    int32     version: odd while the entry is being written, and never the same twice
 *   4    int32     bytes of the text; 0 if the entry is free
 *   8    int32     attempt
 *   16   float64   when the lease was last renewed: `elapsedMs` of a moment of the worker's thread
 *   24   float64   `suspendedMs` of that moment; NaN for null
 *   32   bytes     JSON of the job's handle and of the claim, in ASCII
 *
 * Only the worker's thread writes. A reader takes an entry only if its version is even, and the
 * same before and after. A renewal changes the moment alone, and not the version.
 */
import type { Moment } from '../../environment/moments.ts'
import type { Beat, Ref } from '../../stores/contract/store.ts'

const HEAD_BYTES = 64
const ENTRY_BYTES = 160
const TEXT_AT = 32
const TEXT_MAX = ENTRY_BYTES - TEXT_AT
const ENTRIES_MIN = 64
/** Everything else has bytes of its own in JSON. */
const ASCII = /^[\x20-\x7e]*$/

const [VERSION, LENGTH, ATTEMPT] = [0, 1, 2]
const [ELAPSED, SUSPENDED] = [2, 3]

/** Views of the shared memory. */
class Board {
  readonly buffer: SharedArrayBuffer
  readonly ints: Int32Array
  readonly floats: Float64Array
  readonly bytes: Buffer

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer
    this.ints = new Int32Array(buffer)
    this.floats = new Float64Array(buffer)
    this.bytes = Buffer.from(buffer)
  }

  get capacity(): number {
    return Math.floor((this.buffer.byteLength - HEAD_BYTES) / ENTRY_BYTES)
  }
}

/** Where an entry begins, in bytes. */
function startOf(entry: number): number {
  return HEAD_BYTES + entry * ENTRY_BYTES
}

function boardFor(entries: number): Board {
  return new Board(new SharedArrayBuffer(startOf(entries)))
}

/** The board as the worker's thread writes it. */
export class LeaseBoard {
  #board = boardFor(ENTRIES_MIN)
  readonly #free: number[] = []
  #used = 0
  readonly #onGrown: (buffer: SharedArrayBuffer) => void

  /** `onGrown` receives the memory that replaces the one before. */
  constructor(onGrown: (buffer: SharedArrayBuffer) => void) {
    this.#onGrown = onGrown
  }

  get buffer(): SharedArrayBuffer {
    return this.#board.buffer
  }

  /** Writes a lease. Returns its entry, or undefined if the lease does not fit into one. */
  put({ ref, fence }: Beat, renewed: Moment): number | undefined {
    const text = JSON.stringify([ref, fence.claim])
    if (text.length > TEXT_MAX || !ASCII.test(text)) return undefined
    const entry = this.#free.pop() ?? this.#add()
    const { ints, bytes } = this.#board
    const start = startOf(entry)
    const at = start / 4
    Atomics.add(ints, at + VERSION, 1)
    ints[at + LENGTH] = text.length
    ints[at + ATTEMPT] = fence.attempt
    this.renew(entry, renewed)
    bytes.write(text, start + TEXT_AT, 'latin1')
    Atomics.add(ints, at + VERSION, 1)
    return entry
  }

  /** Notes when a lease was last renewed. */
  renew(entry: number, { elapsedMs, suspendedMs }: Moment): void {
    const at = startOf(entry) / 8
    this.#board.floats[at + ELAPSED] = elapsedMs
    this.#board.floats[at + SUSPENDED] = suspendedMs ?? Number.NaN
  }

  clear(entry: number): void {
    const { ints } = this.#board
    const at = startOf(entry) / 4
    Atomics.add(ints, at + VERSION, 1)
    ints[at + LENGTH] = 0
    Atomics.add(ints, at + VERSION, 1)
    this.#free.push(entry)
  }

  #add(): number {
    const entry = this.#used++
    if (entry >= this.#board.capacity) {
      const larger = boardFor(2 * entry)
      larger.ints.set(this.#board.ints)
      this.#board = larger
      this.#onGrown(larger.buffer)
    }
    Atomics.store(this.#board.ints, 0, this.#used)
    return entry
  }
}

/** What a reader has seen change. */
interface BoardChanges {
  /** Leases that have ended, or whose entry has another lease now. */
  readonly ended: readonly Ref[]
  readonly begun: readonly { readonly beat: Beat; readonly renewed: Moment }[]
}

interface Known {
  readonly version: number
  readonly ref: Ref
}

/** The board as the thread reads it. */
export class BoardReader {
  #board: Board
  /** The leases that were returned as begun, by their entries. */
  readonly #known = new Map<number, Known>()

  constructor(buffer: SharedArrayBuffer) {
    this.#board = new Board(buffer)
  }

  /** Goes on with a larger board, on which all leases have the same entries. */
  replace(buffer: SharedArrayBuffer): void {
    this.#board = new Board(buffer)
  }

  /** Returns what has changed since the last call; of new leases only those that `isWanted`. */
  read(isWanted: (renewed: Moment) => boolean): BoardChanges {
    const { ints } = this.#board
    const used = Math.min(Atomics.load(ints, 0), this.#board.capacity)
    const ended: Ref[] = []
    const begun: BoardChanges['begun'][number][] = []
    for (let entry = 0; entry < used; entry++) {
      const version = Atomics.load(ints, startOf(entry) / 4 + VERSION)
      const known = this.#known.get(entry)
      if (version === known?.version) continue
      if (known !== undefined) {
        ended.push(known.ref)
        this.#known.delete(entry)
      }
      const lease = version % 2 === 0 ? this.#lease(entry, version, isWanted) : undefined
      if (lease === undefined) continue
      this.#known.set(entry, { version, ref: lease.beat.ref })
      begun.push(lease)
    }
    return { ended, begun }
  }

  #lease(entry: number, version: number, isWanted: (renewed: Moment) => boolean) {
    const { ints, floats, bytes } = this.#board
    const start = startOf(entry)
    const length = ints[start / 4 + LENGTH] as number
    const attempt = ints[start / 4 + ATTEMPT] as number
    const elapsedMs = floats[start / 8 + ELAPSED] as number
    const suspendedMs = floats[start / 8 + SUSPENDED] as number
    const renewed: Moment = {
      elapsedMs,
      suspendedMs: Number.isNaN(suspendedMs) ? null : suspendedMs,
    }
    if (length === 0 || !isWanted(renewed)) return undefined
    const text = bytes.toString('latin1', start + TEXT_AT, start + TEXT_AT + length)
    // Adds nothing: unlike a load, it cannot be overtaken by the reads before it.
    if (Atomics.add(ints, start / 4 + VERSION, 0) !== version) return undefined
    const [ref, claim] = JSON.parse(text) as [Ref, string]
    return { beat: { ref, fence: { attempt, claim } }, renewed }
  }
}
