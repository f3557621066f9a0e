/**
 * Whether a call comes from inside the function of a commit or of a transaction. The function may
 * use other stores, but not its own: a verb would wait for the transaction that waits for it, or
 * for a connection that the commit holds. An attempt refuses steps inside its own commit.
 *
 * One storage serves the whole process. Node never frees an AsyncLocalStorage, and each one makes
 * every promise of the process slower.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { UseTx } from './errors.ts'

interface Inside {
  readonly owner: object
  readonly outer: Inside | undefined
  /** What a function leaves running, such as a wait for a result, keeps its context. */
  isOver: boolean
}

const commits = new AsyncLocalStorage<Inside>()

/** Runs the function of a commit; calls to `assertOutside` with this owner then throw. */
export async function runInside<T>(owner: object, work: () => T | Promise<T>): Promise<T> {
  const inside: Inside = { owner, outer: commits.getStore(), isOver: false }
  try {
    return await commits.run(inside, work)
  } finally {
    inside.isOver = true
  }
}

/** Throws `UseTx` inside a function that `runInside` runs for the same owner. */
export function assertOutside(owner: object): void {
  for (let inside = commits.getStore(); inside !== undefined; inside = inside.outer) {
    if (inside.owner === owner && !inside.isOver) throw new UseTx()
  }
}
