/** How a store goes on without damaged rows; `damage.ts` has the rules. */

import type { ClaimRequest, Isolated, Ref } from './contract/store.ts'
import { aroundDamage, IsolatedJobs } from './damage.ts'
import type { JobDamaged } from './errors.ts'
import type { VerbName } from './verb-table.ts'
import { findDamage, findFarEffects, makeDue, setAside, setHeldAside } from './verbs/isolate.ts'
import type { Step, Tx } from './verbs/operations.ts'

/** How verbs of isolation are run. */
export interface IsolationAccess {
  look<T>(verb: (tx: Tx) => Step<T>): Promise<T>
  perform<T>(name: VerbName, verb: (tx: Tx) => Step<T>): Promise<T>
}

/** Sets damaged rows aside, and keeps them for the next report. */
export class Isolation {
  readonly #access: IsolationAccess
  readonly #isolated = new IsolatedJobs()

  constructor(access: IsolationAccess) {
    this.#access = access
  }

  /** Repeats a verb for many jobs without those whose rows are damaged. */
  around<T>(verb: () => Promise<T>, request?: ClaimRequest): Promise<T> {
    return aroundDamage(verb, (met) => this.setAside(met, request))
  }

  /**
   * Sets aside the damaged ones among these jobs, the jobs that a claim would take, and the next
   * jobs of each lane. Each is written in a transaction of its own: if the database refuses one,
   * the others are set aside all the same.
   */
  async setAside(met: readonly Ref[], request?: ClaimRequest): Promise<number> {
    const { look, perform } = this.#access
    const suspects = request === undefined ? [] : await look((tx) => tx.claimCandidates(request))
    const found = await look(findDamage)
    let count = 0
    for (const ref of new Set([...met, ...suspects, ...found.map((one) => one.ref)])) {
      const gone = await perform('isolate', (tx) => setAside(tx, ref))
      this.#isolated.add(gone)
      count += gone.length
    }
    return count
  }

  /** Sets aside a held job whose row is sound, because something that belongs to it is not. */
  async setHeldAside({ ref, why }: JobDamaged): Promise<void> {
    this.#isolated.add(await this.#access.perform('isolate', (tx) => setHeldAside(tx, ref, why)))
  }

  /** Sets aside what is damaged; returns everything that was set aside since the last call. */
  async isolate(): Promise<Isolated[]> {
    await this.setAside([])
    const far = await this.#access.look(findFarEffects)
    if (far.length > 0) await this.#access.perform('isolate', (tx) => makeDue(tx, far))
    return this.#isolated.take()
  }
}
