/**
 * The function of a commit, the same in every store: what it may do, and for how long. While it
 * runs, the file or the row of the job is locked. So its time is bounded, by five seconds and by a
 * third of the lease.
 */
import type { JsonBounds } from '../core/canonical-json.ts'
import { CommandInvalid } from '../core/errors.ts'
import { EFFECTS_MAX } from '../core/job/checks.ts'
import type { Usage } from '../core/job/commands.ts'
import type { Environment } from '../environment/system.ts'
import { checkEffect, findPayloadFault } from './contract/requests.ts'
import type { CommitTx, CommitWork, Held } from './contract/store.ts'
import { CommitTooSlow } from './errors.ts'
import { BOUND_MS, runBounded, type TxAccess } from './transaction-function.ts'

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

/** The same, with the result of its function. */
export function committedCommand(held: Held, effects: readonly Effect[], usage: Usage | undefined) {
  return {
    ...commitCommand(held),
    effects: effects.length,
    ...(usage !== undefined && { usage }),
  }
}

/** A third of the lease as it was granted, so that heartbeats still have time. */
export function boundOf({ job }: Held): number {
  const leaseMs = (job.execution?.leaseUntil ?? 0) - (job.startedAt ?? 0)
  return Math.max(1, Math.min(BOUND_MS, Math.floor(leaseMs / 3)))
}

/** Runs the function. Throws if it takes too long, or if its result cannot be stored. */
export async function runFunction(
  { environment, payloadBounds }: { environment: Environment; payloadBounds: JsonBounds },
  boundMs: number,
  access: TxAccess,
  work: CommitWork,
): Promise<{ result: string | undefined; effects: readonly Effect[] }> {
  const effects: Effect[] = []
  const result = await runBounded(environment, access, {
    boundMs,
    tooSlow: () => new CommitTooSlow(boundMs),
    extend: (tx, assertOpen): CommitTx => ({
      ...tx,
      effect(name, payload) {
        assertOpen()
        checkEffect(name, payload, payloadBounds)
        if (effects.length >= EFFECTS_MAX) {
          throw new CommandInvalid('effects', `must not be more than ${EFFECTS_MAX}`)
        }
        effects.push({ name, payload })
      },
    }),
    async work(tx) {
      const made = await work(tx)
      const fault = made === undefined ? made : findPayloadFault('result', made, payloadBounds)
      if (fault !== undefined) throw fault
      return made
    },
  })
  return { result, effects }
}
