/**
 * A worker process, simulated inside the process of the test. It can die: from then on its timers
 * do not fire, its calls of the store never return, and its open transaction is rolled back.
 * Committed changes stay, and its leases run on, as after a power failure.
 *
 * It also counts the calls under way, so that the test knows when there is nothing left to do.
 */
import type { Timers } from '../core/ports.ts'
import type { Environment } from '../environment/system.ts'
import type { Store } from '../stores/contract/store.ts'

export class TestProcess {
  readonly environment: Environment
  /** The store as this process sees it. */
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

  /** Why it died; undefined while it lives. */
  get cause(): string | undefined {
    return this.#cause
  }

  /** Resolves when it dies. */
  async dies(): Promise<void> {
    await this.#died.catch(() => {})
  }

  /** How many calls of the store it has made. */
  get calls(): number {
    return this.#calls
  }

  /** Whether it waits for the store or, unless it is dead, for the delivery of an effect. */
  get isBusy(): boolean {
    return this.#underWay > 0 || (this.#deliveries > 0 && this.#cause === undefined)
  }

  /** Ends the process. Its open transaction fails with `reason`. */
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
        if (name === 'onWake' || name === 'onTrouble') {
          return (listener: (...said: unknown[]) => void) => verb(this.#alive(listener))
        }
        return (...given: unknown[]) => this.#call(String(name), verb, given)
      },
    })
  }

  #alive(listener: (...said: unknown[]) => void): (...said: unknown[]) => void {
    return (...said) => {
      if (this.#cause === undefined) listener(...said)
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

  /**
   * Rejects the function of an open transaction when the process dies, so that it is rolled back.
   */
  #mortalFunctions(name: string, given: readonly unknown[]): readonly unknown[] {
    const place = { commit: 1, transaction: 0 }[name]
    if (place === undefined) return given
    const work = given[place] as (tx: unknown) => unknown
    const mortal = (tx: unknown) => Promise.race([work(tx), this.#died])
    return given.map((value, i) => (i === place ? mortal : value))
  }
}

/** A promise that never settles. */
function forever(): Promise<never> {
  return new Promise(() => {})
}
