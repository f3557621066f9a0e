#!/usr/bin/env node
/**
 * `pawl`: reads the command line, runs a command, and ends with its exit code. Whatever goes wrong
 * is said on stderr: what happened, why, what to do, and the code by which the documents have it.
 */
import { readFileSync } from 'node:fs'
import { PawlError } from '../core/errors.ts'
import { systemEnvironment } from '../environment/system.ts'
import { Unexpected } from './errors.ts'
import { EXIT, type ExitCode, exitCodeOf } from './exit-codes.ts'
import { Output } from './output.ts'
import { type Asked, commandTree, parseLine } from './program.ts'
import { resolveSettings } from './settings.ts'
import type { CommandSpec } from './spec.ts'
import { visible } from './visible.ts'

const DOCUMENT = 'docs/reference/errors.md'
/** How long a command may take to release what it holds after the second signal. */
const RELEASE_MS = 1500

const { argv, env, stdin, stdout, stderr } = process
const code = await main(argv.slice(2))
await Promise.all([taken(stdout), taken(stderr)])
// Whatever a job file has left open, such as a pool of connections, must not keep the process.
process.exit(code)

/** Resolves when everything that was written is with its reader, or the reader has gone. */
function taken(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write('', () => resolve()))
}

async function main(line: readonly string[]): Promise<ExitCode> {
  // Before the line is understood, errors must already know in which form they are wanted.
  let output = outputFor({ json: line.includes('--json'), verbose: line.includes('--verbose') })
  try {
    if (line[0] === 'help') return help(output, line.slice(1))
    const asked = await parseLine(line, { print: (text) => stdout.write(text), version: version() })
    if (asked.kind === 'printed') return EXIT.ok
    output = outputFor(asked.options)
    return await run(asked, output)
  } catch (error) {
    return tell(output, error)
  }
}

async function run(
  { spec, args, options }: Extract<Asked, { kind: 'command' }>,
  output: Output,
): Promise<ExitCode> {
  const { interrupted, interruptedAgain } = listenToSignals(spec)
  const settings = resolveSettings({ options, env, cwd: process.cwd() })
  const environment = systemEnvironment()
  const signals = { interrupted, interruptedAgain }
  try {
    const code = await spec.run({ args, options, output, settings, environment, stdin, ...signals })
    return code ?? (interrupted.aborted ? EXIT.interrupted : EXIT.ok)
  } catch (error) {
    const code = tell(output, error)
    return interrupted.aborted ? EXIT.interrupted : code
  }
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

function outputFor(options: Readonly<Record<string, unknown>>): Output {
  const isPlain = env.NO_COLOR !== undefined && env.NO_COLOR !== ''
  const color = options.color !== false && !isPlain && env.TERM !== 'dumb'
  const [json, verbose] = [options.json === true, options.verbose === true]
  return new Output({ stdout, stderr, json, verbose, color })
}

/** `pawl help [command]` is the help of the command; with --json all commands as data. */
async function help(output: Output, line: readonly string[]): Promise<ExitCode> {
  if (output.json) {
    output.record(await commandTree())
    return EXIT.ok
  }
  await parseLine([...line, '--help'], {
    print: (text) => stdout.write(text),
    version: version(),
  })
  return EXIT.ok
}

function tell(output: Output, thrown: unknown): ExitCode {
  const error = thrown instanceof PawlError ? thrown : new Unexpected(thrown)
  const { code, message, hint, details, cause } = error
  if (output.json) {
    output.sayRecord({ error: { code, message, hint, details, document: DOCUMENT } })
  } else {
    output.say(`error: ${visible(message)}`)
    output.say(`  what to do: ${visible(hint)}`)
    output.say(`  code: ${code}, see ${DOCUMENT}`)
  }
  if (cause instanceof Error) {
    output.explain(String(cause.stack).split('\n').map(visible).join('\n'))
  }
  return exitCodeOf(error)
}

function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
