/**
 * The named places at which a test can let a process die. They stand around the transaction of
 * every verb of the store that writes:
 *
 *   begun       nothing of it has happened
 *   written     everything is written, and nothing is committed: all of it is gone
 *   committed   all of it is true, but the process never learns so
 */

const VERBS = [
  'enqueue',
  'tell',
  'claim',
  'settle',
  'heartbeat',
  'commit',
  'claimEffects',
  'settleEffects',
  'retryEffects',
  'cancel',
  'promote',
  'recover',
  'pauseQueue',
  'resumeQueue',
  'limitQueue',
  'shed',
  'reportWorker',
  'removeWorker',
  'prune',
  'seal',
] as const
const MOMENTS = ['begun', 'written', 'committed'] as const

/** A place at which a process can die: a verb of the store, and how far its transaction is. */
export type CrashPoint = `${(typeof VERBS)[number]}.${(typeof MOMENTS)[number]}`

/** All of them. */
export const CRASH_POINTS: readonly CrashPoint[] = VERBS.flatMap((verb) =>
  MOMENTS.map((moment) => `${verb}.${moment}` as const),
)
