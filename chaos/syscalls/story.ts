/** What the workload and its judge both know. */
import type { Job } from 'pawl'
import type { CommitTx } from 'pawl/sqlite'
import { EFFECT, TABLE } from '../settings.ts'

/** How many jobs the workload enqueues. */
export const JOBS = 6

/** What the workload says. */
export type Said =
  | { readonly kind: 'done'; readonly step: string }
  | { readonly kind: 'acknowledged' | 'committed' | 'settled'; readonly id: string }
  | { readonly kind: 'delivered'; readonly key: string }
  /** The code is null where the error was not one of Pawl's. */
  | {
      readonly kind: 'error'
      readonly step: string
      readonly code: string | null
      readonly message: string
    }

/** The id of the n-th job. */
export function jobIdOf(n: number): string {
  return `00000000-0000-7000-9000-${String(n + 1).padStart(12, '0')}`
}

/** The function of every commit: a row of the user's own, and one effect. */
export function bookIn(job: Job): (tx: CommitTx) => Promise<string> {
  return async (tx) => {
    await tx.query(`CREATE TABLE IF NOT EXISTS ${TABLE} (job TEXT NOT NULL, attempt INTEGER)`)
    await tx.query(`INSERT INTO ${TABLE} (job, attempt) VALUES (?, ?)`, [job.id, job.attempt])
    tx.effect(EFFECT, '{}')
    return '"booked"'
  }
}
