/** Which number of a limit was in force when, from the records of its changes. */
import { limitOf } from '../core/limits/keys.ts'
import type { LimitRecord } from '../stores/contract/limits.ts'
import type { Store } from '../stores/contract/store.ts'

const PAGE = 1000
/** How many keys are kept whose jobs have said their own number. */
const ASKED_MAX = 100_000

export class LimitHistory {
  readonly #limit: string
  /** Records by the name of the limit or of one key, oldest first. */
  readonly #records: ReadonlyMap<string, readonly LimitRecord[]>
  /** The largest number that a job of a gate has said: functions of inputs leave no records. */
  readonly #asked = new Map<string, number>()

  private constructor(limit: string, records: ReadonlyMap<string, readonly LimitRecord[]>) {
    this.#limit = limit
    this.#records = records
  }

  static async read({ limits }: Store, limit: string): Promise<LimitHistory> {
    const records = new Map<string, LimitRecord[]>()
    let after: string | undefined
    do {
      const page = await limits.records({}, { limit: PAGE, ...(after && { after }) })
      for (const record of page.items) {
        if (limitOf(record.name) !== limit) continue
        const own = records.get(record.name) ?? []
        own.unshift(record)
        records.set(record.name, own)
      }
      after = page.next
    } while (after !== undefined)
    return new LimitHistory(limit, records)
  }

  /** A job of a gate has said a number of its own. */
  asked(gate: string, max: number): void {
    if (this.#asked.size >= ASKED_MAX && !this.#asked.has(gate)) return
    this.#asked.set(gate, Math.max(max, this.#asked.get(gate) ?? 0))
  }

  /** The largest number that was in force at a time, or up to `slackMs` before it. */
  maxAt(gate: string, at: number, slackMs: number): number {
    const names = [gate, this.#limit]
    const changes = names.flatMap((name) => this.#records.get(name) ?? [])
    const times = changes.map((record) => record.at).filter((time) => time >= at - slackMs)
    const before = at - slackMs - 1
    const moments = [before, at, ...times.filter((time) => time <= at)]
    return Math.max(...moments.map((time) => this.#at(gate, time)))
  }

  #at(gate: string, time: number): number {
    const own = this.#valuesAt(gate, time)
    const whole = this.#valuesAt(this.#limit, time)
    return (
      own?.override ??
      whole?.override ??
      this.#asked.get(gate) ??
      whole?.max ??
      Number.POSITIVE_INFINITY
    )
  }

  #valuesAt(name: string, time: number): LimitRecord['after'] | undefined {
    return this.#records.get(name)?.findLast((record) => record.at <= time)?.after
  }
}
