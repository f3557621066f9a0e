/** How this store goes on without damaged rows; `../damage.ts` has the rules. */

import { aroundDamage, IsolatedJobs } from '../damage.ts'
import type { JobDamaged } from '../errors.ts'
import type { ClaimRequest, Isolated, Ref } from '../store.ts'
import type { VerbName } from '../verb-table.ts'
import { candidates } from './claim.ts'
import type { Session } from './connect.ts'
import { isUuid, type Shared } from './context.ts'
import { findDamage, findFarEffects, setAside, setDue, setHeldAside } from './isolate.ts'

/** What the store lends for it. */
export interface IsolationAccess {
  readonly shared: Shared
  now(): number
  read<T>(work: (session: Session) => Promise<T>): Promise<T>
  change<T>(verb: VerbName, work: (session: Session, now: number) => Promise<T>): Promise<T>
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
    return aroundDamage(verb, (met) => this.setAside(met, request))
  }

  /** Sets aside these jobs, what a claim would take, and what a look finds, if it is damaged. */
  async setAside(met: readonly Ref[], request?: ClaimRequest): Promise<number> {
    const { shared } = this.#access
    const suspects =
      request === undefined
        ? []
        : await this.#access.change('isolate', (session, now) =>
            candidates(shared, session, now, request),
          )
    const found = await this.#access.read((session) =>
      findDamage(shared, session, this.#access.now()),
    )
    return this.#setAsideEach([...met, ...suspects, ...found.map(({ ref }) => ref)])
  }

  /** Sets aside one that is held and whose row is sound, but not what belongs to it. */
  async setHeldAside({ ref, why }: JobDamaged): Promise<void> {
    const gone = await this.#access.change('isolate', (session, now) =>
      setHeldAside(this.#access.shared, session, now, String(ref), why),
    )
    this.#isolated.add(gone)
  }

  /** Looks, sets aside, and reports everything that was set aside since the last time. */
  async isolate(): Promise<Isolated[]> {
    await this.setAside([])
    const far = await this.#access.read((session) => findFarEffects(session, this.#access.now()))
    if (far.length > 0) {
      await this.#access.change('isolate', (session, now) => setDue(session, now, far))
    }
    return this.#isolated.take()
  }

  /** Each in a transaction of its own: what keeps one from being written keeps no other. */
  async #setAsideEach(refs: readonly Ref[]): Promise<number> {
    let count = 0
    for (const id of new Set(refs)) {
      if (!isUuid(id)) continue
      const gone = await this.#access.change('isolate', (session, now) =>
        setAside(this.#access.shared, session, now, id),
      )
      this.#isolated.add(gone)
      count += gone.length
    }
    return count
  }
}
