/** Runs as they are listed. */
import { isDeepStrictEqual } from 'node:util'
import { PawlError } from '../core/errors.ts'
import type { Run } from '../core/run/run.ts'
import { RunLogDamaged } from './journal/errors.ts'
import type { Damage, Journal } from './journal/journal.ts'

/** A run as it is listed: by its snapshot, and without one if that cannot be read. */
export interface ListedRun {
  readonly runId: string
  /** As it failed, if its damage was recorded. */
  readonly run: Run | undefined
  /** What is wrong with its log; without `check` only if that was recorded. */
  readonly damage?: Damage
  /** Why nothing can be told of it. */
  readonly problem?: string
  /** With `check`: the snapshot has other content than the log, which counts. */
  readonly snapshotDiffers?: true
}

/** How runs are listed. */
export interface ListOptions {
  /**
   * Read the whole log of every run: what is listed is what the log says, and damage is found that
   * nobody has met yet. Without it, what is listed is what the snapshot says, unchecked.
   */
  readonly check?: boolean
}

/** How many runs are looked at side by side. */
const AT_ONCE = 16

/** Every run, by id. One that cannot be read is listed with its problem, and hides no other. */
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
    // Before the log: a writer at work may add to both.
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
