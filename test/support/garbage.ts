import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Lets go of handles that were closed. The driver of Node 20 keeps a file open until the statements
 * that were prepared on it are collected, and a program that opens many files would run out of
 * them.
 */
export async function collectGarbage(): Promise<void> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  // Finalizers run when the event loop turns.
  await new Promise((turn) => setImmediate(turn))
}
