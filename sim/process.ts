/**
 * One simulated process: a real engine and a real store with a connection of its own, which lives
 * by the queue of events and can be made to fail. A crash takes away everything in memory: its
 * timers never fire again, no answer reaches it, its transaction is rolled back and its connection
 * closed. A pause keeps it from noticing anything for a while.
 *
 * Crashes at named places are thrown: what the code does while that unwinds is undone, because
 * every further place throws as well, and because nothing is committed in between.
 */
import type { Lifecycle } from 'pawl'
import {
  type Environment,
  openSqliteStore,
  type Store,
  StoreBusy,
  StoreUnavailable,
} from 'pawl/sqlite'
import type { HostTime, IdSource, Random, Timer } from 'pawl/testing'
import { SeededRandom } from 'pawl/testing'
import { FaultyDriver } from './database.ts'
import type { FaultKind, Faults } from './faults.ts'
import type { Reply } from './history.ts'
import type { Scheduler } from './scheduler.ts'

/** Unwinds what a dead process was doing. */
export class Crashed extends Error {}

/** What a process is made of, and the functions that it reports to. */
export interface ProcessParts {
  readonly name: string
  readonly scheduler: Scheduler
  readonly faults: Faults
  readonly random: Random
  readonly ids: IdSource
  readonly location: string
  readonly leaseMs: number
  /** By how much its wall clock is wrong, besides that of the machine. */
  readonly skewMs: number
  /** By how much the wall clock of the machine is wrong now. */
  readonly machineMs: () => number
  /** Called with each answer of the store that reached the process, before it continues. */
  readonly onAnswer: (reply: Reply) => void
  /** Whether calls about schedules may fail as well. */
  readonly hasFaultySchedules?: true
  /** Called when others may find something to do. */
  readonly onWrite: (writer: SimProcess) => void
  readonly log: (line: string) => void
}

/** How long a hint takes to reach another process; what is written meanwhile is part of it. */
const HINT_MS = 20

/** The verbs after which another process may find something to do. */
const WAKING = new Set([
  ...['enqueue', 'settle', 'applyCommand', 'cancel', 'recover', 'promote', 'commit'],
  ...['settleEffects', 'retryEffects', 'resumeQueue'],
])

/** The clocks of the machine as a process sees them: only its wall clock can be wrong. */
export function hostOf(now: () => number, wrongBy: () => number): HostTime {
  const boot = 'sim'
  return { boot, wall: () => now() + wrongBy(), elapsed: now, suspended: () => null }
}

/** A process that can crash, pause and have a wrong clock. */
export class SimProcess {
  readonly name: string
  readonly environment: Environment
  readonly #random: Random
  readonly #parts: ProcessParts
  readonly #driver: FaultyDriver
  readonly #listeners = new Set<() => void>()
  readonly #flightsMax: number
  #isHintDue = false
  #isAlive = true
  #pausedUntil = 0
  #deafUntil = 0
  #leapMs = 0
  #storeNow = () => 0

