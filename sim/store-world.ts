/**
 * A side world whose workers and office use the store itself, without the engine, so that every
 * answer can be compared. `wait-world.ts` and `flow-world.ts` say what they do.
 */
import { LIFECYCLES } from 'pawl/rules'
import type { Store } from 'pawl/sqlite'
import type { SimProcess } from './process.ts'
import { type Member, SideWorld } from './side-world.ts'
import { START } from './sizes.ts'

export const LEASE_MS = 3000
export const ANN = { actor: 'operator', operator: 'ann', note: 'to see what happens' } as const

export abstract class StoreWorld<Counted> extends SideWorld<Counted> {
  protected readonly workers = 2

  /** The arguments are the name and the salt of `SideWorldOptions`. */
  constructor(seed: number, name: string, salt: number) {
    super(seed, {
      ...{ name, salt, start: () => START, hasHints: false },
      faultyMs: 20_000,
      healedMs: 60 * 60_000,
      process: { leaseMs: LEASE_MS },
      strikes: [
        ...(['crash', 'client-crash', 'pause-beyond-lease', 'clock-leap'] as const),
        ...(['machine-clock-set', 'suspend'] as const),
      ],
      restMs: [200, 1500],
      pauseMs: [LEASE_MS, 4 * LEASE_MS],
      leapMs: [1, 30_000],
      machineMs: [-60_000, 60_000],
      suspendMs: [1000, 60_000],
    })
  }

  /** What a worker does in each of its turns. */
  protected abstract work(process: SimProcess, store: Store): Promise<void>
  /** What clients and operators do in each of their turns. */
  protected abstract meddle(store: Store): Promise<void>

  protected hire({ process }: Member): Promise<void> {
    return this.#repeat(process, (store) => this.work(process, store))
  }

  protected runOffice(process: SimProcess): Promise<void> {
    return this.#repeat(process, (store) => this.meddle(store))
  }

  /** Does one thing again and again. A call that failed is made again later. */
  async #repeat(process: SimProcess, act: (store: Store) => Promise<void>): Promise<void> {
    const store = await process.open(LIFECYCLES)
    for (;;) {
      await act(store).catch((error) => this.expectTyped(error))
      const ms = this.faults.between(100, 1500)
      await new Promise<void>((resolve) => process.environment.timers.after(ms, resolve))
    }
  }
}
