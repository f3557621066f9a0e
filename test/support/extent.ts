// How much is tested: what `npm test` runs, and what `npm run prove` adds to it. This is the one
// place that says so; vitest.config.ts and the check of the requirements read it.
//
// `npm test` covers every promise on both databases and with real processes. `npm run prove` runs
// what repeats the same at length, or on further servers, with `PAWL_TEST_EXTENT=prove`.

/** Runs in `npm run prove` alone. */
const PROVE_ONLY = [
  'test/chaos/chaos',
  'test/chaos/syscalls',
  'test/contract/postgres-debian',
  'test/contract/postgres-pooled',
  'test/crash/power',
  'test/engine/processes/outage',
  'test/interleavings/postgres-pairs',
  'test/model',
  'test/postgres/faults/contention',
  'test/postgres/faults/failover',
  'test/postgres/faults/partition',
  'test/postgres/faults/under-fire',
  'test/runs/processes/system-calls',
  'test/sim/canaries',
  'test/support/postgres/pgbouncer',
  'test/support/postgres/server',
]

/** Runs in both; in `npm run prove` it repeats more (`thorough`), or uses processes throughout. */
const BOTH = [
  'test/cli/*',
  'test/contract/sqlite',
  'test/doctor/corruption',
  'test/doctor/fuzz',
  'test/doctor/live-damage',
  'test/interleavings/sqlite',
  'test/processes/load',
  'test/sim/simulator',
]

const paths = (names: readonly string[]) => names.map((name) => `${name}.test.ts`)

/** The files that `npm test` leaves out. */
export const proveOnly: readonly string[] = paths(PROVE_ONLY)
/** The files of `npm run prove`. */
export const proofs: readonly string[] = paths([...PROVE_ONLY, ...BOTH])

/** Whether this process is part of `npm run prove`. */
export const isProof = process.env.PAWL_TEST_EXTENT === 'prove'

/** How often to repeat: the first in `npm test`, the second in `npm run prove`. */
export function thorough(quick: number, long: number): number {
  return isProof ? long : quick
}
