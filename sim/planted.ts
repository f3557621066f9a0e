/** How planted bugs are written down; `canaries.ts` says what they are for. */

/** What is changed in a file of `dist`. */
interface Change {
  readonly file: string
  readonly find: string
  readonly put: string
}

/** A planted bug. */
export interface Canary {
  readonly name: string
  readonly promise: string
  readonly changes: readonly Change[]
}

/** A file of the SQLite store. */
export const sqlite = (file: string) => `stores/sqlite/${file}.js`
/** A file of the rules of jobs. */
export const core = (file: string) => `core/job/${file}.js`

/** A lane as the statements name it. */
export const lane = (name: string) => `\${LANES.${name}}`

/** Declares a planted bug. */
export function canary(name: string, promise: string, ...changes: readonly Change[]): Canary {
  return { name, promise, changes }
}

/** Declares one change. */
export function change(file: string, find: string, put: string): Change {
  return { file, find, put }
}
