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
  'test/http/under-attack',
  'test/interleavings/postgres-groups',
  'test/interleavings/postgres-limits',
  'test/interleavings/postgres-pairs',
  'test/model',
  'test/package/first-project',
  'test/package/only-http',
  'test/postgres/faults/contention',
  'test/postgres/faults/failover',
  'test/postgres/faults/partition',
  'test/postgres/faults/under-fire',
  'test/runs/processes/system-calls',
  'test/sim/canaries',
  'test/support/postgres/pgbouncer',
  'test/support/postgres/server',
]

/** Runs in both; in `npm run prove` it repeats more (`thorough`), or uses more processes. */
const BOTH = [
  'test/cli/*',
  'test/contract/postgres',
  'test/contract/sqlite',
  'test/crash/kill',
  'test/dashboard/hostile',
  'test/doctor/corruption',
  'test/doctor/fuzz',
  'test/doctor/live-damage',
  'test/engine/boundary-property',
  'test/engine/bulk',
  'test/engine/processes/admissions',
  'test/engine/processes/crash-points',
  'test/engine/many-schedules',
  'test/engine/processes/orders',
  'test/engine/processes/schedules',
  'test/http/worker-contract',
  'test/interleavings/sqlite',
  'test/processes/limits',
  'test/processes/load',
  'test/runs/explain-property',
  'test/runs/processes/kill',
  'test/sim/simulator',
]

const paths = (names: readonly string[]) => names.map((name) => `${name}.test.ts`)

/** The files that `npm test` leaves out. */
export const proveOnly: readonly string[] = paths(PROVE_ONLY)
/** The files of `npm run prove`. */
export const proofs: readonly string[] = paths([...PROVE_ONLY, ...BOTH])

/** Whether this process is part of `npm run prove`. */
export const isProof = process.env.PAWL_TEST_EXTENT === 'prove'

/** Every second case from the given one on in `npm test`, all of them in `npm run prove`. */
export function half<T>(cases: readonly T[], first: number): T[] {
  return cases.filter((_, i) => isProof || i % 2 === first % 2)
}

/** How often to repeat: the first in `npm test`, the second in `npm run prove`. */
export function thorough(quick: number, long: number): number {
  return isProof ? long : quick
}
