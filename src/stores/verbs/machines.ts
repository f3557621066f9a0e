/**
 * The rows of lifecycles. Each process registers its own lifecycles when it opens a store; jobs
 * refer to them by number. `../machines.ts` says what a process may do with jobs of each number.
 */
import { definitionOf } from '../../core/lifecycles/definition.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { definitionAfter, type MachineFault, machineFaults } from '../machines.ts'
import type { Tx, Verb } from './operations.ts'

/** Registers lifecycles in the given order, and loads every stored version. */
export function* registerMachines(tx: Tx, lifecycles: readonly Lifecycle[]): Verb<void> {
  const stored = yield* tx.machineRows()
  for (const lifecycle of lifecycles) {
    const { name, version } = lifecycle
    const seen = stored.find((row) => row.name === name && row.version === version)
    if (seen !== undefined && definitionAfter(seen, lifecycle) === undefined) continue
    // An insert that finds its row would use up a number on PostgreSQL.
    if (seen === undefined) yield* tx.insertMachine(lifecycle, definitionOf(lifecycle))
    const row = yield* tx.lockMachine(name, version)
    const definition = row && definitionAfter(row, lifecycle)
    if (row && definition !== undefined) yield* tx.setDefinition(row.id, definition)
  }
  yield* loadMachines(tx)
  tx.machines.assertMappings()
}

/** Rows of lifecycles that differ from the code of this process. */
export function* findMachineFaults(tx: Tx): Verb<MachineFault[]> {
  const { machines } = tx
  const rows = yield* tx.rawMachines()
  const number = (lifecycle: Lifecycle) => machines.idOf(lifecycle)
  const find = (taken: readonly number[]) => machineFaults(rows, machines.own, number, taken)
  // Only a row that needs a number has to know which ones jobs refer to.
  return find([]).length === 0 ? [] : find(yield* tx.numbersOfJobs())
}

/** Writes the row of a lifecycle as the code of this process has it. */
export function* restoreMachine(tx: Tx, fault: MachineFault): Verb<void> {
  yield* tx.writeMachine(fault)
  yield* loadMachines(tx)
}

function* loadMachines(tx: Tx): Verb<void> {
  tx.machines.load(yield* tx.machineRows())
}
