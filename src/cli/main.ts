#!/usr/bin/env node
/** The program `pawl`: runs the command line and ends the process with its exit code. */
import { runLine } from './command-line.ts'
import { EXIT } from './exit-codes.ts'
import type { CommandSpec } from './spec.ts'

/** How long a command may take to release its jobs after the second signal. */
const RELEASE_MS = 1500

const { argv, env, stdin, stdout, stderr } = process
const code = await runLine(argv.slice(2), { env, stdin, stdout, stderr, listen: listenToSignals })
await Promise.all([flushed(stdout), flushed(stderr)])
// A job file may leave something open, such as a connection pool. It must not keep the process.
process.exit(code)

/** Resolves when everything is written, or the reader has closed the stream. */
function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write('', () => resolve()))
}

/**
 * The first signal asks the command to stop. The second one ends the process; a command that drains
 * first has `RELEASE_MS` to release its jobs. Other workers recover the rest when their leases have
 * expired. A third signal ends the process at once.
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
