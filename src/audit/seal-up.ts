/** Seals over everything that the ledger holds now. */
import type { Seal } from '../stores/seals.ts'
import type { Store } from '../stores/store.ts'

/** Makes seals, one by one, until all that was complete when it began is sealed. */
export async function* sealUp(store: Pick<Store, 'seals' | 'tailEnd'>): AsyncGenerator<Seal> {
  // What comes in meanwhile is for the next time, or a busy store would never be through.
  const end = Number.parseInt(await store.tailEnd(), 10)
  for (;;) {
    const seal = await store.seals.make()
    if (seal === undefined) return
    yield seal
    if (seal.last >= end) return
  }
}
