/**
 * Renews leases by their fences; writes no facts. An expired lease is lost and cannot be renewed.
 */
import { LANES } from '../../core/job/lanes.ts'
import type { Beat, Heartbeat, Ref } from '../contract/store.ts'
import type { Connection } from './connect.ts'

const RENEW = `
  UPDATE pawl_jobs SET lease_until = ?, progress = coalesce(?, progress)
  WHERE rid = ? AND attempt = ? AND claim = ? AND lane = ${LANES.held} AND lease_until > ?
  RETURNING cancel_asked_at`

/** Renews each lease that is still its caller's. */
export function heartbeat(
  connection: Connection,
  now: number,
  beats: readonly Beat[],
  leaseMs: number,
): Heartbeat {
  const lost: Ref[] = []
  const cancelling: Ref[] = []
  for (const { ref, fence, progress } of beats) {
    const row = connection.get<{ cancel_asked_at: number | null }>(
      RENEW,
      now + leaseMs,
      progress ?? null,
      ref,
      fence.attempt,
      fence.claim,
      now,
    )
    if (row === undefined) lost.push(ref)
    else if (row.cancel_asked_at !== null) cancelling.push(ref)
  }
  return { lost, cancelling }
}

/** Stores the last progress of an attempt that ends in this transaction. */
export function writeProgress(connection: Connection, rid: number, progress: string): void {
  connection.run('UPDATE pawl_jobs SET progress = ? WHERE rid = ?', progress, rid)
}
