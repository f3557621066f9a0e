/**
 * The lifecycles that a store knows by number. Each process registers its own when it opens the
 * store; jobs refer to them by number. What a process may do with jobs of each number says
 * `../machines.ts`.
 */
import { definitionOf } from '../../core/lifecycles/definition.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import {
  definitionAfter,
  type MachineFault,
  type MachineRow,
  Machines,
  machineFaults,
  machineMark,
  type RawMachine,
  USABLE,
} from '../machines.ts'
import { type Session, statement } from './connect.ts'
import { arrayOf } from './rows-at-once.ts'

/** The same, in the form that statements of this store take. */
export class PostgresMachines extends Machines {
  #known = '{}'
  #heldStates = '{}'
  #readyStates = '{}'
  #claimPaths = '{}'

  /** The numbers whose jobs this process touches, as an array. */
  get known(): string {
    return this.#known
  }

  /** At the place of each number: the held state. */
  get heldStates(): string {
    return this.#heldStates
  }

  /** At the place of each number: the ready state. */
  get readyStates(): string {
    return this.#readyStates
  }

  /** At the place of each number: the path of a claim. */
  get claimPaths(): string {
    return this.#claimPaths
  }

  override load(rows: readonly MachineRow[]): void {
    super.load(rows)
    const ids = [...this.byId.keys(), ...this.routes.keys()]
    const places = Array.from({ length: Math.max(0, ...ids) }, (_, i) => this.at(i + 1))
    this.#known = arrayOf(ids)
    this.#readyStates = arrayOf(places.map((lifecycle) => lifecycle?.ready ?? null))
    this.#heldStates = arrayOf(places.map((lifecycle) => lifecycle?.held ?? null))
    this.#claimPaths = arrayOf(places.map((one) => (one ? `${one.ready}>${one.held}` : null)))
  }
}

const SELECT_ALL = statement(
  (s) => `
  SELECT id, name, version, definition, mark FROM ${s}.machines WHERE ${USABLE} ORDER BY id`,
)

const SELECT = statement(
  (s) => `
  SELECT id, name, version, definition, mark FROM ${s}.machines
  WHERE name = $1 AND version = $2 FOR UPDATE`,
)

const INSERT = statement(
  (s) => `
  INSERT INTO ${s}.machines (name, version, held, definition, mark) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (name, version) DO NOTHING`,
)

const EXTEND = statement((s) => `UPDATE ${s}.machines SET definition = $1, mark = $2 WHERE id = $3`)

/** Registers lifecycles; must be called inside a transaction. */
export async function registerMachines(
  session: Session,
  lifecycles: readonly Lifecycle[],
): Promise<PostgresMachines> {
  // In one order everywhere, because the rows are locked.
  const ordered = lifecycles.toSorted((a, b) =>
    a.name === b.name ? a.version - b.version : a.name < b.name ? -1 : 1,
  )
  const stored = await session.query<MachineRow>(SELECT_ALL)
  for (const lifecycle of ordered) await register(session, stored, lifecycle)
  const machines = new PostgresMachines(lifecycles)
  machines.load(await session.query<MachineRow>(SELECT_ALL))
  machines.assertMappings()
  return machines
}

/** Asks first: an insert that finds its row there already would use up a number all the same. */
async function register(
  session: Session,
  stored: readonly MachineRow[],
  lifecycle: Lifecycle,
): Promise<void> {
  const { name, version, held } = lifecycle
  const seen = stored.find((row) => row.name === name && row.version === version)
  if (seen !== undefined && definitionAfter(seen, lifecycle) === undefined) return
  if (seen === undefined) {
    const own = definitionOf(lifecycle)
    await session.query(INSERT, [name, version, held, own, machineMark(own)])
  }
  const [row] = await session.query<MachineRow>(SELECT, [name, version])
  if (row === undefined) return
  const definition = definitionAfter(row, lifecycle)
  if (definition === undefined) return
  await session.query(EXTEND, [definition, machineMark(definition), row.id])
}

/** Every version that was ever registered. */
export function listMachines(session: Session): Promise<MachineRow[]> {
  return session.query<MachineRow>(SELECT_ALL)
}

const SELECT_LAST = statement((s) => `SELECT max(id) AS id FROM ${s}.machines WHERE ${USABLE}`)

/** Takes over versions that other processes have registered since. */
export async function refreshMachines(session: Session, machines: PostgresMachines): Promise<void> {
  const [last] = await session.query<{ id: number | null }>(SELECT_LAST)
  if ((last?.id ?? 0) === machines.lastId) return
  machines.load(await session.query<MachineRow>(SELECT_ALL))
}

const SELECT_RAW = statement(
  (s) => `
  SELECT id::text AS id, name, version::text AS version, held, definition, mark
  FROM ${s}.machines ORDER BY machines.id`,
)

const SELECT_TAKEN = statement((s) => `SELECT DISTINCT machine AS n FROM ${s}.jobs`)

/** Rows of lifecycles that are not as the code of this process has them. */
export async function findMachineFaults(
  session: Session,
  machines: PostgresMachines,
): Promise<MachineFault[]> {
  const rows = await session.query<RawMachine>(SELECT_RAW)
  const number = (lifecycle: Lifecycle) => machines.idOf(lifecycle)
  const find = (taken: number[]) => machineFaults(rows, machines.own, number, taken)
  // Only a row that needs a number has to know which ones jobs refer to.
  if (find([]).length === 0) return []
  const taken = await session.query<{ n: number }>(SELECT_TAKEN)
  return find(taken.map(({ n }) => n))
}

const RESTORE = statement(
  (s) => `
  UPDATE ${s}.machines SET id = $1, name = $2, version = $3, held = $4, definition = $5,
    mark = $6
  WHERE id = $7::int`,
)

const RESTORE_LOST = statement(
  (s) => `
  INSERT INTO ${s}.machines (id, name, version, held, definition, mark)
  VALUES ($1, $2, $3, $4, $5, $6)`,
)

/** Makes the row of a lifecycle what the code of this process says. */
export async function restoreMachine(
  session: Session,
  machines: PostgresMachines,
  { lifecycle, row, number, definition }: MachineFault,
): Promise<void> {
  const { name, version, held } = lifecycle
  const values = [number, name, version, held, definition, machineMark(definition)]
  if (row === null) await session.query(RESTORE_LOST, values)
  else await session.query(RESTORE, [...values, row])
  machines.load(await session.query<MachineRow>(SELECT_ALL))
}
