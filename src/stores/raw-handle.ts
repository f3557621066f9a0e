/**
 * The driver's own handle inside a commit or transaction, for query builders and other libraries.
 * It is the real one behind a guard: once the commit has ended every call is refused, those on
 * statements that were prepared before it included, and what would end the transaction or close the
 * connection is kept from it. Libraries close what they were given as a matter of course, so that
 * does nothing.
 */
import { TxOwned } from './errors.ts'

/** Comments and blanks before a statement. */
const BLANK = /^(?:\s|;|--[^\n]*|\/\*(?:[^*]|\*(?!\/))*\*\/)*/

/** What ends a transaction, or begins one; a rollback to a savepoint does neither. */
const CONTROL = /^(?:BEGIN|START\s+TRANSACTION|COMMIT|END|ABORT|ROLLBACK|PREPARE\s+TRANSACTION)\b/i
const TO_SAVEPOINT = /^ROLLBACK\s+(?:\w+\s+)?TO\b/i

/** Refuses a statement by which a function would end the transaction that it runs in. */
export function assertNoControl(sql: unknown): void {
  if (typeof sql !== 'string') return
  const text = sql.replace(BLANK, '')
  if (CONTROL.test(text) && !TO_SAVEPOINT.test(text)) throw new TxOwned()
}

const CLOSING = new Set<string | symbol>(['close', 'open', 'end', 'release', Symbol.dispose])
/** Methods whose results are handles themselves. */
const MAKING = new Set<string | symbol>(['prepare', 'iterate'])

/** A handle that works for as long as `assertOpen` does not throw. */
export function guardHandle<T extends object>(handle: T, assertOpen: () => void): T {
  return guard(handle, assertOpen, assertNoControl)
}

/** What a statement gets are values, which may be any text. */
const ANY_VALUE = () => {}

function guard<T extends object>(
  handle: T,
  assertOpen: () => void,
  assertAllowed: (sql: unknown) => void,
): T {
  const guarded: T = new Proxy(handle, {
    get(target, name) {
      const value = Reflect.get(target, name, target) as unknown
      if (typeof value !== 'function') return value
      if (CLOSING.has(name)) return () => undefined
      return (...values: unknown[]) => {
        assertOpen()
        const [first] = values
        assertAllowed((first as { text?: unknown } | undefined)?.text ?? first)
        const result = value.apply(target, values) as unknown
        if (result === target) return guarded
        return MAKING.has(name) ? guard(result as object, assertOpen, ANY_VALUE) : result
      }
    },
  })
  return guarded
}
