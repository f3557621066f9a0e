/**
 * How jobs are claimed: by one statement for each queue if they have no limits, else with their
 * gates (`../verbs/claim-limited.ts`), in the same transaction.
 */
import type { ClaimRequest, Held } from '../contract/store.ts'
import { claimLimited } from '../verbs/claim-limited.ts'
import { claim, hasReady, hasReadyBehindLimit } from './claim.ts'
import type { Connection } from './connect.ts'
import { atOf, type Shared } from './context.ts'
import { perform } from './operations.ts'

/** How often a claim looks for further jobs after it found some that are blocked. */
const ROUNDS_MAX = 20

/** Connections whose last claim took jobs with limits: the statement would pass over the next. */
const limited = new WeakSet<Connection>()

/** Takes up to `limit` jobs. */
export function claimAll(
  shared: Shared,
  connection: Connection,
  now: number,
  request: ClaimRequest,
): Held[] {
  // The statement leaves out queues with limits of their own: jobs of other queues that keep
  // coming must not keep theirs waiting.
  const isBehind = limited.has(connection) || hasReadyBehindLimit(connection, request)
  const held = isBehind ? [] : claim(shared, connection, now, request)
  // What is left may be jobs with limits, which the statement passes over.
  if (held.length === request.limit || !hasReady(connection)) return held
  const at = atOf(shared, connection, now)
  for (let round = 0; round < ROUNDS_MAX && held.length < request.limit; round++) {
    const claimId = shared.environment.ids.next()
    const limit = request.limit - held.length
    const { held: taken, more } = perform(at, (tx) =>
      claimLimited(tx, claimId, { ...request, limit }),
    )
    held.push(...taken)
    if (!more) break
  }
  if (held.some(({ slots, job }) => slots !== undefined || job.limitKey !== null)) {
    limited.add(connection)
  } else limited.delete(connection)
  return held
}
