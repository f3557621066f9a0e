/** What is found when a run is looked at before it is resumed: on the disk, and in its log. */

import { CommandInvalid } from '../core/errors.ts'
import type { RunMachine } from '../core/run/machine.ts'
import type { Run } from '../core/run/run.ts'
import type { RunHistory } from './history.ts'
import { type InputParts, lookAgain } from './input-files.ts'
import type { RunReader } from './journal/journal.ts'
import type { Known } from './journal/options.ts'
import type { ResumeSituation } from './resume-plan.ts'

/** What may be said about how a run is resumed. */
export interface ResumeOptions {
  /** Work items to be done again though they are finished. */
  readonly force?: readonly string[]
  /** Do again also what is stale in name only: items whose inputs turn out to be the same. */
  readonly strict?: boolean
  /** Read every input file and every artifact again, whatever its size and times say. */
  readonly paranoid?: boolean
}

/** The names of all of these. */
export const SURVEY_OPTIONS = {
  force: true,
  strict: true,
  paranoid: true,
} as const satisfies Known<Required<ResumeOptions>>

/** Looks at everything that resuming depends on. */
export async function survey(
  known: { readonly machine: RunMachine; readonly run: Run; readonly history: RunHistory },
  inputs: InputParts & Pick<RunReader, 'findDamaged'>,
  { force = [], paranoid = false }: ResumeOptions,
): Promise<ResumeSituation> {
  if (!Array.isArray(force)) throw new CommandInvalid('force', 'must be a list of work items')
  const { run } = known
  const damaged = await inputs.findDamaged(run.artifacts_index, { paranoid })
  const changes = await lookAgain(inputs, run, { paranoid, damaged: new Set(damaged) })
  return { ...known, changes, damaged, force }
}
