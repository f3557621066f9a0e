/** What came of the work on a run. */
import type { RunMachine } from '../core/run/machine.ts'
import type { Run } from '../core/run/run.ts'
import type { Damage } from './journal/journal.ts'

/** How a run came out, or why it stands still; one that is stopped can be resumed. */
export type RunOutcome =
  | { readonly kind: 'done'; readonly run: Run }
  | {
      readonly kind: 'failed'
      readonly run: Run
      readonly reason: string
      /** What is wrong with its log, if that is why it failed. */
      readonly damage?: Damage
    }
  | { readonly kind: 'cancelled'; readonly run: Run; readonly reason: string }
  /** A node threw something that a retry may cure, or its process stops. */
  | { readonly kind: 'stopped'; readonly run: Run; readonly error: unknown }

/** The outcome of a run that has ended; nothing while it has not. */
export function endOf(
  { machine, failed, cancelled }: RunMachine,
  run: Run,
): RunOutcome | undefined {
  if (machine.states.get(run.run_state)?.terminal !== true) return undefined
  const reason = run.ended_because ?? 'no reason was given'
  if (run.run_state === failed) return { kind: 'failed', run, reason }
  return run.run_state === cancelled ? { kind: 'cancelled', run, reason } : { kind: 'done', run }
}
