/**
 * How jobs of schedules are accepted. Their inputs were checked when the schedule was stored, so
 * the bounds of the process that makes the job do not apply. Their lifecycles are those of the
 * store, so that a process without the code of a lifecycle can make its jobs.
 */
import type { Environment } from '../environment/system.ts'
import type { Acceptance } from './accept.ts'
import type { Machines } from './machines.ts'

const UNBOUNDED = { depthMax: Number.MAX_SAFE_INTEGER, bytesMax: Number.MAX_SAFE_INTEGER }

/** What decisions on jobs of schedules need. */
export function scheduleAcceptance(environment: Environment, machines: Machines): Acceptance {
  return {
    environment,
    payloadBounds: UNBOUNDED,
    machines: {
      idOf: ({ name, version }) => machines.stored(name, version).machine,
      missing: (lifecycle) => machines.missing(lifecycle),
    },
  }
}
