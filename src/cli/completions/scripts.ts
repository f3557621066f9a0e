/**
 * Completion scripts for bash, zsh and fish. They contain every command and option as text, so
 * pressing TAB does not start Node. All words come from the command table of this release; none
 * comes from a store.
 */
import { type CompletedCommand, type CompletionTable, firstWords, verbsOf } from './table.ts'

/** Quotes a text for all three shells. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** fish has its own rule: backslash and apostrophe are escaped with a backslash. */
function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}

const words = (list: readonly string[]) => quoted(list.join(' '))
const flagsOf = ({ options }: CompletedCommand) => options.map(({ flag }) => flag)

/** Works in bash 3.2, which macOS has, and may be sourced twice. */
export function bashScript(table: CompletionTable): string {
  const values = table.commands.flatMap(({ name, options }) =>
    options.filter(({ takesValue }) => takesValue).map((option) => ({ name, ...option })),
  )
  const choices = values
    .filter((option) => option.choices.length > 0)
    .map(({ name, flag, choices }) => bashCase(`${atOf(name)}:${flag}`, choices, '; return'))
  const paths = [...new Set(values.filter(({ takesPath }) => takesPath).map(({ flag }) => flag))]
  return `# bash completion for pawl. Add to ~/.bashrc: source <(pawl completions bash)
_pawl() {
  local cur prev word noun="" verb="" i
  cur="\${COMP_WORDS[COMP_CWORD]}"
  prev="\${COMP_WORDS[COMP_CWORD-1]}"
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    case "$word" in
      ${table.flagsWithValue.join('|')}) i=$((i + 1)) ;;
      -*) ;;
      *) if [ -z "$noun" ]; then noun="$word"; elif [ -z "$verb" ]; then verb="$word"; fi ;;
    esac
  done
  case "$noun $verb:$prev" in
${choices.join('\n')}
  esac
  case "$prev" in
    ${paths.join('|')}) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    ${table.flagsWithValue.filter((flag) => !paths.includes(flag)).join('|')}) return ;;
  esac
  if [ -z "$noun" ]; then
    case "$cur" in
      -*) COMPREPLY=($(compgen -W '--help --version' -- "$cur")) ;;
      *) COMPREPLY=($(compgen -W ${words(firstWords(table).map(([word]) => word))} -- "$cur")) ;;
    esac
    return
  fi
  case "$noun" in
${table.nouns.map(([noun]) => bashVerbs(table, noun)).join('\n')}
    *) verb="" ;;
  esac
  case "$cur" in -*) ;; *) COMPREPLY=($(compgen -f -- "$cur")); return ;; esac
  case "$noun $verb" in
${table.commands.map((command) => bashCase(atOf(command.name), flagsOf(command))).join('\n')}
  esac
}
complete -F _pawl pawl
`
}

function bashCase(at: string, offered: readonly string[], then = ''): string {
  return `    ${quoted(at)}) ${bashOffer(offered)}${then} ;;`
}

function bashVerbs(table: CompletionTable, noun: string): string {
  const offer = bashOffer(verbsOf(table, noun).map(([verb]) => verb))
  return `    ${noun}) if [ -z "$verb" ]; then ${offer}; return; fi ;;`
}

function bashOffer(offered: readonly string[]): string {
  return `COMPREPLY=($(compgen -W ${words(offered)} -- "$cur"))`
}

/** Noun and verb as the script joins them; the verb of a command with one word is empty. */
function atOf(name: string): string {
  return name.includes(' ') ? name : `${name} `
}

export function zshScript(table: CompletionTable): string {
  const described = (list: readonly (readonly [string, string])[]) =>
    list.map(([word, says]) => quoted(`${word.replaceAll(':', '\\:')}:${says}`)).join(' ')
  const choices = table.commands.flatMap(({ name, options }) =>
    options
      .filter((option) => option.choices.length > 0)
      .map(
        ({ flag, choices }) =>
          `    ${quoted(`${atOf(name)}:${flag}`)}) ` +
          `compadd -- ${choices.map(quoted).join(' ')}; return ;;`,
      ),
  )
  const verbs = table.nouns.map(([noun]) => {
    const found = `found=(${described(verbsOf(table, noun))}); _describe command found`
    return `    ${noun}) if [[ -z "$verb" ]]; then ${found}; return; fi ;;`
  })
  const options = table.commands.map(({ name, options }) => {
    const flags = options.map(({ flag, says }) => [flag, says] as const)
    return `    ${quoted(atOf(name))}) found=(${described(flags)}) ;;`
  })
  return `#compdef pawl
# zsh completion for pawl. Add to ~/.zshrc, after compinit: source <(pawl completions zsh)
_pawl() {
  local noun="" verb="" word prev="\${words[CURRENT-1]}" i
  local -a found
  for ((i = 2; i < CURRENT; i++)); do
    word="\${words[i]}"
    case "$word" in
      ${table.flagsWithValue.join('|')}) ((i++)) ;;
      -*) ;;
      *) if [[ -z "$noun" ]]; then noun="$word"; elif [[ -z "$verb" ]]; then verb="$word"; fi ;;
    esac
  done
  case "$noun $verb:$prev" in
${choices.join('\n')}
  esac
  case "$prev" in
    ${table.flagsWithValue.join('|')}) _files; return ;;
  esac
  if [[ -z "$noun" ]]; then
    found=(${described(firstWords(table))})
    _describe command found
    return
  fi
  case "$noun" in
${verbs.join('\n')}
    *) verb="" ;;
  esac
  if [[ "\${words[CURRENT]}" != -* ]]; then _files; return; fi
  case "$noun $verb" in
${options.join('\n')}
  esac
  _describe option found
}
if [[ "\${funcstack[1]}" == _pawl ]]; then _pawl "$@"; else compdef _pawl pawl; fi
`
}

export function fishScript(table: CompletionTable): string {
  const at = (name: string) => fishQuoted(`__pawl_at ${name}`)
  const lines = [
    ...firstWords(table).map(
      ([word, says]) => `complete -c pawl -f -n __pawl_at -a ${word} -d ${fishQuoted(says)}`,
    ),
    ...table.nouns.flatMap(([noun]) =>
      verbsOf(table, noun).map(
        ([verb, says]) => `complete -c pawl -f -n ${at(noun)} -a ${verb} -d ${fishQuoted(says)}`,
      ),
    ),
    ...table.commands.flatMap(({ name, options }) =>
      options.map(({ flag, says, takesValue, takesPath, choices }) => {
        const value = takesValue ? ` -r${takesPath ? ' -F' : ' -f'}` : ''
        const list = choices.length > 0 ? ` -a ${fishQuoted(choices.join(' '))}` : ''
        const own = `-l ${flag.slice(2)}${value}${list}`
        return `complete -c pawl -n ${at(name)} ${own} -d ${fishQuoted(says)}`
      }),
    ),
  ]
  return `# fish completion for pawl: pawl completions fish > ~/.config/fish/completions/pawl.fish
function __pawl_at
    set -l tokens (commandline -opc)
    set -l found
    set -l skip 0
    for token in $tokens[2..-1]
        if test $skip = 1
            set skip 0
        else if contains -- $token ${table.flagsWithValue.join(' ')}
            set skip 1
        else if not string match -q -- '-*' $token
            set -a found $token
        end
    end
    if contains -- "$found[1]" ${table.nouns.map(([noun]) => noun).join(' ')}
        set found $found[1..2]
    else
        set found $found[1]
    end
    test "$found" = "$argv"
end
${lines.join('\n')}
`
}
