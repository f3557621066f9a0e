/** `docs/reference/cli.md`: every command, as the program itself describes it. */
import { execFileSync } from 'node:child_process'

interface Item {
  readonly flags: string
  readonly says: string
  readonly repeats?: true
  readonly choices?: readonly string[]
}

interface CommandTree {
  readonly common: readonly Item[]
  readonly nouns: Readonly<Record<string, string>>
  readonly commands: readonly {
    readonly name: string
    readonly summary: string
    readonly details?: string
    readonly args?: readonly Item[]
    readonly options?: readonly Item[]
    readonly examples: readonly (readonly [line: string, says: string])[]
  }[]
}

/** The whole document. */
export function cliDocument(): string {
  const text = execFileSync(process.execPath, ['dist/cli/main.js', 'help', '--json'])
  const { common, commands } = JSON.parse(text.toString()) as CommandTree
  return [
    '# Command line',
    '',
    'Generated from the commands in `src/cli/commands`. Data goes to stdout, talk to stderr. On a',
    'terminal lists are tables; elsewhere they are lines of values with tabs in between. With',
    '`--json` every datum is one line of JSON, and so is an error on stderr.',
    '',
    'Settings come from flags, then from the environment, then from `pawl.config.json` (fields',
    '`store`, `jobs` and `operator`), then from defaults; `--verbose` names the winner. The',
    'default store is `sqlite:.pawl/jobs.db`.',
    '',
    '| exit code | means |',
    '|---|---|',
    '| 0 | done |',
    '| 1 | failed |',
    '| 2 | wrong usage, an invalid input or file, or not confirmed |',
    '| 3 | findings, such as pending migrations |',
    '| 4 | not found |',
    '| 5 | conflict: a job is in a state in which the command does not apply |',
    '| 130 | interrupted |',
    '',
    'Every command takes:',
    '',
    ...tableOf('option', common),
    ...commands.flatMap(({ name, summary, details, args = [], options = [], examples }) => [
      `## pawl ${name}`,
      '',
      `${summary}.${details === undefined ? '' : ` ${details}`}`,
      '',
      '```sh',
      ...examples.flatMap(([line, says]) => [`# ${says}`, line]),
      '```',
      '',
      ...(args.length > 0 ? tableOf('argument', args) : []),
      ...(options.length > 0 ? tableOf('option', options) : []),
    ]),
  ].join('\n')
}

function tableOf(head: string, items: readonly Item[]): string[] {
  const rows = items.map(({ flags, says, repeats, choices }) => {
    const more = [
      repeats ? 'may be repeated' : '',
      choices === undefined ? '' : `one of ${choices.join(', ')}`,
    ]
    const text = [says, ...more.filter((part) => part !== '')].join('; ')
    return `| \`${flags}\` | ${text.replaceAll('|', '\\|')} |`
  })
  return [`| ${head} | what it does |`, '|---|---|', ...rows, '']
}
