/**
 * The lifecycles that a store knows by number. Each process registers its own when it opens the
 * store; jobs refer to them by number, and a number that this process does not know stays untouched
 * (rule G9): it is never guessed.
 */
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { type Session, statement } from './connect.ts'
import { arrayOf } from './rows-at-once.ts'

/** The lifecycles of this process, by their number in the store and back. */
export interface Machines {
  readonly byId: ReadonlyMap<number, Lifecycle>
  /** Their numbers as an array, for statements that must leave others alone. */
  readonly known: string
  /** At the place of each number: the held state, and the path of a claim. */
  readonly heldStates: string
  readonly claimPaths: string
  /** Nothing for a lifecycle that was not registered. */
  idOf(lifecycle: Lifecycle): number | undefined
  find(name: string, version: number): Lifecycle | undefined
}

const SELECT = statement((s) => `SELECT id FROM ${s}.machines WHERE name = $1 AND version = $2`)

const INSERT = statement(
  (s) => `
  INSERT INTO ${s}.machines (name, version, held, definition) VALUES ($1, $2, $3, $4)
  ON CONFLICT (name, version) DO NOTHING`,
)

/** Registers lifecycles; must be called inside a transaction. */
export async function registerMachines(
  session: Session,
  lifecycles: readonly Lifecycle[],
): Promise<Machines> {
  const byId = new Map<number, Lifecycle>()
  const ids = new Map<string, number>()
  for (const lifecycle of lifecycles) {
    const id = await register(session, lifecycle)
    byId.set(id, lifecycle)
    ids.set(`${lifecycle.name} ${lifecycle.version}`, id)
  }
  const places = Array.from({ length: Math.max(0, ...byId.keys()) }, (_, i) => byId.get(i + 1))
  return {
    byId,
    known: arrayOf([...byId.keys()]),
    heldStates: arrayOf(places.map((lifecycle) => lifecycle?.held ?? null)),
    claimPaths: arrayOf(places.map((one) => (one ? `${one.ready}>${one.held}` : null))),
    idOf: ({ name, version }) => ids.get(`${name} ${version}`),
    find: (name, version) => lifecycles.find((own) => own.name === name && own.version === version),
  }
}

/** Asks first: an insert that finds its row there already would use up a number all the same. */
async function register(session: Session, lifecycle: Lifecycle): Promise<number> {
  const { name, version, held } = lifecycle
  const find = () => session.query<{ id: number }>(SELECT, [name, version])
  const [known] = await find()
  if (known !== undefined) return known.id
  const states = Object.fromEntries(lifecycle.roles)
  const definition = JSON.stringify({ states, edges: lifecycle.machine.edges })
  await session.query(INSERT, [name, version, held, definition])
  const [row] = await find()
  return (row as { id: number }).id
}
