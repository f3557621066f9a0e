// A client of `pg` that stops where the test wants: before the n-th statement of a verb is sent.
// What the server refuses is noted, also where the store tries again and its caller never hears of
// it.
import pg from 'pg'

/**
 * Statements at which there is nothing to see: the beginning of a transaction that is to read only
 * what is committed, hints to other processes, and the tidying of a roll-up.
 */
const ASIDE = /^BEGIN|pg_notify|ended_counts LIMIT/

/** Holds the statements of one store. */
export class Gate {
  /** How many statements were let through or held since it was last set. */
  sent = 0
  /** The codes of everything that the server refused. */
  readonly refusals: string[] = []
  #stopAt = Number.POSITIVE_INFINITY
  #arrived: () => void = () => {}
  #opened: Promise<void> = Promise.resolve()
  #open: () => void = () => {}

  /** Lets n - 1 statements pass; resolves when the n-th has come and waits. */
  stopAt(n: number): Promise<void> {
    this.sent = 0
    this.#stopAt = n
    this.#opened = new Promise((open) => {
      this.#open = open
    })
    return new Promise((arrived) => {
      this.#arrived = arrived
    })
  }

  /** Lets everything pass. */
  open(): void {
    this.#stopAt = Number.POSITIVE_INFINITY
    this.#open()
  }

  async pass(): Promise<void> {
    this.sent++
    if (this.sent !== this.#stopAt) return
    this.#arrived()
    await this.#opened
  }
}

type Query = { readonly text: string }

/** A class of clients, for the configuration of a pool, whose statements go through a gate. */
export function gatedClient(gate: Gate): typeof pg.Client {
  return class extends pg.Client {
    // biome-ignore lint/suspicious/noExplicitAny: the driver's own method has a dozen signatures
    override query(...values: any[]): any {
      const [query] = values as [Query]
      const send = () => super.query(...(values as [string]))
      return ASIDE.test(query.text) ? send() : this.#sendLater(send)
    }

    async #sendLater(send: () => Promise<unknown>): Promise<unknown> {
      await gate.pass()
      try {
        return await send()
      } catch (error) {
        gate.refusals.push(String((error as { code?: unknown }).code))
        throw error
      }
    }
  } as typeof pg.Client
}
