/** What is found when a run is looked at before it is resumed: on the disk, and in its log. */

import { flag, listOf } from '../core/checks.ts'
import { type FieldChecks, unchecked } from '../core/fields.ts'
import type { RunMachine } from '../core/run/machine.ts'
import type { Run } from '../core/run/run.ts'
import type { RunHistory } from './history.ts'
import { type InputParts, lookAgain } from './input-files.ts'
import type { RunReader } from './journal/journal.ts'
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

/** The checks of these. */
export const SURVEY_OPTIONS: FieldChecks<ResumeOptions> = {
  force: (value) => listOf(value, FORCED_MAX, unchecked),
  strict: flag,
  paranoid: flag,
}

/** How many work items can be forced by one call. */
const FORCED_MAX = 10_000

/** Looks at everything that resuming depends on. */
export async function survey(
  known: { readonly machine: RunMachine; readonly run: Run; readonly history: RunHistory },
  inputs: InputParts & Pick<RunReader, 'findDamaged'>,
  { force = [], paranoid = false }: ResumeOptions,
): Promise<ResumeSituation> {
  const { run } = known
  const damaged = await inputs.findDamaged(run.artifacts_index, { paranoid })
  const changes = await lookAgain(inputs, run, { paranoid, damaged: new Set(damaged) })
  return { ...known, changes, damaged, force }
}