  constructor(parts: ProcessParts) {
    const { name, scheduler, skewMs, ids, random } = parts
    this.#parts = parts
    this.name = name
    this.#random = new SeededRandom(Math.floor(random.next() * 2 ** 32))
    this.#flightsMax = 1 + (ids.next().charCodeAt(35) % 2)
    this.#driver = new FaultyDriver(parts.faults, () => this.#isAlive)
    this.environment = {
      clock: {
        now: () => scheduler.clock.now() + skewMs + this.#leapMs,
        host: hostOf(
          () => scheduler.clock.now(),
          () => parts.machineMs() + skewMs + this.#leapMs,
        ),
      },
      timers: {
        after: (delayMs, callback) => this.#after(delayMs, callback),
        defer: (callback) => scheduler.defer(() => this.#happen(callback)),
      },
      random: this.#random,
      ids,
      crashPoint: (place) => this.#passCrashPoint(place),
    }
  }

  get isAlive(): boolean {
    return this.#isAlive
  }

  /** Whether it notices nothing at present. */
  get isPaused(): boolean {
    return this.#pausedUntil > this.#parts.scheduler.clock.now()
  }

  /** Whether its clock is right and it notices what happens. */
  get isWell(): boolean {
    return !this.isPaused && this.#parts.skewMs + this.#leapMs === 0
  }

  /** Opens its store; may fail. */
  async open(lifecycles: readonly Lifecycle[]): Promise<Store> {
    const { location } = this.#parts
    const { environment } = this
    const driver = this.#driver
    const store = await openSqliteStore({ path: location, environment, driver, lifecycles })
    this.#storeNow = () => store.now()
    return this.#faulty(store)
  }

  /** Ends the process without warning. */
  crash(how: string): void {
    if (!this.#isAlive) return
    this.#parts.log(`${this.name} ${how}`)
    this.#isAlive = false
    // When everything that it was doing has unwound.
    this.#parts.scheduler.defer(() => this.abandon())
  }

  /** Closes what the operating system would close at its end. */
  abandon(): void {
    this.#isAlive = false
    this.#driver.abandon()
  }

  /** The process notices nothing for a while. */
  pause(ms: number): void {
    this.#parts.log(`${this.name} pauses for ${ms}`)
    this.#pausedUntil = this.#parts.scheduler.clock.now() + ms
  }

  /** All its heartbeats fail for a while. */
  deafen(ms: number): void {
    this.#deafUntil = this.#parts.scheduler.clock.now() + ms
  }

  /** The time of the file, as this process sees it; 0 before it has opened the file. */
  get storeNow(): number {
    return this.#storeNow()
  }

  /** Its wall clock is set, ahead or back. */
  leap(ms: number): void {
    this.#parts.log(`${this.name} leaps by ${ms}`)
    this.#leapMs += ms
  }

  /** Another process has written something. */
  hint(): void {
    const { faults, scheduler } = this.#parts
    if (this.#isHintDue || this.#listeners.size === 0 || faults.strikes('hint-lost')) return
    this.#isHintDue = true
    const delayMs = faults.strikes('hint-late') ? faults.between(100, 5000) : HINT_MS
    const times = faults.strikes('hint-twice') ? 2 : 1
    scheduler.after(delayMs, () => {
      this.#isHintDue = false
      if (!this.#isAlive || this.isPaused) return
      for (let i = 0; i < times; i++) for (const listener of this.#listeners) listener()
    })
  }

  #passCrashPoint(place: string): void {
    if (!this.#isAlive) throw new Crashed()
    const kind = crashKindOf(place)
    if (!this.#parts.faults.strikes(kind)) return
    this.crash(`crashes at ${place}`)
    throw new Crashed()
  }

  #after(delayMs: number, callback: () => void): Timer {
    const { scheduler } = this.#parts
    let isCancelled = false
    const fire = () => {
      if (!isCancelled) this.#happen(callback)
    }
    const timer = scheduler.after(delayMs, fire)
    return {
      cancel: () => {
        isCancelled = true
        timer.cancel()
      },
    }
  }

  /** Does what is due, as soon as the process notices. */
  #happen(callback: () => void): void {
    if (!this.#isAlive) return
    const { scheduler } = this.#parts
    const left = this.#pausedUntil - scheduler.clock.now()
    if (left > 0) scheduler.after(left, () => this.#happen(callback))
    else callback()
  }

  /** The store as this process reaches it. */
  #faulty(store: Store): Store {
    return new Proxy(store, {
      get: (target, name) => {
        const value = target[name as keyof Store] as unknown
        if (name === 'schedules' && this.#parts.hasFaultySchedules) {
          return this.#faultyPart(name, target.schedules, ['run'])
        }
        if (name === 'limits' || name === 'admissions' || name === 'waits') {
          return this.#faultyPart<object>(name, target[name])
        }
        // SQLite has one call at a time; PostgreSQL has two, which half of the processes play.
        if (name === 'flights') return { max: this.#flightsMax, reportsMin: 1 }
        if (typeof value !== 'function') return value
        const verb = (value as (...values: unknown[]) => unknown).bind(target)
        if (name === 'now') return verb
        if (name === 'onWake') return (listener: () => void) => this.#subscribe(verb, listener)
        if (name === 'close' || typeof name !== 'string') return async () => {}
        return (...values: unknown[]) => this.#call(name, values, verb)
      },
    })
  }

  /** A group of verbs as this process reaches it. What is asked twice `once` is done twice. */
  #faultyPart<P extends object>(part: string, verbs: P, once: readonly string[] = []): P {
    return new Proxy(verbs, {
      get: (target, name) => {
        const verb = Reflect.get(target, name, target) as (...values: unknown[]) => unknown
        const bound = verb.bind(target)
        if (once.includes(String(name))) return bound
        return (...values: unknown[]) => this.#call(`${part}.${String(name)}`, values, bound)
      },
    })
  }

  /** Hints of one's own writes are sure; those of others' are not. */
  #subscribe(verb: (...values: unknown[]) => unknown, listener: () => void): () => void {
    const unsubscribe = verb(listener) as () => void
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
      unsubscribe()
    }
  }

  async #call(
    name: string,
    values: readonly unknown[],
    verb: (...values: unknown[]) => unknown,
  ): Promise<unknown> {
    const { faults, scheduler, leaseMs, log } = this.#parts
    await this.#gate()
    if (faults.strikes('late-request')) await scheduler.sleep(faults.between(leaseMs, leaseMs * 3))
    else if (this.#random.next() < 0.2) await scheduler.sleep(faults.between(1, 50))
    await this.#gate()
    if (faults.strikes('unavailable')) throw new StoreUnavailable(0, 'simulated')
    if (faults.strikes('busy-for-long')) throw new StoreBusy(10_000)
    if (name === 'heartbeat' && this.#deafUntil > scheduler.clock.now()) {
      throw new StoreUnavailable(0, 'simulated')
    }
    // A claim that is made twice would only be one that is lost.
    if (!name.startsWith('claim') && faults.strikes('duplicate')) await verb(...values)
    const askedAt = scheduler.clock.now()
    const result = await verb(...values)
    log(`${this.name} ${name}`)
    if (WAKING.has(name)) this.#parts.onWrite(this)
    if (!this.#isAlive) return this.#gate()
    if (faults.strikes('lost-reply')) {
      log(`${this.name} ${name} loses its reply`)
      throw new StoreUnavailable(0, 'simulated')
    }
    const [storeNow, at] = [this.#storeNow(), scheduler.clock.now()]
    this.#parts.onAnswer({ verb: name, values, result, storeNow, askedAt, at })
    if (faults.strikes('late-reply')) await scheduler.sleep(faults.between(leaseMs, leaseMs * 3))
    await this.#gate()
    return result
  }

  /** A dead process gets no answer, ever; a paused one later. */
  async #gate(): Promise<void> {
    for (;;) {
      if (!this.#isAlive) await new Promise<never>(() => {})
      const left = this.#pausedUntil - this.#parts.scheduler.clock.now()
      if (left <= 0) return
      await this.#parts.scheduler.sleep(left)
    }
  }
}

function crashKindOf(place: string): FaultKind {
  if (place === 'worker.claimed') return 'crash-after-claim'
  if (place === 'worker.reported') return 'crash-after-report'
  return place.endsWith('.committed') ? 'crash-after-commit' : 'crash-before-commit'
}
