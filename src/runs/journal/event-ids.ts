/**
 * The ids of the events of one log, to find one that is there twice. Ids are UUIDs of version 7 and
 * mostly rise, because they begin with the time at which they were made. Those that rise are kept
 * in 16 bytes each, in order, and are found by halving; the few that do not are kept as texts.
 */

const ID_BYTES = 16
const FIRST_IDS = 64

/** Remembers ids; lower-case UUIDs only, which the schema of events sees to. */
export class EventIds {
  #rising = Buffer.alloc(FIRST_IDS * ID_BYTES)
  #count = 0
  #last = ''
  readonly #others = new Set<string>()

  /** Adds an id; false if it was added before. */
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
