/**
 * Whether a call comes from inside the function of a commit or of a transaction. Such a function
 * may use other stores, but not its own: a verb would wait for the transaction that waits for it,
 * or for a connection that the commit holds.
 *
 * One storage serves every store of the process. One for each would stay with Node for ever, and
 * every promise of the process would pay for every store that was ever opened.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { UseTx } from './errors.ts'

interface Inside {
  readonly writer: object
  readonly outer: Inside | undefined
}

const commits = new AsyncLocalStorage<Inside>()

/** Runs the function of a commit. */
export function runInside<T>(writer: object, work: () => T): T {
  return commits.run({ writer, outer: commits.getStore() }, work)
}

/** Refuses a verb that is called inside the function of a commit of the same store. */
export function assertOutside(writer: object): void {
  for (let inside = commits.getStore(); inside !== undefined; inside = inside.outer) {
    if (inside.writer === writer) throw new UseTx()
  }
}
