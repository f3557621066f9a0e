/**
 * One line of the command line: reads it, runs its command, and returns the exit code. Errors are
 * written to stderr: what happened, why, what to do, and the code by which the documents have it.
 * Nothing here ends the process or listens to its signals; that is for `main.ts`.
 */
import { readFileSync } from 'node:fs'
import { PawlError } from '../core/errors.ts'
import { systemEnvironment } from '../environment/system.ts'
import { Unexpected } from './errors.ts'
import { EXIT, type ExitCode, exitCodeOf } from './exit-codes.ts'
import { Output, type Sink } from './output.ts'
import { type Asked, commandTree, parseLine } from './program.ts'
import { resolveSettings } from './settings.ts'
import type { Call, CommandSpec } from './spec.ts'
import { visible } from './visible.ts'

const DOCUMENT = 'docs/reference/errors.md'

/** Where a line is run. */
export interface Terminal {
  readonly env: NodeJS.ProcessEnv
  readonly stdin: Call['stdin']
  readonly stdout: Sink
  readonly stderr: Sink
  /** Called once the command is known; its signals are aborted when it has to end. */
  readonly listen: (spec: CommandSpec) => Pick<Call, 'interrupted' | 'interruptedAgain'>
}

/** Runs a line and returns its exit code. */
export async function runLine(line: readonly string[], terminal: Terminal): Promise<ExitCode> {
  // Before the line is understood, errors must already know in which form they are wanted.
  const early = { json: line.includes('--json'), verbose: line.includes('--verbose') }
  let output = outputFor(early, terminal)
  const printer = { print: (text: string) => terminal.stdout.write(text), version: version() }
  try {
    if (line[0] === 'help') return await help(output, line.slice(1), printer)
    const asked = await parseLine(line, printer)
    if (asked.kind === 'printed') return EXIT.ok
    output = outputFor(asked.options, terminal)
    return await run(asked, output, terminal)
  } catch (error) {
    return tell(output, error)
  }
}

async function run(
  { spec, args, options }: Extract<Asked, { kind: 'command' }>,
  output: Output,
  { env, stdin, listen }: Terminal,
): Promise<ExitCode> {
  const signals = listen(spec)
  const settings = resolveSettings({ options, env, cwd: process.cwd() })
  const environment = systemEnvironment()
  try {
    const code = await spec.run({ args, options, output, settings, environment, stdin, ...signals })
    return code ?? (signals.interrupted.aborted ? EXIT.interrupted : EXIT.ok)
  } catch (error) {
    const code = tell(output, error)
    return signals.interrupted.aborted ? EXIT.interrupted : code
  }
}

function outputFor(
  options: Readonly<Record<string, unknown>>,
  { env, stdout, stderr }: Terminal,
): Output {
  const isPlain = env.NO_COLOR !== undefined && env.NO_COLOR !== ''
  const color = options.color !== false && !isPlain && env.TERM !== 'dumb'
  const [json, verbose] = [options.json === true, options.verbose === true]
  return new Output({ stdout, stderr, json, verbose, color })
}

/** `pawl help [command]` is the help of the command; with --json all commands as data. */
async function help(
  output: Output,
  line: readonly string[],
  printer: Parameters<typeof parseLine>[1],
): Promise<ExitCode> {
  if (output.json) output.record(await commandTree())
  else await parseLine([...line, '--help'], printer)
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
