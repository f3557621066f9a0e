/** The counters of one attempt, which are recorded when it ends. */
import { name as checkName } from '../../core/checks.ts'
import { CommandInvalid } from '../../core/errors.ts'
import { USAGE_MAX } from '../../core/job/checks.ts'
import type { Usage } from '../../core/job/commands.ts'

export class UsageCounters {
  /** A Map, because a counter may have any name, `constructor` included. */
  readonly #counters = new Map<string, number>()

  /**
   * Adds to a counter. Throws in the handler's call, where the mistake is, and not later when the
   * attempt is reported.
   */
  add(name: string, by: number): void {
    const total = (this.#counters.get(name) ?? 0) + by
    const why = checkName(name) ?? (Number.isFinite(total) ? undefined : 'must stay finite')
    if (why !== undefined) throw new CommandInvalid('count', why)
    const isFull = this.#counters.size >= USAGE_MAX && !this.#counters.has(name)
    if (isFull) throw new CommandInvalid('count', `must not have more than ${USAGE_MAX} names`)
    this.#counters.set(name, total)
  }

  /** The field of a command; empty if nothing was counted. */
  get field(): { usage?: Usage } {
    return this.#counters.size === 0 ? {} : { usage: Object.fromEntries(this.#counters) }
  }
}
