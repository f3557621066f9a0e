/**
 * The driver's own handle inside a commit or transaction, for query builders and other libraries.
 * It is the real one behind a guard: once the commit has ended every call is refused, those on
 * statements that were prepared before it included, and what would end the transaction or close the
 * connection is kept from it. Libraries close what they were given as a matter of course, so that
 * does nothing.
 */
import { CommandInvalid } from '../core/errors.ts'
import { TxOwned } from './errors.ts'
import { statementsOf } from './sql-statements.ts'

/** What ends a transaction, or begins one; a rollback to a savepoint does neither. */
const CONTROL = /^(?:BEGIN|START\s+TRANSACTION|COMMIT|END|ABORT|ROLLBACK|PREPARE\s+TRANSACTION)\b/i
const TO_SAVEPOINT = /^ROLLBACK\s+(?:\w+\s+)?TO\b/i

/** Refuses a text with a statement by which a function would end the transaction it runs in. */
function assertNoControl(sql: unknown): void {
  if (typeof sql !== 'string') return
  for (const text of statementsOf(sql)) {
    if (CONTROL.test(text) && !TO_SAVEPOINT.test(text)) throw new TxOwned()
  }
}

/** The same for a text that must be one statement: SQLite would ignore a second one. */
export function assertOneStatement(sql: string): void {
  assertNoControl(sql)
  if (statementsOf(sql).length > 1) {
    throw new CommandInvalid('sql', 'must be one statement; call query() for each')
  }
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
