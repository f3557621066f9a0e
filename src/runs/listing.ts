import { isDeepStrictEqual } from 'node:util'
import { PawlError } from '../core/errors.ts'
import type { Run } from '../core/run/run.ts'
import { RunLogDamaged } from './journal/errors.ts'
import type { Damage, Journal } from './journal/journal.ts'

/** A run in a list. */
export interface ListedRun {
  readonly runId: string
  /** From the snapshot, or as it failed if its damage was recorded; absent if neither is valid. */
  readonly run: Run | undefined
  /** The damage of its log. Without `check` it is set only if it was recorded. */
  readonly damage?: Damage
  /** Why the run cannot be read. */
  readonly problem?: string
  /** With `check`: the snapshot differs from the log. The log is right. */
  readonly snapshotDiffers?: true
}

/** The options of `list`. */
export interface ListOptions {
  /**
   * Reads the whole log of every run and reports damage. Without it, the list shows the snapshots
   * without checking them.
   */
  readonly check?: boolean
}

/** How many runs are read at the same time. */
const AT_ONCE = 16

/** Returns all runs by id. A run that cannot be read is listed with its problem. */
export async function listRuns(journal: Journal, options: ListOptions): Promise<ListedRun[]> {
  const ids = await journal.list()
  const listed: ListedRun[] = []
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    const some = ids.slice(from, from + AT_ONCE)
    listed.push(...(await Promise.all(some.map((runId) => look(journal, runId, options)))))
  }
  return listed
}

async function look(
  journal: Journal,
  runId: string,
  { check = false }: ListOptions,
): Promise<ListedRun> {
  try {
    if (!check) return { runId, run: await journal.peek(runId) }
    // Read before the log, because a writer may add to both.
    const shown = await journal.peek(runId)
    const { run, damage } = await (await journal.read(runId)).replay()
    const differs = shown?.last_seq === run.last_seq && !isDeepStrictEqual(shown, run)
    return {
      ...{ runId, run },
      ...(damage && { damage }),
      ...(differs && { snapshotDiffers: true as const }),
    }
  } catch (error) {
    if (!(error instanceof PawlError)) throw error
    const damage = error instanceof RunLogDamaged ? { damage: error.damage } : {}
    return { runId, run: undefined, problem: error.message, ...damage }
  }
}
