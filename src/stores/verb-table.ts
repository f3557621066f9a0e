/**
 * Every verb of a store that writes, and how it behaves. The name of a verb is also the first part
 * of the names of its crash points (`src/testing/crash-points.ts`).
 */

interface VerbTraits {
  /**
   * Something may have become ready: after the commit, waiting workers and dispatchers are woken.
   */
  readonly wakes?: true
  /** It writes only if the caller still holds the lease that it names. */
  readonly fenced?: true
  /** Calls of the same moment are written by one statement. */
  readonly grouped?: true
  /** Tests can end a process at its crash points. */
  readonly crashPoints?: true
}

const WAKES = { wakes: true } as const
const CRASHES = { crashPoints: true } as const
const BOTH = { wakes: true, crashPoints: true } as const

/** The verbs, by name. */
const VERBS = {
  open: WAKES,
  enqueue: { ...BOTH, grouped: true },
  applyCommand: BOTH,
  claim: CRASHES,
  settle: { ...BOTH, fenced: true, grouped: true },
  heartbeat: { ...CRASHES, fenced: true },
  commit: { ...BOTH, fenced: true },
  transaction: BOTH,
  claimEffects: CRASHES,
  settleEffects: { ...BOTH, fenced: true },
  retryEffects: BOTH,
  cancel: BOTH,
  promote: BOTH,
  recover: BOTH,
  pauseQueue: BOTH,
  resumeQueue: BOTH,
  limitQueue: BOTH,
  shed: BOTH,
  migrate: WAKES,
  isolate: WAKES,
  reportWorker: CRASHES,
  removeWorker: CRASHES,
  prune: BOTH,
  sweep: CRASHES,
  tend: BOTH,
  freeKeys: CRASHES,
  seal: CRASHES,
  mend: WAKES,
  takeDuty: {},
  leaveDuty: {},
  recount: {},
  restore: {},
  note: {},
  'limits.declare': BOTH,
  'limits.set': WAKES,
  'limits.open': WAKES,
  'schedules.put': BOTH,
  'schedules.fire': BOTH,
  'schedules.pause': CRASHES,
  'schedules.resume': BOTH,
  'schedules.run': BOTH,
  'schedules.backfill': BOTH,
  'schedules.remove': CRASHES,
  'schedules.restore': WAKES,
  'limits.recount': WAKES,
  'limits.restore': WAKES,
  'runs.add': {},
  'runs.hold': {},
  'runs.renew': { fenced: true },
  'runs.release': { fenced: true },
  'runs.append': { fenced: true },
  'runs.snapshot': { fenced: true },
  'runs.content': { fenced: true },
  'runs.failure': { fenced: true },
  'runs.cancel': {},
  'waits.signal': BOTH,
  'waits.wait': { ...BOTH, fenced: true },
  'flows.create': BOTH,
  'flows.add': BOTH,
  'flows.close': BOTH,
  'flows.wake': BOTH,
  'flows.invoke': { ...BOTH, fenced: true },
  'flows.relink': WAKES,
  'tokens.add': {},
  'tokens.revoke': {},
} as const satisfies Readonly<Record<string, VerbTraits>>

/** The name of a verb that writes. */
export type VerbName = keyof typeof VERBS

/** The verbs at whose crash points a test can end a process. */
export type CrashingVerb = {
  [K in VerbName]: (typeof VERBS)[K] extends { readonly crashPoints: true } ? K : never
}[VerbName]

/** Those verbs, in the order of the table. */
export function crashingVerbs(): CrashingVerb[] {
  const names = Object.keys(VERBS) as VerbName[]
  return names.filter((name): name is CrashingVerb => 'crashPoints' in VERBS[name])
}

/** Whether to wake others after a verb; not if it found nothing to do. */
export function mayWake(verb: VerbName, result: unknown): boolean {
  const traits: VerbTraits = VERBS[verb]
  const isNothing = result === 0 || (Array.isArray(result) && result.length === 0)
  return traits.wakes === true && !isNothing
}
