/**
 * Renews leases by their fences; writes no facts. An expired lease is lost and cannot be renewed. A
 * row that is locked at this moment is being settled, committed or cancelled. It is not waited for,
 * because other leases could end meanwhile, and not reported as lost: the next heartbeat will know.
 */
import type { Fence } from '../../core/job/commands.ts'
import type { Beat, Heartbeat, Ref } from '../contract/store.ts'
import { type Session, statement } from './connect.ts'
import { isUuid } from './context.ts'
import { arrayOf } from './rows-at-once.ts'

const RENEW = statement(
  (s) => `
  WITH beat AS MATERIALIZED (
    SELECT * FROM unnest($3::uuid[], $4::bigint[], $5::uuid[], $6::text[])
      AS beat (id, attempt, claim, progress)
  ), fenced AS MATERIALIZED (
    SELECT jobs.id, jobs.attempt, jobs.claim, jobs.cancel_asked_at, beat.progress
    FROM beat
    JOIN ${s}.jobs ON jobs.id = beat.id AND jobs.id = ANY ($3::uuid[])
      AND jobs.attempt = beat.attempt
      AND jobs.claim = beat.claim AND jobs.lease_until > $1
  ), free AS MATERIALIZED (
    SELECT id FROM ${s}.jobs WHERE id = ANY (ARRAY (SELECT id FROM fenced))
    ORDER BY id FOR UPDATE SKIP LOCKED
  ), renewed AS (
    UPDATE ${s}.jobs
    SET lease_until = $2, progress = coalesce(fenced.progress, jobs.progress)
    FROM fenced
    WHERE jobs.id = fenced.id AND jobs.id = ANY (ARRAY (SELECT id FROM free))
      AND jobs.lease_until > $1 AND jobs.claim = fenced.claim
  )
  SELECT id, attempt, claim, cancel_asked_at FROM fenced`,
)

interface FencedRow extends Fence {
  readonly id: string
  readonly cancel_asked_at: number | null
}

/** Renews each lease that is still its caller's. */
export async function heartbeat(
  session: Session,
  now: number,
  beats: readonly Beat[],
  leaseMs: number,
): Promise<Heartbeat> {
  const sound = beats.filter(
    ({ ref, fence }) => isUuid(ref) && Number.isSafeInteger(fence.attempt) && isUuid(fence.claim),
  )
  const rows = await session.query<FencedRow>(RENEW, [
    now,
    now + leaseMs,
    arrayOf(sound.map(({ ref }) => ref)),
    arrayOf(sound.map(({ fence }) => fence.attempt)),
    arrayOf(sound.map(({ fence }) => fence.claim)),
    arrayOf(sound.map(({ progress }) => progress ?? null)),
  ])
  const live = new Map(rows.map((row) => [keyOf(row.id, row), row]))
  const lost: Ref[] = []
  const cancelling: Ref[] = []
  for (const { ref, fence } of beats) {
    const row = live.get(keyOf(ref, fence))
    if (row === undefined) lost.push(ref)
    else if (row.cancel_asked_at !== null) cancelling.push(ref)
  }
  return { lost, cancelling }
}

function keyOf(ref: Ref, { attempt, claim }: Fence): string {
  return `${ref} ${attempt} ${claim}`
}

const WRITE_PROGRESS = statement(
  (s) => `
  UPDATE ${s}.jobs SET progress = item.progress
  FROM unnest($1::uuid[], $2::text[]) AS item (id, progress)
  WHERE jobs.id = item.id AND jobs.id = ANY ($1::uuid[])`,
)

/** Stores the last progress of attempts that end in this transaction, which has locked them. */
export async function writeProgress(
  session: Session,
  items: readonly { readonly id: string; readonly progress: string }[],
): Promise<void> {
  if (items.length === 0) return
  await session.query(WRITE_PROGRESS, [
    arrayOf(items.map(({ id }) => id)),
    arrayOf(items.map(({ progress }) => progress)),
  ])
}
