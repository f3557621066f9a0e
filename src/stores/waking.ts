/** Whether something may have become ready for those who wait, by what a verb has written. */

/** Verbs that make nothing ready, like all those of runs; their commits wake nobody. */
const SILENT_VERBS = [
  ...['claim', 'heartbeat', 'claimEffects', 'reportWorker', 'removeWorker'],
  ...['takeDuty', 'leaveDuty', 'recount', 'restore', 'seal', 'note'],
]

/** Whether others are to be woken after a verb; not where it found nothing to do. */
export function mayWake(verb: string, result: unknown): boolean {
  const isNothing = result === 0 || (Array.isArray(result) && result.length === 0)
  return !SILENT_VERBS.includes(verb) && !verb.startsWith('runs.') && !isNothing
}
