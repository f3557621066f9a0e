/**
 * Recognises what users pass as `tx` by mistake. A query builder wraps the transaction of its
 * driver, so the wrapper cannot run the statements of Pawl.
 */
import { typeName } from '../core/format.ts'
import { TxInvalid } from './errors.ts'

const HINT =
  'Turn it around: open the transaction with pawl.transaction(async (tx) => …), build the query ' +
  'builder on tx.raw, and pass tx to enqueue. Or pass the client of the driver itself.'

interface Builder {
  readonly name: string
  /** Properties that all its transactions have. */
  readonly has: readonly string[]
}

const BUILDERS: readonly Builder[] = [
  { name: 'Drizzle', has: ['dialect', 'session', 'select', 'insert'] },
  { name: 'Kysely', has: ['isTransaction', 'selectFrom', 'insertInto'] },
  { name: 'Prisma', has: ['$queryRaw', '$executeRaw'] },
  { name: 'Knex', has: ['raw', 'isTransaction', 'schema'] },
  { name: 'postgres.js', has: ['unsafe', 'savepoint'] },
]

/** Returns the error for a value that is not a handle of the driver. */
export function foreignTx(tx: unknown, expected: string): TxInvalid {
  const builder = BUILDERS.find(({ has }) => has.every((property) => hasProperty(tx, property)))
  if (builder === undefined) return new TxInvalid(`it is ${typeName(tx)}, not ${expected}`)
  return new TxInvalid(`it is a transaction of ${builder.name}, not ${expected}`, HINT)
}

function hasProperty(value: unknown, property: string): boolean {
  const isObject = (typeof value === 'object' && value !== null) || typeof value === 'function'
  return isObject && property in value
}
