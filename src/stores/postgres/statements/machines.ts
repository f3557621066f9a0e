/** The rows of lifecycles. */
import type { Lifecycle } from '../../../core/lifecycles/lifecycle.ts'
import {
  type MachineFault,
  type MachineRow,
  machineMark,
  type RawMachine,
  USABLE,
} from '../../machines.ts'
import type { MachineForms, StatementMachines } from '../../statement-machines.ts'
import { type Session, statement } from '../connect.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'

/** PostgreSQL takes arrays; texts are at the index of their number. */
export const FORMS: MachineForms = {
  numbers: (list) => arrayOf(list),
  texts(byNumber) {
    const length = Math.max(0, ...byNumber.keys())
    return arrayOf(Array.from({ length }, (_, i) => byNumber.get(i + 1) ?? null))
  },
}

/** The order in which lifecycles are registered everywhere, because their rows are locked. */
export function inLockOrder(lifecycles: readonly Lifecycle[]): Lifecycle[] {
  return lifecycles.toSorted((a, b) =>
    a.name === b.name ? a.version - b.version : a.name < b.name ? -1 : 1,
  )
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

const SELECT_LAST = statement((s) => `SELECT max(id) AS id FROM ${s}.machines WHERE ${USABLE}`)

/** Loads versions that other processes have registered since. */
export async function refreshMachines(
  session: Session,
  machines: StatementMachines,
): Promise<void> {
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

export const MACHINES = {
  machineRows: ({ session }: At) => session.query<MachineRow>(SELECT_ALL),
  async insertMachine({ session }: At, { name, version, held }: Lifecycle, definition: string) {
    await session.query(INSERT, [name, version, held, definition, machineMark(definition)])
  },
  async lockMachine({ session }: At, name: string, version: number) {
    const [row] = await session.query<MachineRow>(SELECT, [name, version])
    return row
  },
  async setDefinition({ session }: At, number: number, definition: string) {
    await session.query(EXTEND, [definition, machineMark(definition), number])
  },
  rawMachines: ({ session }: At) => session.query<RawMachine>(SELECT_RAW),
  async numbersOfJobs({ session }: At) {
    return (await session.query<{ n: number }>(SELECT_TAKEN)).map(({ n }) => n)
  },
  async writeMachine({ session }: At, { lifecycle, row, number, definition }: MachineFault) {
    const { name, version, held } = lifecycle
    const values = [number, name, version, held, definition, machineMark(definition)]
    if (row === null) await session.query(RESTORE_LOST, values)
    else await session.query(RESTORE, [...values, row])
  },
}
