/** Quotes a name for a command that people copy: names may contain anything, also `; rm`. */
export function shellWord(name: string): string {
  return /^[\w@%+=:,./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`
}
