/**
 * The named points at which a test can let a process die. Every verb of the store that writes has
 * three, around its transaction:
 *
 *   begun       nothing is written
 *   written     everything is written but not committed, so all of it is rolled back
 *   committed   everything is committed, but the process does not receive the answer
 */
import { type CrashingVerb, crashingVerbs } from '../stores/verb-table.ts'

const MOMENTS = ['begun', 'written', 'committed'] as const

/** A point at which a process can die: a verb of the store, and the stage of its transaction. */
export type CrashPoint = `${CrashingVerb}.${(typeof MOMENTS)[number]}`

/** All crash points. */
export const CRASH_POINTS: readonly CrashPoint[] = crashingVerbs().flatMap((verb) =>
  MOMENTS.map((moment) => `${verb}.${moment}` as const),
)
