/**
 * The lifecycles that a store knows by number. Each process registers its own when it opens the
 * store; jobs refer to them by number, and a number that this process does not know stays untouched
 * (rule G9): it is never guessed.
 */
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { Connection } from './connect.ts'

/** The lifecycles of this process, by their number in the store and back. */
export interface Machines {
  readonly byId: ReadonlyMap<number, Lifecycle>
  /** Their numbers as JSON, for statements that must leave others alone. */
  readonly known: string
  /** Nothing for a lifecycle that was not registered. */
  idOf(lifecycle: Lifecycle): number | undefined
  find(name: string, version: number): Lifecycle | undefined
}

/** Registers lifecycles; must be called inside a write transaction. */
export function registerMachines(
  connection: Connection,
  lifecycles: readonly Lifecycle[],
): Machines {
  const byId = new Map<number, Lifecycle>()
  const ids = new Map<string, number>()
  for (const lifecycle of lifecycles) {
    const { name, version, held } = lifecycle
    const definition = JSON.stringify({
      states: Object.fromEntries(lifecycle.roles),
      edges: lifecycle.machine.edges,
    })
    connection.run(
      `INSERT INTO pawl_machines (name, version, held, definition) VALUES (?, ?, ?, ?)
       ON CONFLICT (name, version) DO NOTHING`,
      name,
      version,
      held,
      definition,
    )
    const row = connection.get<{ id: number }>(
      'SELECT id FROM pawl_machines WHERE name = ? AND version = ?',
      name,
      version,
    )
    const { id } = row as { id: number }
    byId.set(id, lifecycle)
    ids.set(`${name} ${version}`, id)
  }
  return {
    byId,
    known: JSON.stringify([...byId.keys()]),
    idOf: ({ name, version }) => ids.get(`${name} ${version}`),
    find: (name, version) => lifecycles.find((own) => own.name === name && own.version === version),
  }
}
