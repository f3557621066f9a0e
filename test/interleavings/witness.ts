// What every caller was told, and between which two moments. The judge compares it with the ledger.
import type { Command } from '../../src/core/job/commands.ts'
import type { Fact } from '../../src/core/job/facts.ts'
import type {
  Answer,
  Beat,
  CommitAnswer,
  EffectReport,
  Enqueued,
  Held,
  HeldEffect,
  Requester,
} from '../../src/stores/contract/store.ts'

/** One thing that a caller learned from an answer. */
export type Telling =
  | {
      readonly kind: 'answered'
      readonly jobId: string
      readonly command: Command
      readonly requester: Requester
      readonly answer: Answer
    }
  | { readonly kind: 'committed'; readonly held: Held; readonly answer: CommitAnswer }
  /** The function took longer than it may: everything was rolled back. */
  | { readonly kind: 'too slow'; readonly held: Held }
  | { readonly kind: 'claimed'; readonly worker: string; readonly held: readonly Held[] }
  | {
      readonly kind: 'beaten'
      readonly jobId: string
      readonly beat: Beat
      readonly leaseMs: number
      readonly lost: boolean
    }
  | { readonly kind: 'recovered'; readonly answers: readonly Answer[] }
  | { readonly kind: 'promoted'; readonly count: number }
  | { readonly kind: 'pruned'; readonly count: number; readonly archived: readonly Fact[] }
  | { readonly kind: 'taken'; readonly effects: readonly HeldEffect[] }
  | { readonly kind: 'reported'; readonly report: EffectReport; readonly ok: boolean }
  | { readonly kind: 'retried'; readonly key: string; readonly ok: boolean }
  | { readonly kind: 'enqueued'; readonly jobId: string; readonly answer: Enqueued }
  | { readonly kind: 'time passed' }

/** The time, and the number of the last fact of every job that there is. */
export interface Moment {
  readonly time: number
  readonly seqs: ReadonlyMap<string, number>
}

/** What was told, by whom, and when the call began and ended. */
export interface Told {
  readonly by: string
  readonly from: Moment
  readonly to: Moment
  /** Where the call began and ended in the order of all beginnings and ends. */
  readonly began: number
  readonly ended: number
  readonly telling: Telling
}

/** What a witness needs of the place where it watches. */
export interface Place {
  /** Read outside of every store that is watched. */
  look(): Moment | Promise<Moment>
  /** Waits until the caller may go on; where a schedule decides, this is where it does. */
  turn(label: string): Promise<void>
}

/** Watches the callers of one interleaving. */
export class Witness {
  readonly told: Told[] = []
  readonly #place: Place
  #steps = 0

  constructor(place: Place) {
    this.#place = place
  }

  /** Makes a call when its turn comes, and keeps what it was answered. */
  async call<T>(
    label: string,
    action: () => Promise<T> | T,
    tell: (value: T) => readonly Telling[],
  ): Promise<T> {
    await this.#place.turn(label)
    const from = await this.#place.look()
    const began = this.#steps++
    const value = await action()
    const ended = this.#steps++
    const to = await this.#place.look()
    for (const telling of tell(value)) {
      this.told.push({ by: label, from, to, began, ended, telling })
    }
    return value
  }

  turn(label: string): Promise<void> {
    return this.#place.turn(label)
  }
}
