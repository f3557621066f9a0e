/**
 * Jobs that a queue has no room or no time for, the same in every store. A job without room is
 * refused, with nothing written. If its lifecycle has a path to fail it for that reason (R2: QUEUED
 * → FAILED), it is accepted and then failed. A job that has waited too long is failed in the same
 * way, or cancelled if there is no such path.
 */
import type { Command } from '../core/job/commands.ts'
import { LANES } from '../core/job/lanes.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Accepted } from './accept.ts'
import { ENGINE } from './contract/requester.ts'
import type { Requester } from './contract/store.ts'
import type { Machines } from './machines.ts'

/** Whether a new job of this lifecycle is accepted although there is no room for it. */
function isFailedWhenFull(lifecycle: Lifecycle): boolean {
  return lifecycle.targets.has('exhaust')
}

/** The numbers of the lifecycles whose jobs are accepted if there is no room for them. */
export function failedWhenFull({ byId }: Pick<Machines, 'byId'>): number[] {
  return [...byId].filter(([, lifecycle]) => isFailedWhenFull(lifecycle)).map(([id]) => id)
}

/** Whether a new job needs room in its queue. */
export function needsRoom({ lane, offer }: Accepted): boolean {
  return lane === LANES.ready && !isFailedWhenFull(offer.item.lifecycle)
}

/** The command that ends a job which has no room or has waited for too long. */
export function shedCommand(lifecycle: Lifecycle): Command {
  return isFailedWhenFull(lifecycle) ? { kind: 'exhaust' } : { kind: 'cancel' }
}

/** Who sheds a job, and why. */
export function shedder(queue: string, bound: 'maxDepth' | 'maxWait'): Requester {
  return { ...ENGINE, metadata: { shed: bound, queue } }
}
