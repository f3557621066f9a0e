/**
 * The names of limits as people read and write them: `openai` is the shared limit `shared/openai`,
 * and `sync/tenant` is `job/sync/tenant`. Other kinds have no short form.
 */
import { gateName, parseGate } from './keys.ts'

/** Returns the full name; `undefined` if no limit can have this name. */
export function fullName(name: string): string | undefined {
  if (parseGate(name) !== undefined) return name
  const [first, second, ...rest] = name.split('/')
  if (first === undefined || first === '' || rest.length > 0) return undefined
  return second === undefined ? gateName('shared', first) : gateName('job', first, second)
}

/** Returns the short name if `fullName` turns it into this limit; it is never like an option. */
export function shortName(limit: string): string {
  const short = parseGate(limit)?.names.join('/') ?? limit
  return fullName(short) === limit && !short.startsWith('-') ? short : limit
}
