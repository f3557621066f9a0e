/** What the completion of every shell needs to know about the commands. */
import type { CommandTree } from '../spec.ts'

interface CompletedOption {
  /** With its dashes: `--queue`. */
  readonly flag: string
  readonly says: string
  readonly takesValue: boolean
  /** The value is the path of a file or folder. */
  readonly takesPath: boolean
  readonly choices: readonly string[]
}

export interface CompletedCommand {
  /** `job list`, or one word. */
  readonly name: string
  readonly says: string
  readonly options: readonly CompletedOption[]
}

export interface CompletionTable {
  /** First words of commands with two, and what they are about. */
  readonly nouns: readonly (readonly [noun: string, says: string])[]
  readonly commands: readonly CompletedCommand[]
  /** Every option of any command that takes a value, to skip the value. */
  readonly flagsWithValue: readonly string[]
}

const PATHS = /<(?:file|folder|path|bundle)>/

export function tableOf({ nouns, commands, common }: CommandTree): CompletionTable {
  const completed = commands.map(({ name, summary, options = [] }) => ({
    name,
    says: summary,
    options: [...options, ...common].map(optionOf),
  }))
  const all = completed.flatMap(({ options }) => options)
  const flags = all.filter(({ takesValue }) => takesValue).map(({ flag }) => flag)
  const used = new Set(completed.map(({ name }) => name.split(' ')[0] ?? ''))
  return {
    nouns: Object.entries(nouns).filter(([noun]) => used.has(noun)),
    commands: completed,
    flagsWithValue: [...new Set(flags)].sort(),
  }
}

function optionOf({
  flags,
  says,
  choices = [],
}: {
  readonly flags: string
  readonly says: string
  readonly choices?: readonly string[]
}): CompletedOption {
  const flag = flags.split(/[ ,]/).find((word) => word.startsWith('--')) ?? flags
  const takesValue = flags.includes('<')
  return { flag, says, takesValue, takesPath: PATHS.test(flags), choices }
}

/** The words that can follow: first words of all commands, or second words of a noun. */
export function firstWords({ nouns, commands }: CompletionTable): [word: string, says: string][] {
  const single = commands.filter(({ name }) => !name.includes(' '))
  return [...single.map(({ name, says }) => [name, says] as [string, string]), ...nouns.map(pair)]
}

export function verbsOf({ commands }: CompletionTable, noun: string): [string, string][] {
  return commands
    .filter(({ name }) => name.startsWith(`${noun} `))
    .map(({ name, says }) => [name.slice(noun.length + 1), says])
}

function pair([word, says]: readonly [string, string]): [string, string] {
  return [word, says]
}
