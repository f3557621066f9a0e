/** Checks that several definitions of limits share. */
import { count } from '../../core/checks.ts'
import type { DefinitionInvalid } from '../../core/errors.ts'

/** Makes the error for a field of a definition. */
export type Refuse = (field: string, why: string) => DefinitionInvalid

const VERSION_MAX = 1_000_000_000

/** Throws if the version of a limit is not one. */
export function checkVersion(version: number, refuse: Refuse): void {
  const why = count(version, 1, VERSION_MAX)
  if (why !== undefined) throw refuse('version', why)
}
