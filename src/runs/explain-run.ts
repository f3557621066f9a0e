/**
 * What resuming a run would do, without doing it. The steps are those of `Runs.resume`, in the same
 * order, so that a run that would be refused is refused here with the same error.
 */
import { PawlError, RunEnded } from '../core/errors.ts'
import type { RunMachine } from '../core/run/machine.ts'
import type { Run } from '../core/run/run.ts'
import type { Environment } from '../environment/system.ts'
import { RunDefinitionUnknown } from './errors.ts'
import { explainItems, type RunExplanation } from './explain.ts'
import { HistoryNotes } from './history.ts'
import type { InputDisk } from './input-disk.ts'
import { keepNothing } from './input-files.ts'
import { RunHeld } from './journal/errors.ts'
import type { RunReader } from './journal/journal.ts'
import { endOf } from './outcome.ts'
import { planResume } from './resume-plan.ts'
import { type ResumeOptions, survey } from './survey.ts'

/** What explaining needs of the runs that a process has open. */
export interface ExplainParts {
  readonly disk: InputDisk
  readonly environment: Environment
  machineOf(run: Run, reader: RunReader): Promise<RunMachine>
  /** Throws what resuming would throw if the run cannot be worked on here. */
  checkDefinition(run: Run, reader: RunReader): Promise<unknown>
}

/** Explains a run; throws `RunLogDamaged` if its log is damaged and that was not recorded. */
export async function explainRun(
  reader: RunReader,
  options: ResumeOptions,
  parts: ExplainParts,
): Promise<RunExplanation> {
  const history = new HistoryNotes()
  const { run } = await reader.replay(history.note)
  const machine = await parts.machineOf(run, reader)
  const refusal = await findRefusal(reader, run, machine, parts)
  const hasEnded = endOf(machine, run) !== undefined
  const { disk, environment } = parts
  const inputs = {
    disk,
    now: () => environment.clock.now(),
    keep: keepNothing,
    read: (name: string, sha256: string) => reader.readArtifact(name, sha256),
    findDamaged: reader.findDamaged.bind(reader),
  }
  const situation = await survey({ machine, run, history }, inputs, options)
  const { damaged, changes } = situation
  const asIs = { commands: [], run, rewinds: [], forced: new Set<string>() }
  const isRefused = refusal !== undefined && !isOfProcess(refusal)
  const plan = hasEnded || isRefused ? asIs : planResume(situation)
  const { strict = false } = options
  const stays = hasEnded ? 'ended' : isRefused ? 'refused' : undefined
  return {
    runId: reader.runId,
    state: run.run_state,
    hasEnded,
    refusal: refusal === undefined ? null : toldOf(refusal),
    rewinds: plan.rewinds,
    continuesIn: plan.run.run_state,
    changedInputs: changes.map(({ name }) => name).filter((name) => !name.startsWith('run:')),
    damaged,
    items: explainItems({ machine, plan, history, damaged, strict, stays }),
  }
}

/** The error that resuming would throw before it plans anything. */
async function findRefusal(
  reader: RunReader,
  run: Run,
  machine: RunMachine,
  { checkDefinition }: ExplainParts,
): Promise<PawlError | undefined> {
  const holder = await reader.holder()
  if (holder !== undefined) return new RunHeld(reader.runId, holder)
  const ended = endOf(machine, run)
  if (ended !== undefined) {
    return ended.kind === 'done' ? undefined : new RunEnded(reader.runId, run.run_state)
  }
  try {
    await checkDefinition(run, reader)
    return undefined
  } catch (error) {
    if (error instanceof PawlError) return error
    throw error
  }
}

/** Whether it is only this process, or this moment, in which the run cannot be resumed. */
function isOfProcess(refusal: PawlError): boolean {
  return refusal instanceof RunHeld || refusal instanceof RunDefinitionUnknown
}

function toldOf({ code, message, hint }: PawlError): NonNullable<RunExplanation['refusal']> {
  return { code, message, hint }
}
