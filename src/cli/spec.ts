/**
 * Commands are data: name, arguments, options, examples and function. The parser, the help and
 * `docs/reference/cli.md` are built from them.
 */
import { shown } from '../core/format.ts'
import type { Environment } from '../environment/system.ts'
import { UsageInvalid } from './errors.ts'
import type { ExitCode } from './exit-codes.ts'
import type { Output } from './output.ts'
import type { Settings } from './settings.ts'

/** An option, `--name` or `--name <value>`. */
export interface OptionSpec {
  readonly flags: string
  readonly says: string
  /** The option may be repeated. */
  readonly repeats?: true
  readonly choices?: readonly string[]
}

/** An argument, `<name>`, `[name]` or `[name...]`. */
interface ArgumentSpec {
  readonly flags: string
  readonly says: string
}

export interface CommandSpec {
  /** Noun and verb: `job list`. */
  readonly name: string
  readonly summary: string
  readonly details?: string
  readonly args?: readonly ArgumentSpec[]
  readonly options?: readonly OptionSpec[]
  /** Command lines and what each does. */
  readonly examples: readonly (readonly [line: string, says: string])[]
  /** The command holds jobs, so it has some time to release them after a second signal. */
  readonly drains?: true
  /** The command does not read the configuration file. */
  readonly readsNoConfig?: true
  readonly run: (call: Call) => Promise<ExitCode | undefined>
}

/** Every command as plain data. */
export interface CommandTree {
  readonly common: readonly OptionSpec[]
  readonly nouns: Readonly<Record<string, string>>
  readonly commands: readonly Omit<CommandSpec, 'run'>[]
}

/** One call of a command. */
export interface Call {
  readonly args: readonly string[]
  readonly options: Readonly<Record<string, unknown>>
  readonly output: Output
  readonly settings: Settings
  readonly environment: Environment
  /** Aborted by the first and by the second signal. */
  readonly interrupted: AbortSignal
  readonly interruptedAgain: AbortSignal
  readonly stdin: NodeJS.ReadStream
  /** A command cannot import the list that it is part of. */
  readonly readTree: () => Promise<CommandTree>
}

export function textOf({ options }: Call, name: string): string | undefined {
  return options[name] as string | undefined
}

/** Returns all values of an option that may be repeated. */
export function textsOf({ options }: Call, name: string): readonly string[] {
  return (options[name] as string[] | undefined) ?? []
}

export function hasFlag({ options }: Call, name: string): boolean {
  return options[name] === true
}

/** Returns the whole number of an option; throws `UsageInvalid` if it is out of bounds. */
export function wholeOf(
  call: Call,
  name: string,
  min: number,
  max: number = Number.MAX_SAFE_INTEGER,
): number | undefined {
  const text = textOf(call, name)
  if (text === undefined) return undefined
  const value = /^-?\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  const bounds = max === Number.MAX_SAFE_INTEGER ? `${min} or more` : `from ${min} to ${max}`
  throw new UsageInvalid(`--${dashed(name)} must be a whole number ${bounds}, not ${shown(text)}`)
}

/** Converts the name of an option to its form on the command line. */
export function dashed(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
