/** All machines that people can look at: lifecycles, executions, workers and runs. */
import { executionMachine } from '../core/execution.ts'
import type { Lifecycle, Role } from '../core/lifecycles/lifecycle.ts'
import type { Machine } from '../core/machine/define.ts'
import { documentationRun } from '../core/run/machine.ts'
import { workerMachine } from '../core/worker.ts'

/** A machine, and what follows it. */
export interface KnownMachine {
  readonly kind: 'job' | 'execution' | 'worker' | 'run'
  readonly machine: Machine
  /** The roles of its states, if it is a lifecycle. */
  readonly roles?: ReadonlyMap<string, Role>
}

/**
 * Returns the machines of these lifecycles and runs, once for each version, and those of the
 * engine.
 */
export function knownMachines(
  lifecycles: readonly Lifecycle[],
  runs: readonly Machine[] = [],
): KnownMachine[] {
  const byVersion = new Map(lifecycles.map((one) => [`${one.name} ${one.version}`, one]))
  const all = [documentationRun.machine as Machine, ...runs]
  const ofRuns = new Map(all.map((one) => [`${one.name} ${one.version}`, one]))
  return [
    ...[...byVersion.values()].map(({ machine, roles }) => ({
      kind: 'job' as const,
      machine: machine as Machine,
      roles,
    })),
    { kind: 'execution', machine: executionMachine as Machine },
    { kind: 'worker', machine: workerMachine as Machine },
    ...[...ofRuns.values()].map((machine) => ({ kind: 'run' as const, machine })),
  ]
}

/** Returns the machine with this name, the latest version unless one is asked for. */
export function findMachine(
  known: readonly KnownMachine[],
  name: string,
  version?: number,
): KnownMachine | undefined {
  return known
    .filter(({ machine }) => machine.name === name)
    .filter(({ machine }) => version === undefined || machine.version === version)
    .toSorted((a, b) => b.machine.version - a.machine.version)[0]
}
