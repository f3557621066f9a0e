/** `pawl completions`: completion of commands and options in a shell. */
import { bashScript, fishScript, zshScript } from '../completions/scripts.ts'
import { type CompletionTable, tableOf } from '../completions/table.ts'
import { UsageInvalid } from '../errors.ts'
import type { Call, CommandSpec } from '../spec.ts'
import { visible } from '../visible.ts'

const SCRIPTS: Readonly<Record<string, (table: CompletionTable) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
}

async function completions({ args, output, readTree }: Call): Promise<undefined> {
  const [shell = ''] = args
  const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined
  if (script === undefined) {
    const known = Object.keys(SCRIPTS).join(', ')
    throw new UsageInvalid(`There is no script for "${visible(shell)}"`, `Use one of: ${known}.`)
  }
  const text = script(tableOf(await readTree()))
  if (output.json) output.record({ shell, script: text })
  else output.text(text)
  return undefined
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'completions',
    summary: 'Print a script that completes commands and options in your shell',
    details:
      'The script has all commands of this release as text: TAB does not start pawl. Print it ' +
      'again after an update.',
    args: [{ flags: '<shell>', says: 'bash, zsh or fish' }],
    examples: [
      ['source <(pawl completions bash)', 'in ~/.bashrc'],
      ['source <(pawl completions zsh)', 'in ~/.zshrc, after compinit'],
      ['pawl completions fish > ~/.config/fish/completions/pawl.fish', 'once'],
    ],
    readsNoConfig: true,
    run: completions,
  },
]
