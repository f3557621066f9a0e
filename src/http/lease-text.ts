/**
 * A lease as one text for workers: the store's handle of the job, its id, and the fence. Workers
 * send it back as it is. It is no secret and no proof: the store checks the fence, which contains
 * the random id of the claim.
 */
import type { Fence } from '../core/job/commands.ts'
import type { Held, Ref } from '../stores/contract/store.ts'
import { RequestRefused } from './errors.ts'

export interface Lease {
  readonly ref: Ref
  readonly jobId: string
  readonly fence: Fence
}

const FORM = /^1~([^~]{1,64})~([^~]{1,64})~(\d{1,15})~([^~]{1,255})$/

export function leaseText({ ref, job }: Held): string {
  const { claim } = job.execution as { claim: string }
  return Buffer.from(`1~${ref}~${job.id}~${job.attempt}~${claim}`).toString('base64url')
}

/** Throws `RequestRefused` for a text that is no lease. */
export function readLease(text: string): Lease {
  const [, ref = '', jobId = '', attempt = '', claim = ''] =
    FORM.exec(Buffer.from(text, 'base64url').toString('utf8')) ?? []
  if (claim === '') throw new RequestRefused(400, '"lease" must be one that a claim has returned')
  // SQLite numbers its rows; PostgreSQL uses the id of the job.
  const own = /^\d{1,15}$/.test(ref) ? Number(ref) : ref
  return { ref: own, jobId, fence: { attempt: Number(attempt), claim } }
}
