#!/usr/bin/env node
/** `pawl`: runs the command line of this process, and ends the process with its exit code. */
import { runLine } from './command-line.ts'
import { EXIT } from './exit-codes.ts'
import type { CommandSpec } from './spec.ts'

/** How long a command may take to release what it holds after the second signal. */
const RELEASE_MS = 1500

const { argv, env, stdin, stdout, stderr } = process
const code = await runLine(argv.slice(2), { env, stdin, stdout, stderr, listen: listenToSignals })
await Promise.all([taken(stdout), taken(stderr)])
// Whatever a job file has left open, such as a pool of connections, must not keep the process.
process.exit(code)

/** Resolves when everything that was written is with its reader, or the reader has gone. */
function taken(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write('', () => resolve()))
}

/**
 * The first signal asks the command to end. The second one ends the process: a command that drains
 * gets `RELEASE_MS` to release what it holds. What it cannot release by then is recovered by others
 * when its lease has expired. A third signal ends the process at once.
 */
function listenToSignals({ drains }: CommandSpec) {
  const [first, second] = [new AbortController(), new AbortController()]
  const onSignal = () => {
    if (!first.signal.aborted) return first.abort()
    if (!drains || second.signal.aborted) process.exit(EXIT.interrupted)
    setTimeout(() => process.exit(EXIT.interrupted), RELEASE_MS)
    second.abort()
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, onSignal)
  return { interrupted: first.signal, interruptedAgain: second.signal }
}
