/**
 * The lifecycles that a store knows by number. Each process registers its own when it opens the
 * store; jobs refer to them by number. What a process may do with jobs of each number says
 * `../machines.ts`.
 */
import { definitionOf } from '../../core/lifecycles/definition.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { MachineDamaged } from '../errors.ts'
import {
  definitionAfter,
  MACHINES_MAX,
  type MachineFault,
  type MachineRow,
  Machines,
  machineFaults,
  machineMark,
  type RawMachine,
  USABLE,
} from '../machines.ts'
import { isForeignKeyViolation, toPawlError } from './busy.ts'
import type { Connection } from './connect.ts'
import { isInTransaction } from './join.ts'

/** The same, in the form that statements of this store take. */
export class SqliteMachines extends Machines {
  #known = '[]'
  #claimPaths = '{}'
  #readyStates = '{}'
  #heldStates = '{}'

  /** The numbers whose jobs this process touches, as JSON. */
  get known(): string {
    return this.#known
  }

  /** By number, the path of a claim, as JSON. */
  get claimPaths(): string {
    return this.#claimPaths
  }

  /** By number, the ready state, as JSON. */
  get readyStates(): string {
    return this.#readyStates
  }

  /** By number, the held state, as JSON. */
  get heldStates(): string {
    return this.#heldStates
  }

  override load(rows: readonly MachineRow[]): void {
    super.load(rows)
    const ids = [...this.byId.keys(), ...this.routes.keys()]
    this.#known = JSON.stringify(ids)
    const byNumber = (said: (lifecycle: Lifecycle) => string) =>
      JSON.stringify(Object.fromEntries(ids.map((id) => [id, said(this.at(id) as Lifecycle)])))
    this.#claimPaths = byNumber(({ ready, held }) => `${ready}>${held}`)
    this.#readyStates = byNumber(({ ready }) => ready)
    this.#heldStates = byNumber(({ held }) => held)
  }
}

const SELECT = `
  SELECT id, name, version, definition, mark FROM pawl_machines WHERE ${USABLE} ORDER BY id`
/** The next number after those that can be used: SQLite would go on from a damaged one. */
const INSERT = `
  INSERT INTO pawl_machines (id, name, version, held, definition, mark)
  SELECT 1 + coalesce(max(id), 0), ?, ?, ?, ?, ? FROM pawl_machines WHERE ${USABLE}
  ON CONFLICT DO NOTHING`
const EXTEND = 'UPDATE pawl_machines SET definition = ?, mark = ? WHERE id = ?'

/** Registers lifecycles; must be called inside a write transaction. */
export function registerMachines(
  connection: Connection,
  lifecycles: readonly Lifecycle[],
): SqliteMachines {
  for (const lifecycle of lifecycles) {
    const { name, version, held } = lifecycle
    const rows = connection.all<MachineRow>(SELECT)
    const row = rows.find((one) => one.name === name && one.version === version)
    if (row === undefined) {
      const definition = definitionOf(lifecycle)
      connection.run(INSERT, name, version, held, definition, machineMark(definition))
      continue
    }
    const definition = definitionAfter(row, lifecycle)
    if (definition !== undefined) {
      connection.run(EXTEND, definition, machineMark(definition), row.id)
    }
  }
  const machines = new SqliteMachines(lifecycles)
  machines.load(connection.all<MachineRow>(SELECT))
  machines.assertMappings()
  return machines
}

/** Every version that was ever registered. */
export function listMachines(connection: Connection): MachineRow[] {
  return connection.all<MachineRow>(SELECT)
}

const SELECT_LAST = `SELECT max(id) AS id FROM pawl_machines WHERE ${USABLE}`

/** Takes over versions that other processes have registered since. */
export function refreshMachines(connection: Connection, machines: SqliteMachines): void {
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
  machines: SqliteMachines,
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

/** The same inside a transaction of the user, of which nothing may be left if it fails. */
export function withNumbersInside<T>(
  connection: Connection,
  machines: SqliteMachines,
  lifecycles: readonly Lifecycle[],
  work: () => T,
): T {
  try {
    return atomically(connection, work)
  } catch (error) {
    if (!isForeignKeyViolation(error)) throw toPawlError(error)
    machines.load(listMachines(connection))
  }
  try {
    return atomically(connection, work)
  } catch (error) {
    const [first] = lifecycles
    if (!isForeignKeyViolation(error) || first === undefined) throw toPawlError(error)
    throw new MachineDamaged(first.name, first.version, NOT_STORED)
  }
}

function atomically<T>({ database }: Connection, work: () => T): T {
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

/** Rows of lifecycles that are not as the code of this process has them. */
export function findMachineFaults(
  connection: Connection,
  machines: SqliteMachines,
): MachineFault[] {
  const rows = connection.all<RawMachine>(SELECT_RAW)
  const number = (lifecycle: Lifecycle) => machines.idOf(lifecycle)
  const find = (taken: number[]) => machineFaults(rows, machines.own, number, taken)
  // Only a row that needs a number has to know which ones jobs refer to.
  if (find([]).length === 0) return []
  return find(connection.all<{ n: number }>(SELECT_TAKEN).map(({ n }) => n))
}

const RESTORE = `
  UPDATE pawl_machines SET id = ?, name = ?, version = ?, held = ?, definition = ?, mark = ?
  WHERE id = CAST(? AS INTEGER)`
const RESTORE_LOST = `
  INSERT INTO pawl_machines (id, name, version, held, definition, mark)
  VALUES (?, ?, ?, ?, ?, ?)`

/** Makes the row of a lifecycle what the code of this process says. */
export function restoreMachine(
  connection: Connection,
  machines: SqliteMachines,
  { lifecycle, row, number, definition }: MachineFault,
): void {
  const { name, version, held } = lifecycle
  const values = [number, name, version, held, definition, machineMark(definition)]
  if (row === null) connection.run(RESTORE_LOST, ...values)
  else connection.run(RESTORE, ...values, row)
  machines.load(connection.all<MachineRow>(SELECT))
}
