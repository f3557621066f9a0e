/**
 * How verbs run.
 *
 * Group commit: calls of the same moment, or that come while a statement is on its way, are written
 * by one statement. No call resolves before it has returned. If it is refused, each caller's part
 * is done again alone, so that a bad item affects only itself.
 *
 * Inside the function of a commit no verb can run: it would need a second connection while the
 * first is held, and with as many commits as connections all would wait without end.
 */
import type { Environment } from '../../environment/system.ts'
import { isOutage, StoreClosed, StoreUnavailable } from '../errors.ts'
import { assertOutside, runInside } from '../inside-commit.ts'

/** How many items share a statement, unless one caller has more. */
const GROUP_MAX = 1000
/** So many items get a statement of their own beside those on their way. */
const LARGE_MIN = 50
const FLIGHTS_MAX = 4
/** How many callers may wait before further ones are made to wait outside. */
const QUEUE_MAX = 10_000

/** Keeps the verbs of one store apart from its commits, and knows when all have ended. */
export class Writer {
  readonly #running = new Set<Promise<unknown>>()
  #closed = false

  /** Runs a verb. */
  async run<T>(verb: () => Promise<T>): Promise<T> {
    assertOutside(this)
    if (this.#closed) throw new StoreClosed()
    const running = verb()
    this.#running.add(running)
    try {
      return await running
    } finally {
      this.#running.delete(running)
    }
  }

  /** Runs the function of a commit, in which no other verb may be called. */
  runInside<T>(work: () => T | Promise<T>): Promise<T> {
    return runInside(this, work)
  }

  /** Refuses new verbs and waits for those that run. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.allSettled([...this.#running])
  }
}

/** How often callers are looked for whose time is up. */
const EXPIRE_EVERY_MS = 250

interface Part<I, R> {
  readonly items: readonly I[]
  readonly since: number
  readonly resolve: (results: R[]) => void
  readonly reject: (error: unknown) => void
}

/** Gathers what several callers bring, and does it together. */
export class Group<I, R> {
  readonly #environment: Environment
  readonly #flush: (items: readonly I[]) => Promise<readonly R[]>
  readonly #timeoutMs: number
  #queue: Part<I, R>[] = []
  /** Those whose statements are on their way. */
  readonly #flying = new Set<Part<I, R>>()
  #expiry: NodeJS.Timeout | undefined
  #waiting: (() => void)[] = []
  /** How many statements are on their way. */
  #flights = 0
  /** How many items wait. */
  #items = 0

  constructor(
    environment: Environment,
    timeoutMs: number,
    flush: (items: readonly I[]) => Promise<readonly R[]>,
  ) {
    this.#environment = environment
    this.#timeoutMs = timeoutMs
    this.#flush = flush
  }

  /** Does these items, perhaps together with others'; a result for each, in order. */
  async add(items: readonly I[]): Promise<R[]> {
    while (this.#queue.length >= QUEUE_MAX) {
      await new Promise<void>((resume) => this.#waiting.push(resume))
    }
    return new Promise<R[]>((resolve, reject) => {
      this.#queue.push({ items, resolve, reject, since: performance.now() })
      this.#items += items.length
      if (this.#mayFly()) void this.#run()
    })
  }

  /** Statements go beside others only with enough to be worth a connection. */
  #mayFly(): boolean {
    return this.#flights === 0 || (this.#flights < FLIGHTS_MAX && this.#items >= LARGE_MIN)
  }

  async #run(): Promise<void> {
    this.#flights++
    this.#armExpiry()
    // One turn of the event loop, so that callers of the same moment share a statement.
    await new Promise<void>((turn) => this.#environment.timers.defer(turn))
    while (this.#queue.length > 0) {
      const parts = this.#takeParts()
      for (const resume of this.#waiting.splice(0)) resume()
      await this.#do(parts)
    }
    this.#flights--
    if (this.#flights > 0) return
    clearTimeout(this.#expiry)
    this.#expiry = undefined
  }

  /** While statements are on their way, looks now and then for callers whose time is up. */
  #armExpiry(): void {
    this.#expiry ??= setTimeout(() => {
      this.#expiry = undefined
      this.#expire()
      if (this.#flights > 0) this.#armExpiry()
    }, EXPIRE_EVERY_MS)
  }

  /**
   * A caller that came while a statement got no answer must not wait twice. Queued calls are
   * rejected; those on their way may still be done.
   */
  #expire(): void {
    const now = performance.now()
    const isLate = ({ since }: Part<I, R>) => now - since > this.#timeoutMs
    const late = this.#queue.filter(isLate)
    if (late.length > 0) {
      this.#queue = this.#queue.filter((part) => !isLate(part))
      for (const { items, since, reject } of late) {
        this.#items -= items.length
        reject(
          new StoreUnavailable(
            Math.round(now - since),
            'an earlier write has no answer yet',
            'none',
          ),
        )
      }
    }
    for (const part of this.#flying) {
      if (!isLate(part)) continue
      part.reject(new StoreUnavailable(Math.round(now - part.since), 'no answer yet'))
    }
  }

  #takeParts(): Part<I, R>[] {
    let count = 0
    let end = 0
    for (const { items } of this.#queue) {
      const isLarge = items.length >= LARGE_MIN
      if (end > 0 && (isLarge || count + items.length > GROUP_MAX)) break
      count += items.length
      end++
      if (isLarge) break
    }
    const parts = this.#queue.slice(0, end)
    this.#queue = this.#queue.slice(end)
    this.#items -= count
    return parts
  }

  async #do(parts: readonly Part<I, R>[]): Promise<void> {
    for (const part of parts) this.#flying.add(part)
    try {
      const results = await this.#flush(parts.flatMap(({ items }) => items))
      let start = 0
      for (const { items, resolve } of parts) {
        resolve(results.slice(start, start + items.length))
        start += items.length
      }
    } catch (error) {
      const alone = parts.length === 1
      if (alone || isOutage(error)) {
        for (const { reject } of parts) reject(error)
        return
      }
      // Doing each alone shows which part fails.
      for (const part of parts) await this.#do([part])
    } finally {
      for (const part of parts) this.#flying.delete(part)
    }
  }
}

/** Runs so many at once; the others wait for their turn. */
export class Slots {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  async use<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resume) => this.#waiting.push(resume))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free++
      else next()
    }
  }
}
