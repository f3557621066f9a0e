import { isEndless } from '../core/job/fence.ts'
import type { RunRow } from './runs.ts'

/** The row of a run, as both stores select it. */
export interface RunTableRow {
  readonly last_seq: number
  readonly last_hash: string
  readonly snapshot: string
  readonly fence: string | null
  readonly holder: string | null
  readonly lease_until: number | null
  readonly cancel: string | null
  readonly failure: string | null
}

/** What a row says at a time. */
export function toRunRow(row: RunTableRow, now: number): RunRow {
  const { last_seq: seq, last_hash: hash, snapshot, holder, lease_until, cancel, failure } = row
  return {
    end: { seq, hash },
    snapshot,
    ...(holder !== null && isHeld(lease_until ?? 0, now) && { holder }),
    ...(isEndless(lease_until ?? 0, now) && { endless: true as const }),
    ...(cancel !== null && { cancel }),
    ...(failure !== null && { failure }),
  }
}

/** A lease that ends later than any lease can is damaged, and counts as ended. */
function isHeld(leaseUntil: number, now: number): boolean {
  return leaseUntil > now && !isEndless(leaseUntil, now)
}
