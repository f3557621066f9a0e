/**
 * The function of a commit, the same in every store: what it may do, and for how long. While it
 * runs, something is locked; so its time is bounded, by five seconds and by a third of the lease.
 */
import type { JsonBounds } from '../core/canonical-json.ts'
import { CommandInvalid } from '../core/errors.ts'
import { EFFECTS_MAX } from '../core/job/checks.ts'
import type { Usage } from '../core/job/commands.ts'
import type { Environment } from '../environment/system.ts'
import { CommitTooSlow, TxEnded } from './errors.ts'
import { assertNoControl, guardHandle } from './raw-handle.ts'
import { checkEffect, findPayloadFault } from './requests.ts'
import type { CommitTx, Held } from './store.ts'

const BOUND_MS = 5000

/** What the user wants to be done in the commit; returns the result as JSON text. */
export type CommitWork = (tx: CommitTx) => string | Promise<string>

/** An effect that the function declared. */
export interface Effect {
  readonly name: string
  readonly payload: string
}

/** The commit that a holder asks for. */
export function commitCommand({ job }: Held) {
  const fence = { attempt: job.attempt, claim: job.execution?.claim ?? '' }
  return { kind: 'commit', fence } as const
}

/** The same, with what came of its function. */
export function committedCommand(
  held: Held,
  effects: readonly Effect[],
  usage: (() => Usage | undefined) | undefined,
) {
  const used = usage?.()
  return {
    ...commitCommand(held),
    effects: effects.length,
    ...(used !== undefined && { usage: used }),
  }
}

/** A third of the lease as it was taken, so that heartbeats still find their time. */
export function boundOf({ job }: Held): number {
  const leaseMs = (job.execution?.leaseUntil ?? 0) - (job.startedAt ?? 0)
  return Math.max(1, Math.min(BOUND_MS, Math.floor(leaseMs / 3)))
}

/** How a store lets a function into its transaction. */
export interface CommitAccess {
  readonly query: CommitTx['query']
  /** The handle of the driver. */
  readonly raw: object
  /** Throws where the database has ended the transaction by itself. */
  readonly assertWhole?: () => void
  /** Lets jobs be enqueued in the transaction, until the returned function is called. */
  readonly lend: (tx: CommitTx) => () => void
}

/** Runs the function; past its bound, or where its result cannot be stored, it throws. */
export async function runFunction(
  { environment, payloadBounds }: { environment: Environment; payloadBounds: JsonBounds },
  boundMs: number,
  access: CommitAccess,
  work: CommitWork,
): Promise<{ result: string; effects: readonly Effect[] }> {
  const { clock, timers } = environment
  const effects: Effect[] = []
  const { tx, close } = openTx(access, effects, payloadBounds)
  const start = clock.now()
  let expire: (error: CommitTooSlow) => void = () => {}
  const expired = new Promise<never>((_, reject) => {
    expire = reject
  })
  const timer = timers.after(boundMs, () => expire(new CommitTooSlow(boundMs)))
  try {
    const result = await Promise.race([(async () => work(tx))(), expired])
    // A function that never waits leaves no turn to the timer.
    if (clock.now() - start > boundMs) throw new CommitTooSlow(boundMs)
    const fault = findPayloadFault('result', result, payloadBounds)
    if (fault !== undefined) throw fault
    access.assertWhole?.()
    return { result, effects }
  } finally {
    close()
    timer.cancel()
  }
}

/** The tx of a commit, and how to end it: later calls are refused instead of written elsewhere. */
function openTx(
  { query, raw, assertWhole, lend }: CommitAccess,
  effects: Effect[],
  bounds: JsonBounds,
): { tx: CommitTx; close: () => void } {
  let open = true
  const assertOpen = () => {
    if (!open) throw new TxEnded()
    assertWhole?.()
  }
  const tx: CommitTx = {
    raw: guardHandle(raw, assertOpen),
    async query(sql, values) {
      assertOpen()
      assertNoControl(sql)
      return query(sql, values)
    },
    effect(name, payload) {
      assertOpen()
      checkEffect(name, payload, bounds)
      if (effects.length >= EFFECTS_MAX) {
        throw new CommandInvalid('effects', `must not be more than ${EFFECTS_MAX}`)
      }
      effects.push({ name, payload })
    },
  }
  const takeBack = lend(tx)
  return {
    tx,
    close() {
      open = false
      takeBack()
    },
  }
}
