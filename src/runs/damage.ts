/** Runs with a damaged log: how they fail, and the facts that are recorded of it. */
import { RunEnded } from '../core/errors.ts'
import type { RunEvent, RunFact } from '../core/run/events.ts'
import { documentationRun, type RunMachine } from '../core/run/machine.ts'
import type { Run } from '../core/run/run.ts'
import { createFacts } from './creation.ts'
import { RunLogDamaged } from './journal/errors.ts'
import type { Author, Damage, Journal, Replayed, RunReader } from './journal/journal.ts'
import type { RunOutcome } from './orchestrator.ts'
import { factsOf, foldFacts } from './run-log.ts'

const MESSAGE_MAX = 2000

/**
 * Returns the facts that open the issue SnapshotInvalid and fail the run. `run` is the run before
 * the damage; if it is null, the facts begin with its creation. Throws if the run has ended.
 */
function damageFacts(
  run: Run | null,
  { line, offset, why }: Damage,
  machine: RunMachine,
): readonly RunFact[] {
  const position = line === 0 ? 'The log is missing' : `Line ${line} of the log, byte ${offset}`
  const message = `${position}: ${why}`.slice(0, MESSAGE_MAX)
  const issue = { kind: 'open-issue', issue: 'SnapshotInvalid', severity: 'blocker' } as const
  const facts = run === null ? [...createFacts(machine)] : []
  const begun = foldFacts(run, facts)
  const opened = factsOf(machine, begun, { ...issue, message })
  const failed = factsOf(machine, foldFacts(begun, opened), {
    kind: 'fail',
    reason: 'SnapshotInvalid',
  })
  return [...facts, ...opened, ...failed]
}

/** What recording a failure needs of the runs that a process has open. */
export interface FailParts {
  readonly newAuthor: () => Author
  readonly machineOf: (run: Run) => Promise<RunMachine>
  readonly recorded: (events: readonly RunEvent[]) => void
}

/**
 * Records that a run failed because its log is damaged, and returns its outcome. Throws `RunEnded`
 * if that was recorded before, or if the run had ended before the damage.
 */
export async function failDamaged(
  journal: Journal,
  reader: RunReader,
  { newAuthor, machineOf, recorded }: FailParts,
): Promise<RunOutcome> {
  const { runId } = reader
  const before = await replayedOrNothing(reader)
  if (before.damage !== undefined && before.run !== undefined) {
    throw new RunEnded(runId, before.run.run_state)
  }
  const failed = await journal.failDamaged(
    runId,
    async (run, damage) => damageFacts(run, damage, await machineBefore(run, machineOf)),
    newAuthor(),
  )
  recorded((await reader.failure())?.events ?? [])
  const { run, damage } = failed
  const reason = run.ended_because ?? 'SnapshotInvalid'
  return { kind: 'failed', run, reason, ...(damage && { damage }) }
}

/** If not even the first event can be read, the machine is unknown, and R4's machine is assumed. */
export async function machineBefore(
  run: Run | null,
  machineOf: FailParts['machineOf'],
): Promise<RunMachine> {
  return run === null ? documentationRun : machineOf(run)
}

/** Returns an empty object if the log is damaged and no failure was recorded. */
export async function replayedOrNothing(reader: RunReader): Promise<Partial<Replayed>> {
  try {
    return await reader.replay()
  } catch (error) {
    if (error instanceof RunLogDamaged) return {}
    throw error
  }
}
