// The number that every random choice of the tests comes from: properties of fast-check (setup.ts),
// random damage, simulated histories, and what processes under load do. It is fixed, so that a
// change fails only for defects that it brings. `PAWL_TEST_SEED=<n>` is another one, and
// `PAWL_TEST_SEED=random` a new one for each run, which vitest.config.ts draws.
//
// Not repeatable by it: real time, the ids and the spread of retries of real processes, and which
// of several processes is quicker.

export const testSeed = Number(process.env.PAWL_TEST_SEED ?? 1)

/** Far more than any test plays, so that two seeds have no histories in common. */
const STEP = 100_000

/** The seed of history `n`, counted from 1, of a test that plays several. */
export function seedOf(n: number): number {
  return (testSeed - 1) * STEP + n
}
