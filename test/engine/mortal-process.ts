/**
 * One simulated process: a real engine with a clock, timers and a store of its own that can be made
 * to fail. What a crash takes away is everything in memory: its timers never fire again, and no
 * answer ever reaches it. A pause keeps it from noticing anything for a while.
 */
import type { Environment, Store } from 'pawl/sqlite'
import { StoreUnavailable } from 'pawl/sqlite'

/** What can go wrong with one call of the store. */
export type CallFault = 'refused' | 'lost-reply' | 'duplicate'

/** Decides what goes wrong, if anything. */
export type Fate = (verb: string) => CallFault | undefined

/** A process that can crash, pause and have a wrong clock. */
export class SimProcess {
  readonly environment: Environment
  readonly store: Store
  /** By how much its clock is wrong. */
  clockOffset = 0
  #isAlive = true
  #pausedUntil = 0
  readonly #world: Environment

  constructor(world: Environment, store: Store, fate: Fate) {
    this.#world = world
    this.environment = {
      ...world,
      clock: { now: () => world.clock.now() + this.clockOffset },
      timers: {
        after: (delayMs, callback) => this.#after(delayMs, callback),
        defer: (callback) => world.timers.defer(() => this.#isAlive && callback()),
      },
    }
    this.store = this.#faulty(store, fate)
  }

  get isAlive(): boolean {
    return this.#isAlive
  }

  /** Ends the process without warning. */
  crash(): void {
    this.#isAlive = false
  }

  /** Lets it notice nothing for a while. */
  pause(ms: number): void {
    this.#pausedUntil = this.#world.clock.now() + ms
  }

  #after(delayMs: number, callback: () => void) {
    const fire = () => {
      if (!this.#isAlive) return
      const left = this.#pausedUntil - this.#world.clock.now()
      if (left > 0) timer = this.#world.timers.after(left, fire)
      else callback()
    }
    let timer = this.#world.timers.after(delayMs, fire)
    return { cancel: () => timer.cancel() }
  }

  /** The store as this process reaches it. */
  #faulty(store: Store, fate: Fate): Store {
    return new Proxy(store, {
      get: (target, name) => {
        const value = target[name as keyof Store] as unknown
        if (typeof value !== 'function') return value
        const verb = (value as (...values: unknown[]) => unknown).bind(target)
        if (name === 'now') return verb
        if (name === 'onWake') return (listener: () => void) => verb(() => this.#hint(listener))
        if (name === 'close' || typeof name !== 'string') return async () => {}
        return (...values: unknown[]) => this.#call(name, () => verb(...values), fate)
      },
    })
  }

  #hint(listener: () => void): void {
    if (this.#isAlive && this.#pausedUntil <= this.#world.clock.now()) listener()
  }

  async #call(name: string, verb: () => unknown, fate: Fate): Promise<unknown> {
    await this.#whilePaused()
    const fault = this.#isAlive ? fate(name) : undefined
    if (fault === 'refused') throw new StoreUnavailable(0, 'simulated')
    try {
      if (fault === 'duplicate') await verb()
      const result = await verb()
      if (fault === 'lost-reply') throw new StoreUnavailable(0, 'simulated')
      return result
    } finally {
      await this.#whilePaused()
    }
  }

  /** A dead process gets no answer, ever. */
  async #whilePaused(): Promise<void> {
    for (;;) {
      if (!this.#isAlive) await new Promise<never>(() => {})
      const left = this.#pausedUntil - this.#world.clock.now()
      if (left <= 0) return
      await new Promise<void>((resume) => this.#world.timers.after(left, resume))
    }
  }
}
