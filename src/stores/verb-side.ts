/** Verbs that are written once; how they reach the database is the affair of each store. */

import { textOf } from './archive.ts'
import { ReadSide } from './read-side.ts'
import { checkLimit, checkPrune, checkReports, checkRetry } from './requests.ts'
import type * as contract from './store.ts'
import type { VerbName } from './verb-table.ts'
import { retryEffects, settleEffects } from './verbs/effects.ts'
import type { Tx, Verb } from './verbs/operations.ts'
import { promote } from './verbs/promote.ts'
import { collectPrunable, removePruned } from './verbs/prune.ts'
import { recover } from './verbs/recover.ts'
import { shed } from './verbs/shed.ts'
import { cancel, tell } from './verbs/tell.ts'

type Args<K extends keyof contract.Store> = contract.Store[K] extends (...args: infer A) => unknown
  ? A
  : never

/** The part of a store that both databases have in common. */
export abstract class VerbSide<S> extends ReadSide<S> {
  /** Runs a verb in a transaction of its own or with others; durable when it resolves. */
  protected abstract perform<T>(name: VerbName, verb: (tx: Tx) => Verb<T>): Promise<T>

  /** Runs a verb that only reads. */
  protected abstract look<T>(verb: (tx: Tx) => Verb<T>): Promise<T>

  /** Repeats a verb for many jobs without those whose rows are damaged. */
  protected abstract aroundDamage<T>(verb: () => Promise<T>): Promise<T>

  tell(...args: Args<'tell'>): Promise<contract.Answer[]> {
    return this.perform('tell', (tx) => tell(tx, ...args))
  }

  cancel(...args: Args<'cancel'>): Promise<contract.Answer[]> {
    return this.perform('cancel', (tx) => cancel(tx, ...args))
  }

  async settleEffects(...[reports, onMoved]: Args<'settleEffects'>): Promise<boolean[]> {
    checkReports(reports)
    const { answers, finished } = await this.perform('settleEffects', (tx) =>
      settleEffects(tx, reports),
    )
    onMoved?.(finished)
    return [...answers]
  }

  async retryEffects(...[keys, asker]: Args<'retryEffects'>): Promise<boolean[]> {
    checkRetry(keys, asker)
    return this.perform('retryEffects', (tx) => retryEffects(tx, keys, asker))
  }

  async promote(...[limit, onMoved]: Args<'promote'>): Promise<number> {
    checkLimit(limit)
    const promoted = await this.aroundDamage(() =>
      this.perform('promote', (tx) => promote(tx, limit)),
    )
    onMoved?.(promoted)
    return promoted.length
  }

  async recover(limit: number): Promise<contract.Recovered[]> {
    checkLimit(limit)
    return this.aroundDamage(() => this.perform('recover', (tx) => recover(tx, limit)))
  }

  async shed(limit: number): Promise<contract.Answer[]> {
    checkLimit(limit)
    return this.aroundDamage(() => this.perform('shed', (tx) => shed(tx, limit)))
  }

  async prune(request: contract.PruneRequest): Promise<number> {
    const { endedBefore, limit, archive } = checkPrune(request)
    const collected = await this.look((tx) => collectPrunable(tx, endedBefore, limit))
    if (collected.length === 0) return 0
    await archive?.(textOf(collected))
    return this.perform('prune', (tx) =>
      removePruned(tx, collected, endedBefore, archive !== undefined),
    )
  }
}
