/**
 * A worker process of a test, played in the process of the test. What tells it apart is that it can
 * die: from then on its timers do not fire, no call of the store is answered, and a transaction
 * that it has open is rolled back. What it committed stays, and its leases run on, as they do when
 * a machine loses its power.
 *
 * It also sees what is under way, which is how the test knows when there is nothing left to do.
 */
import type { Timers } from '../core/ports.ts'
import type { Environment } from '../environment/system.ts'
import type { Store } from '../stores/store.ts'

/** One such process. */
export class TestProcess {
  readonly environment: Environment
  /** The store as this process reaches it. */
  readonly store: Store
  readonly #timers: Timers
  readonly #died: Promise<never>
  #die: (reason: Error) => void = () => {}
  #cause: string | undefined
  #calls = 0
  #underWay = 0
  #deliveries = 0

  constructor(world: Environment, store: Store) {
    this.#timers = world.timers
    this.environment = { ...world, timers: this.#mortalTimers() }
    this.#died = new Promise((_, reject) => {
      this.#die = reject
    })
    this.#died.catch(() => {})
    this.store = this.#mortalStore(store)
  }

  /** How it died; nothing while it lives. */
  get cause(): string | undefined {
    return this.#cause
  }

  /** Resolves when it has died, if it ever does. */
  async dies(): Promise<void> {
    await this.#died.catch(() => {})
  }

  /** How often it has called the store. */
  get calls(): number {
    return this.#calls
  }

  /** Whether it waits for the store, or for the delivery of an effect; the dead deliver nothing. */
  get isBusy(): boolean {
    return this.#underWay > 0 || (this.#deliveries > 0 && this.#cause === undefined)
  }

  /** Ends it; the error is what its open transaction sees. */
  die(cause: string, reason: Error): void {
    this.#cause ??= cause
    this.#die(reason)
  }

  #mortalTimers(): Timers {
    const alive = (callback: () => void) => () => {
      if (this.#cause === undefined) callback()
    }
    return {
      after: (delayMs, callback) => this.#timers.after(delayMs, alive(callback)),
      defer: (callback) => this.#timers.defer(alive(callback)),
    }
  }

  #mortalStore(store: Store): Store {
    return new Proxy(store, {
      get: (target, name) => {
        const value: unknown = target[name as keyof Store]
        if (typeof value !== 'function') return value
        const verb = value.bind(target) as (...given: unknown[]) => unknown
        if (name === 'now') return verb
        if (name === 'onWake') return (listener: () => void) => verb(this.#alive(listener))
        return (...given: unknown[]) => this.#call(String(name), verb, given)
      },
    })
  }

  #alive(listener: () => void): () => void {
    return () => {
      if (this.#cause === undefined) listener()
    }
  }

  async #call(
    name: string,
    verb: (...given: unknown[]) => unknown,
    given: readonly unknown[],
  ): Promise<unknown> {
    if (this.#cause !== undefined) return forever()
    this.#calls++
    this.#underWay++
    try {
      const answer = await verb(...this.#mortalFunctions(name, given))
      if (name === 'claimEffects') this.#deliveries += (answer as readonly unknown[]).length
      if (name === 'settleEffects') this.#deliveries -= (given[0] as readonly unknown[]).length
      if (this.#cause === undefined) return answer
    } catch (error) {
      if (this.#cause === undefined) throw error
    } finally {
      this.#underWay--
    }
    return forever()
  }

  /** A function in a transaction does not outlive the process: its transaction must not, either. */
  #mortalFunctions(name: string, given: readonly unknown[]): readonly unknown[] {
    const place = { commit: 1, transaction: 0 }[name]
    if (place === undefined) return given
    const work = given[place] as (tx: unknown) => unknown
    const mortal = (tx: unknown) => Promise.race([work(tx), this.#died])
    return given.map((value, i) => (i === place ? mortal : value))
  }
}

/** What a dead process waits for. */
function forever(): Promise<never> {
  return new Promise(() => {})
}
