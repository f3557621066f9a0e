// A process that can die: a real engine whose timers never fire again, and which no answer of the
// store ever reaches, once it has crashed. It works on any store.
import type { Environment } from '../../src/environment/system.ts'
import type { Store } from '../../src/stores/contract/store.ts'

/** A process that can crash. */
export class MortalProcess {
  readonly environment: Environment
  readonly store: Store
  #isAlive = true

  constructor(world: Environment, store: Store) {
    const ifAlive = (callback: () => void) => () => {
      if (this.#isAlive) callback()
    }
    this.environment = {
      ...world,
      timers: {
        after: (delayMs, callback) => world.timers.after(delayMs, ifAlive(callback)),
        defer: (callback) => world.timers.defer(ifAlive(callback)),
      },
    }
    this.store = new Proxy(store, {
      get: (target, name) => {
        const value = target[name as keyof Store] as unknown
        if (typeof value !== 'function') return value
        const verb = (value as (...values: unknown[]) => unknown).bind(target)
        if (name === 'now') return verb
        if (name === 'onWake') return (listener: () => void) => verb(ifAlive(listener))
        if (name === 'close' || typeof name !== 'string') return async () => {}
        return async (...values: unknown[]) => {
          await this.#live()
          try {
            return await verb(...values)
          } finally {
            await this.#live()
          }
        }
      },
    })
  }

  /** Ends the process without warning. */
  crash(): void {
    this.#isAlive = false
  }

  /** The dead never go on. */
  async #live(): Promise<void> {
    if (!this.#isAlive) await new Promise<never>(() => {})
  }
}
