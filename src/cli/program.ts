/** Builds the parser and the help from the commands. */
import { Command, CommanderError, Option } from 'commander'
import { NOUNS, readCommands } from './commands/index.ts'
import { UsageInvalid } from './errors.ts'
import { type CommandSpec, type CommandTree, dashed, type OptionSpec } from './spec.ts'
import { visible } from './visible.ts'

/** The options of every command. */
const COMMON_OPTIONS: readonly OptionSpec[] = [
  { flags: '--store <name>', says: 'sqlite:./jobs.db or postgres://… (PAWL_STORE)' },
  { flags: '--config <file>', says: 'the nearest pawl.config.* if absent (PAWL_CONFIG)' },
  { flags: '--json', says: 'data as JSON, one object per line' },
  { flags: '--verbose', says: 'print where settings come from, and more' },
  { flags: '--no-color', says: 'no colours (also NO_COLOR)' },
]

const EPILOGUE = `Exit codes: 0 done, 1 failed, 2 wrong usage or input, 3 findings, 4 not found,
5 conflict, 130 interrupted. Every command has --help with examples.`

/** A parsed command, or `printed` if the parser has printed help or version. */
export type Asked =
  | {
      readonly kind: 'command'
      readonly spec: CommandSpec
      readonly args: readonly string[]
      readonly options: Readonly<Record<string, unknown>>
    }
  | { readonly kind: 'printed' }

interface Printer {
  readonly print: (text: string) => void
  readonly version: string
}

/** Parses a command line; throws `UsageInvalid`. */
export async function parseLine(argv: readonly string[], printer: Printer): Promise<Asked> {
  let asked: Asked = { kind: 'printed' }
  const commands = await readCommands(argv[0])
  const program = programOf(commands, printer, (spec, args, options) => {
    asked = { kind: 'command', spec, args, options }
  })
  try {
    await program.parseAsync(argv.length === 0 ? ['--help'] : [...argv], { from: 'user' })
    return asked
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return { kind: 'printed' }
    if (error.code === 'commander.help') {
      throw new UsageInvalid(`"${visible(argv.join(' '))}" needs a subcommand`)
    }
    const [first = '', ...rest] = error.message.replace(/^error: /, '').split('\n')
    const why = first.charAt(0).toUpperCase() + first.slice(1)
    const hint = rest.join(' ').trim()
    throw new UsageInvalid(visible(why), hint === '' ? undefined : visible(hint))
  }
}

type Choose = (
  spec: CommandSpec,
  args: readonly string[],
  options: Readonly<Record<string, unknown>>,
) => void

function programOf(
  commands: readonly CommandSpec[],
  { print, version }: Printer,
  choose: Choose,
): Command {
  const program = new Command('pawl')
    .description('Durable jobs on SQLite or PostgreSQL.')
    .version(version, '--version', 'the version of this release')
    .helpOption('--help', 'what a command does, with examples')
    .helpCommand(false)
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ writeOut: print, writeErr: () => {}, outputError: () => {} })
    .exitOverride()
    .addHelpText('after', `\n${EPILOGUE}`)
  for (const option of COMMON_OPTIONS) program.addOption(optionOf(option))
  const nouns = new Map<string, Command>()
  for (const spec of commands) {
    const [noun = '', verb] = spec.name.split(' ')
    if (verb === undefined) {
      addCommand(program, spec, noun, choose)
      continue
    }
    const parent = nouns.get(noun) ?? program.command(noun).description(NOUNS[noun] ?? '')
    nouns.set(noun, parent.helpCommand(false))
    addCommand(parent, spec, verb, choose)
  }
  return program
}

function addCommand(parent: Command, spec: CommandSpec, word: string, choose: Choose): void {
  const { summary, details, args = [], options = [], examples } = spec
  const command = parent
    .command(word)
    .summary(summary)
    .description(details === undefined ? `${summary}.` : `${summary}.\n\n${details}`)
    .addHelpText('after', `\n${examplesText(examples)}`)
  for (const { flags, says } of args) command.argument(flags, says)
  for (const option of options) command.addOption(optionOf(option))
  command.action(() => {
    const given = command.optsWithGlobals()
    assertNotBlank(given)
    choose(spec, command.args, given)
  })
}

/**
 * Rejects an empty value, for example from an unset shell variable: the setting, such as the store,
 * would silently come from elsewhere.
 */
function assertNotBlank(options: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(options)) {
    const texts = [value].flat().filter((one) => typeof one === 'string')
    if (texts.every((text) => text.trim() !== '')) continue
    throw new UsageInvalid(
      `--${dashed(name)} must not be empty`,
      'Give it a value, or leave it out.',
    )
  }
}

function optionOf({ flags, says, repeats, choices }: OptionSpec): Option {
  const option = new Option(flags, repeats ? `${says}; may be repeated` : says)
  if (choices !== undefined) option.choices([...choices])
  if (repeats) {
    option.argParser((text: string, before: string[] | undefined) => [...(before ?? []), text])
  }
  return option
}

function examplesText(examples: CommandSpec['examples']): string {
  const lines = examples.map(([line, says]) => `  ${line}\n      ${says}`)
  return ['Examples:', ...lines].join('\n')
}

/** Returns every command as plain data, for documentation and shell completion. */
export async function commandTree(): Promise<CommandTree> {
  const commands = await readCommands()
  return {
    common: COMMON_OPTIONS,
    nouns: NOUNS,
    commands: commands.map(({ run: _, ...spec }) => spec),
  }
}
