/**
 * A name as one word of a command that people are advised to type. Names may hold anything, also
 * what a shell would take for a second command.
 */
export function shellWord(name: string): string {
  return /^[\w@%+=:,./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`
}
