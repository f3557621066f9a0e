/** Options of the calls on runs: one that is not known is refused, not passed over. */
import { CommandInvalid, DefinitionInvalid } from '../../core/errors.ts'

/** Every option of a call, by name; the compiler sees to it that none is missing. */
export type Known<T> = Readonly<Record<keyof T, true>>

/** Throws `CommandInvalid` if a call has an option that is not known. */
export function checkCall<T extends object>(options: T, known: Known<T>): void {
  const found = findUnknown(options, known)
  if (found !== undefined) throw new CommandInvalid(found.option, found.why)
}

/** Throws `DefinitionInvalid` if something is opened or defined with an unknown option. */
export function checkDefinition<T extends object>(what: string, options: T, known: Known<T>): void {
  const found = findUnknown(options, known)
  if (found !== undefined) throw new DefinitionInvalid(what, `"${found.option}" ${found.why}`)
}

function findUnknown(
  options: unknown,
  known: object,
): { readonly option: string; readonly why: string } | undefined {
  if (typeof options !== 'object' || options === null) {
    return { option: 'options', why: 'must be an object' }
  }
  const option = Object.keys(options).find((name) => !Object.hasOwn(known, name))
  if (option === undefined) return undefined
  return { option, why: `is not known here; these are: ${Object.keys(known).join(', ')}` }
}
