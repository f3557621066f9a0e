/**
 * The driver's own handle inside a commit or transaction, for query builders and other libraries.
 * It is the real handle behind a guard. After the end of the commit every call is refused, also on
 * statements that were prepared before. Statements that would end the transaction are refused.
 * Libraries usually close the handles that they get, so closing does nothing.
 */
import { CommandInvalid } from '../core/errors.ts'
import { TxOwned } from './errors.ts'
import { statementsOf } from './sql-statements.ts'

/** Statements that end or begin a transaction; a rollback to a savepoint does neither. */
const CONTROL = /^(?:BEGIN|START\s+TRANSACTION|COMMIT|END|ABORT|ROLLBACK|PREPARE\s+TRANSACTION)\b/i
const TO_SAVEPOINT = /^ROLLBACK\s+(?:\w+\s+)?TO\b/i

/** Throws if a text contains a statement that would end the transaction. */
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

/** Arguments of statements are values, which may be any text. */
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
