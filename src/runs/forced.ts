/**
 * Work items that somebody wants to be done again. The wish is an open issue of the run, recorded
 * when the run is resumed and resolved by the append that starts the item, so that a crash between
 * the two does not forget it. See docs/decisions/0013-a-forced-item-is-an-open-issue.md.
 */
import { NAME_MAX } from '../core/checks.ts'
import type { RunCommand } from '../core/run/commands.ts'
import { entryOf, type Run } from '../core/run/run.ts'
import { sha256Of } from './journal/hash.ts'

/** Records that somebody wants an item to be done again. */
export function forceCommand(key: string): RunCommand {
  return {
    kind: 'open-issue',
    issue: forceIssue(key),
    severity: 'warning',
    message: `Work item ${key} is to be done again: somebody forced it`,
  }
}

/** Records that the wish is being fulfilled; nothing where there was none. */
export function fulfilCommands(run: Run, key: string): RunCommand[] {
  return isForced(run, key) ? [{ kind: 'resolve-issue', issue: forceIssue(key) }] : []
}

/** Whether somebody wants an item to be done again that has not been started since. */
export function isForced(run: Run, key: string): boolean {
  return entryOf(run.issues, forceIssue(key))?.status === 'open'
}

/** All such items. */
export function forcedItems(run: Run): string[] {
  const hasOne = Object.entries(run.issues).some(
    ([issue, { status }]) => status === 'open' && issue.startsWith(PREFIX),
  )
  return hasOne ? Object.keys(run.work_items).filter((key) => isForced(run, key)) : []
}

const PREFIX = 'Forced:'

/** The name of the issue; a key too long for that is replaced by its hash. */
function forceIssue(key: string): string {
  const name = `${PREFIX}${key}`
  return name.length <= NAME_MAX ? name : `${PREFIX}~${sha256Of(key)}`
}
