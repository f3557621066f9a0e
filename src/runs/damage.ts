/** What is recorded of a run whose log cannot be believed. */
import type { RunCommand } from '../core/run/commands.ts'
import { decideRun } from '../core/run/decide.ts'
import type { RunFact } from '../core/run/events.ts'
import type { RunMachine } from '../core/run/machine.ts'
import type { Run } from '../core/run/run.ts'
import type { Damage } from './journal/journal.ts'
import { foldFacts } from './run-log.ts'

/** The first fact of a run. */
export function createFacts(machine: RunMachine, maxFixAttempts?: number): readonly RunFact[] {
  const attempts = maxFixAttempts === undefined ? {} : { maxFixAttempts }
  return factsOf(machine, null, { kind: 'create', ...attempts })
}

/** The blocker issue SnapshotInvalid, and the failure of the run. Throws where it has ended. */
export function damageFacts(
  run: Run | null,
  { line, offset, why }: Damage,
  machine: RunMachine,
): readonly RunFact[] {
  const place = line === 0 ? 'The log is missing' : `Line ${line} of the log, byte ${offset}`
  const message = `${place}: ${why}`.slice(0, MESSAGE_MAX)
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

const MESSAGE_MAX = 2000

function factsOf(machine: RunMachine, run: Run | null, command: RunCommand): readonly RunFact[] {
  const decision = decideRun(machine, run, command)
  if (decision.kind === 'rejected') throw decision.error
  return decision.kind === 'facts' ? decision.facts : []
}
