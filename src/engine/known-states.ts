/**
 * States in filters. Unlike types, queues and tags they are a closed set: those of the lifecycles
 * that this process has, and of those that the store has from others. A state that no lifecycle has
 * is a mistake, and would otherwise match nothing without a word.
 */
import { CommandInvalid } from '../core/errors.ts'
import { restoreLifecycle } from '../core/lifecycles/definition.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Store } from '../stores/contract/store.ts'

/** Throws `CommandInvalid` for a state that no known lifecycle has. */
export async function checkStates(
  store: Pick<Store, 'listMachines'>,
  lifecycles: readonly Lifecycle[],
  states: Readonly<Record<string, unknown>>,
): Promise<void> {
  const asked = Object.entries(states).filter(([, state]) => typeof state === 'string')
  const own = new Set(lifecycles.flatMap(statesOf))
  const unknown = asked.filter(([, state]) => !own.has(state as string))
  if (unknown.length === 0) return
  for (const { name, version, definition } of await store.listMachines()) {
    const lifecycle = restoreLifecycle(name, version, definition)
    // The states of a lifecycle whose row is damaged are not known here.
    if (lifecycle === undefined) return
    for (const state of statesOf(lifecycle)) own.add(state)
  }
  const wrong = unknown.find(([, state]) => !own.has(state as string))
  if (wrong === undefined) return
  const known = [...own].sort().join(', ')
  throw new CommandInvalid(wrong[0], `must be a state of a lifecycle, one of ${known}`)
}

function statesOf({ machine }: Lifecycle): string[] {
  return [...machine.states.keys()]
}
