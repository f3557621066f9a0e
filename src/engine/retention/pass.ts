/**
 * A pass of retention over the ended jobs: class by class, in steps of a bounded size. The caller
 * decides when the next step begins, and keeps the cursors.
 */
import {
  cursorOf,
  type EndedWord,
  movePass,
  nextStep,
  type Passes,
  STEP_FIRST,
  STEP_MAX,
} from '../../core/retention.ts'
import type { Environment } from '../../environment/system.ts'
import type { RemovalAuthor, Swept } from '../../stores/contract/retention.ts'
import type { Store } from '../../stores/contract/store.ts'
import type { NamedClass, RetentionPolicy } from './policy.ts'

export interface PassParts {
  readonly store: Store
  readonly environment: Pick<Environment, 'clock'>
  readonly policy: RetentionPolicy
  /** Absent if a worker removes jobs by itself. */
  readonly by?: RemovalAuthor
  readonly dryRun?: boolean
}

/** What was removed of one class. */
export interface ClassReport extends Pick<Swept, 'removed' | 'keys'> {
  readonly outcome: EndedWord
  readonly keepMs: number
  /** All types if absent. */
  readonly types?: readonly string[]
}

/** The steps of a pass. */
export class RetentionPass {
  readonly #parts: PassParts
  readonly #reports = new Map<NamedClass, { removed: number; keys: number }>()
  #left: NamedClass[]
  #limit = STEP_FIRST
  #passes: Passes
  #hasKeys = true

  constructor(parts: PassParts, passes: Passes) {
    this.#parts = parts
    this.#passes = passes
    this.#left = [...parts.policy.classes]
  }

  /** How far the passes over all classes are. */
  get passes(): Passes {
    return this.#passes
  }

  /** Whether nothing is left to look at now. */
  get isDone(): boolean {
    return this.#left.length === 0 && !this.#hasKeys
  }

  /** What was removed so far, by class. */
  get reports(): ClassReport[] {
    return [...this.#reports].map(([{ outcome, keepMs, types }, counts]) => {
      return { outcome, keepMs, ...(types && { types }), ...counts }
    })
  }

  /** Takes the next step. Returns how long it took. */
  async step(): Promise<number> {
    const { clock } = this.#parts.environment
    const start = clock.now()
    const [next] = this.#left
    if (next === undefined) await this.#freeKeys()
    else {
      const { characters } = await this.#sweep(next)
      this.#limit = nextStep(this.#limit, { forMs: clock.now() - start, characters })
    }
    return clock.now() - start
  }

  async #sweep(one: NamedClass): Promise<Swept> {
    const { store, policy, by, dryRun } = this.#parts
    const { name, outcome, types, keepMs } = one
    const after = cursorOf(this.#passes, name, store.now())
    const swept = await store.retention.sweep({
      ...{ outcome, limit: this.#limit, endedBefore: Math.max(0, store.now() - keepMs) },
      ...(types !== undefined && { types }),
      ...(after !== undefined && { after }),
      ...(policy.keysMs !== undefined && { keysMs: policy.keysMs }),
      ...(policy.archive !== undefined && { archive: policy.archive }),
      ...(by !== undefined && { by }),
      ...(dryRun !== undefined && { dryRun }),
    })
    const { next, hasMore, removed, keys } = swept
    if (next !== undefined) this.#passes = movePass(this.#passes, name, next, store.now())
    if (!hasMore) this.#left = this.#left.filter((other) => other !== one)
    const sum = this.#reports.get(one) ?? { removed: 0, keys: 0 }
    this.#reports.set(one, { removed: sum.removed + removed, keys: sum.keys + keys })
    return swept
  }

  /** Keys are freed after jobs were removed. */
  async #freeKeys(): Promise<void> {
    const { store, dryRun = false } = this.#parts
    this.#hasKeys = !dryRun && (await store.retention.freeKeys(STEP_MAX)) === STEP_MAX
  }
}
