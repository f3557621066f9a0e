/**
 * The commit boundary (document 001). One transaction: the fence is checked, the function runs, the
 * effects go into the outbox, the result and the COMMITTED fact are recorded. Then it is true,
 * once.
 *
 * The write lock is held while the function runs, so its time is bounded: by five seconds, and by a
 * third of the lease. Past the bound everything is rolled back. The fence is checked again at the
 * end, by the time of the end.
 */

import type { JsonBounds } from '../../core/canonical-json.ts'
import { PawlError } from '../../core/errors.ts'
import { decide } from '../../core/job/decide.ts'
import { contextOf, WORKER } from '../asker.ts'
import { CommitTooSlow, TxEnded } from '../errors.ts'
import { checkEffect, findPayloadFault } from '../requests.ts'
import type { Value } from '../rows.ts'
import type { CommitAnswer, CommitTx, Held } from '../store.ts'
import { answer } from './answer.ts'
import type { Connection } from './connect.ts'
import { type Read, readHeld, type Shared } from './context.ts'
import { lendConnection, takeBackConnection } from './join.ts'
import { insertEffects } from './outbox.ts'

const BOUND_MS = 5000

const SELECT_RESULT = 'SELECT payload FROM pawl_ledger WHERE job = ? AND kind = 30'

/** Runs the function of a commit inside the caller's transaction. */
export async function commit(
  shared: Shared,
  connection: Connection,
  now: number,
  held: Held,
  work: (tx: CommitTx) => string | Promise<string>,
): Promise<CommitAnswer> {
  const read = readHeld(shared, connection, held)
  if (read instanceof PawlError) return { kind: 'rejected', error: read }
  const fence = { attempt: held.job.attempt, claim: held.job.execution?.claim ?? '' }
  const command = { kind: 'commit', fence } as const
  const before = decide(
    read.lifecycle,
    read.job,
    command,
    contextOf(shared.environment, WORKER, now),
  )
  if (before.kind === 'rejected') return before
  if (before.kind === 'same')
    return { kind: 'same', job: read.job, result: resultOf(connection, read) }

  const effects: { name: string; payload: string }[] = []
  const result = await runBounded(shared, connection, boundOf(held), now, effects, work)
  const end = shared.environment.clock.now()
  const fault = findPayloadFault('result', result, shared.payloadBounds)
  if (fault !== undefined) throw fault
  const committed = { ...command, effects: effects.length }
  const after = answer(shared, connection, end, read, committed, WORKER, result)
  // The lease ran out while the function ran: its writes must go, too.
  if (after.kind === 'rejected') throw after.error
  insertEffects(connection, end, read.rid, effects)
  return { kind: 'done', job: after.job, result }
}

function resultOf(connection: Connection, { rid }: Read): string {
  return connection.get<{ payload: string | null }>(SELECT_RESULT, rid)?.payload ?? 'null'
}

/** A third of the lease as it was taken, so that heartbeats of other jobs still find their time. */
function boundOf({ job }: Held): number {
  const leaseMs = (job.execution?.leaseUntil ?? 0) - (job.startedAt ?? 0)
  return Math.max(1, Math.min(BOUND_MS, Math.floor(leaseMs / 3)))
}

async function runBounded(
  { environment, payloadBounds }: Shared,
  connection: Connection,
  boundMs: number,
  now: number,
  effects: { name: string; payload: string }[],
  work: (tx: CommitTx) => string | Promise<string>,
): Promise<string> {
  const { clock, timers } = environment
  const { tx, close } = openTx(connection, effects, payloadBounds)
  let expire: (error: CommitTooSlow) => void = () => {}
  const expired = new Promise<never>((_, reject) => {
    expire = reject
  })
  const timer = timers.after(boundMs, () => expire(new CommitTooSlow(boundMs)))
  try {
    const result = await Promise.race([(async () => work(tx))(), expired])
    // A function that never waits leaves no turn to the timer.
    if (clock.now() - now > boundMs) throw new CommitTooSlow(boundMs)
    return result
  } finally {
    close()
    timer.cancel()
  }
}

/** The tx of a commit, and how to end it: later calls are refused instead of written elsewhere. */
function openTx(
  connection: Connection,
  effects: { name: string; payload: string }[],
  payloadBounds: JsonBounds,
): { tx: CommitTx; close: () => void } {
  let open = true
  const assertOpen = () => {
    if (!open) throw new TxEnded()
  }
  const tx: CommitTx = {
    async query(sql, values = []) {
      assertOpen()
      return connection.database.prepare(sql).all(...(values as Value[]))
    },
    effect(name, payload) {
      assertOpen()
      checkEffect(name, payload, payloadBounds)
      effects.push({ name, payload })
    },
  }
  lendConnection(tx, connection)
  return {
    tx,
    close() {
      open = false
      takeBackConnection(tx)
    },
  }
}
