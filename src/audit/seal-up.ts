/** Seals everything that the ledger contains now. */

import type { Store } from '../stores/contract/store.ts'
import type { Seal } from '../stores/seals.ts'

/** Makes seals one by one until all facts that were complete at the start are sealed. */
export async function* sealUp(store: Pick<Store, 'seals' | 'tailEnd'>): AsyncGenerator<Seal> {
  // Facts that arrive meanwhile are left for the next call; on a busy store it would never end.
  const end = Number.parseInt(await store.tailEnd(), 10)
  for (;;) {
    const seal = await store.seals.make()
    if (seal === undefined) return
    yield seal
    if (seal.last >= end) return
  }
}
