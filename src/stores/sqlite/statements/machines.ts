/** The rows of lifecycles, and how writes go on if a lifecycle has another number than expected. */
import type { Lifecycle } from '../../../core/lifecycles/lifecycle.ts'
import { MachineDamaged } from '../../errors.ts'
import {
  MACHINES_MAX,
  type MachineFault,
  type MachineRow,
  machineMark,
  type RawMachine,
  USABLE,
} from '../../machines.ts'
import type { MachineForms, StatementMachines } from '../../statement-machines.ts'
import { isForeignKeyViolation, toPawlError } from '../busy.ts'
import type { Connection } from '../connect.ts'
import { isInTransaction } from '../join.ts'
import type { At } from './at.ts'

/** SQLite takes lists and maps as JSON. */
export const FORMS: MachineForms = {
  numbers: (list) => JSON.stringify(list),
  texts: (byNumber) => JSON.stringify(Object.fromEntries(byNumber)),
}

const SELECT = `
  SELECT id, name, version, definition, mark FROM pawl_machines WHERE ${USABLE} ORDER BY id`
/** The next number after those that can be used: SQLite would go on from a damaged one. */
const INSERT = `
  INSERT INTO pawl_machines (id, name, version, held, definition, mark)
  SELECT 1 + coalesce(max(id), 0), ?, ?, ?, ?, ? FROM pawl_machines WHERE ${USABLE}
  ON CONFLICT DO NOTHING`
const EXTEND = 'UPDATE pawl_machines SET definition = ?, mark = ? WHERE id = ?'

const SELECT_ONE = `
  SELECT id, name, version, definition, mark FROM pawl_machines WHERE name = ? AND version = ?`

const SELECT_LAST = `SELECT max(id) AS id FROM pawl_machines WHERE ${USABLE}`

/** Loads versions that other processes have registered since. */
export function refreshMachines(connection: Connection, machines: StatementMachines): void {
  const last = connection.get<{ id: number | null }>(SELECT_LAST)?.id ?? 0
  if (last !== machines.lastId) machines.load(connection.all<MachineRow>(SELECT))
}

const NOT_STORED = 'it is not stored under its number'

/**
 * Runs `work`, which writes jobs of these lifecycles. If the database says that a lifecycle of one
 * has no row under its number, looks for it under another one and repeats; throws `MachineDamaged`
 * if that does not help.
 */
export async function withNumbers<T>(
  machines: StatementMachines,
  lifecycles: readonly Lifecycle[],
  work: () => Promise<T>,
  reload: () => Promise<readonly MachineRow[]>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!isForeignKeyViolation(error)) throw error
    machines.load(await reload())
  }
  try {
    return await work()
  } catch (error) {
    const [first] = lifecycles
    if (!isForeignKeyViolation(error) || first === undefined) throw error
    throw new MachineDamaged(first.name, first.version, NOT_STORED)
  }
}

/** The same inside a transaction of the user. If it fails, nothing of it remains. */
export function withNumbersInside<T>(
  connection: Connection,
  machines: StatementMachines,
  lifecycles: readonly Lifecycle[],
  work: () => T,
): T {
  try {
    return atomically(connection, work)
  } catch (error) {
    if (!isForeignKeyViolation(error)) throw toPawlError(error)
    machines.load(connection.all<MachineRow>(SELECT))
  }
  try {
    return atomically(connection, work)
  } catch (error) {
    const [first] = lifecycles
    if (!isForeignKeyViolation(error) || first === undefined) throw toPawlError(error)
    throw new MachineDamaged(first.name, first.version, NOT_STORED)
  }
}

/** Runs work behind a savepoint. If it throws, nothing of it remains. */
export function atomically<T>({ database }: Connection, work: () => T): T {
  database.exec('SAVEPOINT pawl')
  try {
    const done = work()
    database.exec('RELEASE pawl')
    return done
  } catch (error) {
    // A statement with OR ROLLBACK, or a trigger of the user, may have ended the transaction.
    if (isInTransaction(database)) database.exec('ROLLBACK TO pawl; RELEASE pawl')
    throw error
  }
}

const SELECT_RAW = `
  SELECT CAST(id AS TEXT) AS id, name, CAST(version AS TEXT) AS version, held, definition,
    mark
  FROM pawl_machines ORDER BY id`
const SELECT_TAKEN = `
  SELECT DISTINCT machine AS n FROM pawl_jobs WHERE machine BETWEEN 1 AND ${MACHINES_MAX}`

const RESTORE = `
  UPDATE pawl_machines SET id = ?, name = ?, version = ?, held = ?, definition = ?, mark = ?
  WHERE id = CAST(? AS INTEGER)`
const RESTORE_LOST = `
  INSERT INTO pawl_machines (id, name, version, held, definition, mark)
  VALUES (?, ?, ?, ?, ?, ?)`

export const MACHINES = {
  machineRows: ({ connection }: At) => connection.all<MachineRow>(SELECT),
  insertMachine({ connection }: At, { name, version, held }: Lifecycle, definition: string) {
    connection.run(INSERT, name, version, held, definition, machineMark(definition))
  },
  lockMachine: ({ connection }: At, name: string, version: number) =>
    connection.get<MachineRow>(SELECT_ONE, name, version),
  setDefinition({ connection }: At, number: number, definition: string) {
    connection.run(EXTEND, definition, machineMark(definition), number)
  },
  rawMachines: ({ connection }: At) => connection.all<RawMachine>(SELECT_RAW),
  numbersOfJobs: ({ connection }: At) =>
    connection.all<{ n: number }>(SELECT_TAKEN).map(({ n }) => n),
  writeMachine({ connection }: At, { lifecycle, row, number, definition }: MachineFault) {
    const { name, version, held } = lifecycle
    const values = [number, name, version, held, definition, machineMark(definition)]
    if (row === null) connection.run(RESTORE_LOST, ...values)
    else connection.run(RESTORE, ...values, row)
  },
}
