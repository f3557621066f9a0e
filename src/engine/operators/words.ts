/** Words of sentences and commands for people. */

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

/** A name as one argument of a command. Names can contain any character. */
export function word(name: string): string {
  return name.startsWith('-') ? `-- ${quoted(name)}` : quoted(name)
}

/** A name as the value of an option. */
export function quoted(name: string): string {
  return /^[\w@%+:,./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`
}
