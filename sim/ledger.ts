/** What the rows of the database say, past every store: read by a connection of its own. */
import type { Database, Ref } from 'pawl/sqlite'
import type { Judged } from './checker.ts'

/** Looks at rows. */
export class Ledger {
  readonly #database: Database
  /** Every row that was seen, by its place. */
  readonly #seen = new Map<number, string>()
  readonly #idOf = new Map<number, string>()
  #last = 0

  constructor(database: Database) {
    this.#database = database
  }

  all<Row>(sql: string, ...values: (string | number)[]): Row[] {
    return this.#database.prepare(sql).all(...values) as Row[]
  }

  /**
   * P8: every row that was seen is there, as it was, unless retention removed its job. Nothing
   * where somebody writes just now.
   */
  check(pruned: ReadonlySet<string>): Judged[] {
    const rows = this.#read()
    if (rows === undefined) return []
    const judged: Judged[] = []
    const there = new Map(rows.map((row) => [row.pos, row]))
    for (const [pos, text] of this.#seen) {
      const row = there.get(pos)
      const id = this.#idOf.get(pos) ?? ''
      if (row === undefined && pruned.has(id)) this.#seen.delete(pos)
      else if (row === undefined) judged.push(broken(id, `fact ${pos} is gone`))
      else if (JSON.stringify(row) !== text) judged.push(broken(id, `fact ${pos} was changed`))
    }
    for (const row of rows) {
      if (row.pos <= this.#last) continue
      this.#seen.set(row.pos, JSON.stringify(row))
      this.#idOf.set(row.pos, row.id)
      this.#last = row.pos
    }
    return judged
  }

  #read(): { pos: number; id: string }[] | undefined {
    try {
      return this.all(
        `SELECT l.*, j.id FROM pawl_ledger l LEFT JOIN pawl_jobs j ON j.rid = l.job ORDER BY pos`,
      )
    } catch {
      return undefined
    }
  }

  /** How many jobs have neither ended nor wait for a person. */
  unsettled(): number {
    try {
      const [row] = this.all<{ n: number }>(
        `SELECT count(*) AS n FROM pawl_jobs WHERE lane NOT IN (4, 5) AND NOT (lane = 6
           AND EXISTS (SELECT 1 FROM pawl_outbox WHERE job = rid AND state = 'parked')
           AND NOT EXISTS (SELECT 1 FROM pawl_outbox WHERE job = rid AND state = 'pending'))`,
      )
      return row?.n ?? 1
    } catch {
      // Somebody writes just now.
      return 1
    }
  }

  /** The number of the last fact of each job; nothing where somebody writes just now. */
  seqs(): Map<string, number> | undefined {
    try {
      const rows = this.all<{ id: string; seq: number }>('SELECT id, seq FROM pawl_jobs')
      return new Map(rows.map(({ id, seq }) => [id, seq]))
    } catch {
      return undefined
    }
  }

  /** The jobs whose lease expired before a time, and which were not recovered. */
  heldSince(time: number): string[] {
    try {
      const rows = this.all<{ id: string }>(
        'SELECT id FROM pawl_jobs WHERE lane = 3 AND lease_until < ? AND stalled = 0',
        time,
      )
      return rows.map(({ id }) => id)
    } catch {
      return []
    }
  }

  /**
   * Whether a later attempt at a job has begun. One that began at this very time may have done so
   * in the same transaction, after the lease was renewed, and does not count.
   */
  isTakenOver(ref: Ref, attempt: number, now: number): boolean {
    try {
      const later = this.all(
        'SELECT 1 FROM pawl_ledger WHERE job = ? AND kind = 20 AND attempt > ? AND at <> ?',
        ref,
        attempt,
        now,
      )
      return later.length > 0
    } catch {
      return false
    }
  }
}

function broken(job: string, what: string): Judged {
  return { promise: 'P8', job, what, facts: [] }
}
