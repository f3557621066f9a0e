/**
 * The lifecycles that a store knows by number. Each process registers its own when it opens the
 * store; jobs refer to them by number. What a process may do with jobs of each number says
 * `../machines.ts`.
 */
import { definitionOf } from '../../core/lifecycles/definition.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { compareWithStored, type MachineRow, Machines } from '../machines.ts'
import type { Connection } from './connect.ts'

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

const SELECT = 'SELECT id, name, version, definition FROM pawl_machines ORDER BY id'
const INSERT = `
  INSERT INTO pawl_machines (name, version, held, definition) VALUES (?, ?, ?, ?)`
const EXTEND = 'UPDATE pawl_machines SET definition = ? WHERE id = ?'

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
      connection.run(INSERT, name, version, held, definitionOf(lifecycle))
      continue
    }
    const compared = compareWithStored(row.definition, lifecycle)
    if (compared.kind === 'extended') connection.run(EXTEND, compared.definition, row.id)
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

const SELECT_LAST = 'SELECT max(id) AS id FROM pawl_machines'

/** Takes over versions that other processes have registered since. */
export function refreshMachines(connection: Connection, machines: SqliteMachines): void {
  const last = connection.get<{ id: number | null }>(SELECT_LAST)?.id ?? 0
  if (last !== machines.lastId) machines.load(connection.all<MachineRow>(SELECT))
}
