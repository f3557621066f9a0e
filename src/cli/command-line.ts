/**
 * Parses one command line, runs its command and returns the exit code. Errors go to stderr: what
 * happened, why, what to do next, and the code. `main.ts` handles signals and ends the process.
 */
import { PawlError } from '../core/errors.ts'
import { systemEnvironment } from '../environment/system.ts'
import { VERSION } from '../environment/version.ts'
import { Unexpected } from './errors.ts'
import { EXIT, type ExitCode, exitCodeOf } from './exit-codes.ts'
import { Output, type Sink } from './output.ts'
import { type Asked, commandTree, parseLine } from './program.ts'
import { resolveSettings, settingsWithoutFile } from './settings.ts'
import type { Call, CommandSpec } from './spec.ts'
import { visible } from './visible.ts'

/** Published with the package; `test/package/contents.test.ts` checks it. */
const DOCUMENT = 'docs/reference/errors.md'

export interface Terminal {
  readonly env: NodeJS.ProcessEnv
  readonly stdin: Call['stdin']
  readonly stdout: Sink
  readonly stderr: Sink
  /** Called when the command is known. The returned signals tell the command to stop. */
  readonly listen: (spec: CommandSpec) => Pick<Call, 'interrupted' | 'interruptedAgain'>
}

export async function runLine(line: readonly string[], terminal: Terminal): Promise<ExitCode> {
  // An error of the parser must already respect these options.
  const early = { json: line.includes('--json'), verbose: line.includes('--verbose') }
  let output = outputFor(early, terminal)
  const printer = { print: (text: string) => terminal.stdout.write(text), version: VERSION }
  try {
    if (line[0] === 'help') return await help(output, line.slice(1), printer)
    const asked = await parseLine(line, printer)
    if (asked.kind === 'printed') return EXIT.ok
    output = outputFor(asked.options, terminal)
    return await run(asked, output, terminal)
  } catch (error) {
    return printError(output, error)
  }
}

async function run(
  { spec, args, options }: Extract<Asked, { kind: 'command' }>,
  output: Output,
  { env, stdin, listen }: Terminal,
): Promise<ExitCode> {
  const signals = listen(spec)
  const sources = { options, env, cwd: process.cwd() }
  const settings = spec.readsNoConfig
    ? settingsWithoutFile(sources)
    : await resolveSettings(sources)
  if (!spec.readsNoConfig) {
    output.explain(`config: ${visible(settings.configFile ?? 'there is no file')}`)
  }
  const environment = systemEnvironment()
  try {
    const own = { args, options, output, settings, environment, stdin, readTree: commandTree }
    const code = await spec.run({ ...own, ...signals })
    return code ?? (signals.interrupted.aborted ? EXIT.interrupted : EXIT.ok)
  } catch (error) {
    const code = printError(output, error)
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

/** `pawl help [command]` prints the help; with --json it prints all commands as data. */
async function help(
  output: Output,
  line: readonly string[],
  printer: Parameters<typeof parseLine>[1],
): Promise<ExitCode> {
  if (output.json) output.record(await commandTree())
  else await parseLine([...line, '--help'], printer)
  return EXIT.ok
}

function printError(output: Output, thrown: unknown): ExitCode {
  const error = thrown instanceof PawlError ? thrown : new Unexpected(thrown)
  const { code, message, hint, details, cause } = error
  if (output.json) {
    output.sayRecord({ error: { code, message, hint, details, document: DOCUMENT } })
  } else {
    output.say(`error: ${visible(message)}`)
    output.say(`  what to do: ${visible(hint)}`)
    output.say(`  code: ${code}, see ${DOCUMENT} in the package pawl`)
  }
  if (cause instanceof Error) {
    output.explain(String(cause.stack).split('\n').map(visible).join('\n'))
  }
  return exitCodeOf(error)
}
