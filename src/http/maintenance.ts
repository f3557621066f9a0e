/**
 * Promotes due jobs and recovers expired leases while workers wait for jobs over HTTP: there may be
 * no worker of the library that does it.
 */

import { Recovery } from '../engine/worker/recovery.ts'
import type { Environment } from '../environment/system.ts'
import type { Store } from '../stores/contract/store.ts'

const RECOVER_MS = 1000

export class Maintenance {
  readonly #recovery: Recovery
  #running: Promise<void> | undefined

  constructor(store: Store, environment: Environment) {
    this.#recovery = new Recovery(store, environment, RECOVER_MS)
  }

  /**
   * Does what is due, once for all who ask meanwhile. Due jobs are promoted once a second, and at
   * the time that `untilNext` has found.
   */
  run(): Promise<void> {
    this.#running ??= this.#turn().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** Returns how long there is nothing to do. Reads the store, so only a claim that waits asks. */
  untilNext(): Promise<number> {
    return this.#recovery.untilNext()
  }

  async #turn(): Promise<void> {
    await this.#recovery.run()
  }
}
