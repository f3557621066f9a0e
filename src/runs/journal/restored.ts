import type { Run } from '../../core/run/run.ts'
import { RunLogDamaged } from './errors.ts'
import type { RestoredRun } from './journal.ts'
import { LogReplay } from './log-replay.ts'

/** Checks the lines of a run that comes from elsewhere; throws `RunLogDamaged`. */
export function checkRestored({ runId, lines }: RestoredRun): { run: Run; lastHash: string } {
  const log = new LogReplay(runId)
  for (const line of lines) log.feed(Buffer.from(`${line}\n`))
  // A line feed inside a line would make two of it.
  if (log.run === null || log.lines !== lines.length) {
    throw new RunLogDamaged(runId, { line: 0, offset: 0, why: 'it has no lines' })
  }
  return { run: log.run, lastHash: log.lastHash }
}
