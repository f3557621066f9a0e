/**
 * Commands are data: what they are called, what they take, examples and what they do. The parser,
 * the help and `docs/reference/cli.md` all come from here.
 */
import type { Environment } from '../environment/system.ts'
import { UsageInvalid } from './errors.ts'
import type { ExitCode } from './exit-codes.ts'
import type { Output } from './output.ts'
import type { Settings } from './settings.ts'

/** An option, `--name` or `--name <value>`. */
export interface OptionSpec {
  readonly flags: string
  readonly says: string
  /** It may be given several times. */
  readonly repeats?: true
  readonly choices?: readonly string[]
}

/** An argument, `<name>`, `[name]` or `[name...]`. */
interface ArgumentSpec {
  readonly flags: string
  readonly says: string
}

/** A command. */
export interface CommandSpec {
  /** Its words, noun first: `job list`. */
  readonly name: string
  readonly summary: string
  readonly details?: string
  readonly args?: readonly ArgumentSpec[]
  readonly options?: readonly OptionSpec[]
  /** Lines as they are typed, and what each does. */
  readonly examples: readonly (readonly [line: string, says: string])[]
  /** A second signal does not end it at once: it has something to give back. */
  readonly drains?: true
  readonly run: (call: Call) => Promise<ExitCode | undefined>
}

/** A command as it was called. */
export interface Call {
  readonly args: readonly string[]
  readonly options: Readonly<Record<string, unknown>>
  readonly output: Output
  readonly settings: Settings
  readonly environment: Environment
  /** Aborted by the first signal, and by the second one. */
  readonly interrupted: AbortSignal
  readonly interruptedAgain: AbortSignal
  readonly stdin: NodeJS.ReadStream
}

/** The text of an option. */
export function textOf({ options }: Call, name: string): string | undefined {
  return options[name] as string | undefined
}

/** Every text of an option that may be given several times. */
export function textsOf({ options }: Call, name: string): readonly string[] {
  return (options[name] as string[] | undefined) ?? []
}

/** Whether a flag was given. */
export function hasFlag({ options }: Call, name: string): boolean {
  return options[name] === true
}

/** The whole number of an option, within bounds. */
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
  throw new UsageInvalid(`--${dashed(name)} must be a whole number from ${min} to ${max}`)
}

/** The name of an option as it is typed. */
export function dashed(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
