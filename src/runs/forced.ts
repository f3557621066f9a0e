/**
 * Work items that a caller forces to run again. A forced item is an open issue of the run. Resuming
 * the run opens the issue, and the append that starts the item resolves it. So a crash between the
 * two does not lose it. See docs/decisions/0013-a-forced-item-is-an-open-issue.md.
 */
import { NAME_MAX } from '../core/checks.ts'
import type { RunCommand } from '../core/run/commands.ts'
import { entryOf, type Run } from '../core/run/run.ts'
import { sha256Of } from './journal/hash.ts'

/** Returns the command that forces an item. */
export function forceCommand(key: string): RunCommand {
  return {
    kind: 'open-issue',
    issue: forceIssue(key),
    severity: 'warning',
    message: `Work item ${key} was forced and will run again`,
  }
}

/** Returns the commands that resolve the issue of an item; empty if the item is not forced. */
export function fulfilCommands(run: Run, key: string): RunCommand[] {
  return isForced(run, key) ? [{ kind: 'resolve-issue', issue: forceIssue(key) }] : []
}

/** Returns true if the item was forced and has not started since. */
export function isForced(run: Run, key: string): boolean {
  return entryOf(run.issues, forceIssue(key))?.status === 'open'
}

/** Returns the keys of all forced items. */
export function forcedItems(run: Run): string[] {
  const hasOne = Object.entries(run.issues).some(
    ([issue, { status }]) => status === 'open' && issue.startsWith(PREFIX),
  )
  return hasOne ? Object.keys(run.work_items).filter((key) => isForced(run, key)) : []
}

const PREFIX = 'Forced:'

/** If the name would be too long, the key is replaced by its hash. */
function forceIssue(key: string): string {
  const name = `${PREFIX}${key}`
  return name.length <= NAME_MAX ? name : `${PREFIX}~${sha256Of(key)}`
}
