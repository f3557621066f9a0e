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
  /** The code is 'own' for a statement of the user's, null for an error without a code. */
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

/** What a statement of the user's own failed with: a commit passes it on as it is. */
export class OwnStatementFailed extends Error {}

/** The function of every commit: a row of the user's own, and one effect. */
export function bookIn(job: Job): (tx: CommitTx) => Promise<string> {
  return async (tx) => {
    const own = (error: unknown) => {
      throw new OwnStatementFailed(String(error))
    }
    const table = `CREATE TABLE IF NOT EXISTS ${TABLE} (job TEXT NOT NULL, attempt INTEGER)`
    const insert = `INSERT INTO ${TABLE} (job, attempt) VALUES (?, ?)`
    await tx.query(table).catch(own)
    await tx.query(insert, [job.id, job.attempt]).catch(own)
    tx.effect(EFFECT, '{}')
    return '"booked"'
  }
}
