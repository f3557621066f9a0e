/** How this store goes on without damaged rows; `../damage.ts` has the rules. */

import { aroundDamage, IsolatedJobs } from '../damage.ts'
import type { JobDamaged } from '../errors.ts'
import type { ClaimRequest, Isolated, Ref } from '../store.ts'
import type { VerbName } from '../verb-table.ts'
import { candidates } from './claim.ts'
import type { Connection } from './connect.ts'
import type { Shared } from './context.ts'
import { findDamage, findFarEffects, setAside, setDue, setHeldAside } from './isolate.ts'
import type { Work } from './writer.ts'

/** What the store lends for it. */
export interface IsolationAccess {
  readonly shared: Shared
  now(): number
  read<T>(work: (connection: Connection) => T): Promise<T>
  write<T>(verb: VerbName, work: Work<T>): Promise<T>
}

/** Sets damaged rows aside, and keeps what is to be reported of them. */
export class Isolation {
  readonly #access: IsolationAccess
  readonly #isolated = new IsolatedJobs()

  constructor(access: IsolationAccess) {
    this.#access = access
  }

  /** Repeats a verb for many jobs without those whose rows are damaged. */
  around<T>(verb: () => Promise<T>, request?: ClaimRequest): Promise<T> {
    return aroundDamage(verb, (met) => this.#setAside(met, request))
  }

  /** Looks, sets aside, and reports everything that was set aside since the last time. */
  async isolate(): Promise<Isolated[]> {
    await this.#setAside([])
    const far = await this.#access.read((db) => findFarEffects(db, this.#access.now()))
    if (far.length > 0) await this.#access.write('isolate', (db, now) => setDue(db, now, far))
    return this.#isolated.take()
  }

  /** Sets aside one that is held and whose row is sound, but not what belongs to it. */
  async setHeldAside({ ref, why }: JobDamaged): Promise<void> {
    const { shared } = this.#access
    const gone = await this.#access.write('isolate', (db, now) =>
      setHeldAside(shared, db, now, Number(ref), why),
    )
    this.#isolated.add(gone)
  }

  /** Sets aside these jobs, what a claim would take, and what a look finds, if it is damaged. */
  async #setAside(met: readonly Ref[], request?: ClaimRequest): Promise<number> {
    const { shared } = this.#access
    const found = await this.#access.read((db) => {
      const now = this.#access.now()
      const suspects = request === undefined ? [] : candidates(shared, db, now, request)
      const damaged = findDamage(shared, db, now).map(({ ref }) => Number(ref))
      return [...met.map(Number), ...suspects, ...damaged]
    })
    if (found.length === 0) return 0
    const gone = await this.#access.write('isolate', (db, now) => setAside(shared, db, now, found))
    this.#isolated.add(gone)
    return gone.length
  }
}
