/**
 * Decides what happens to a tick while an earlier job of the same schedule is open. A job is open
 * until it has ended or is parked.
 *
 *   skip         no job is made
 *   bufferOne    the tick waits until no job is open; a further tick is skipped
 *   bufferAll    ticks wait, in their order; each is made a job when no job is open
 *   cancelOther  open jobs are cancelled, and the tick waits until none is open; a tick that waits
 *                already is skipped
 *   allowAll     the job is made at once
 */

export const OVERLAPS = ['skip', 'bufferOne', 'bufferAll', 'cancelOther', 'allowAll'] as const

export type Overlap = (typeof OVERLAPS)[number]

/** How many ticks of one schedule may wait. */
export const BUFFER_MAX = 1000

/** What is done with a tick. */
export type OverlapChoice =
  | { readonly kind: 'make' }
  | { readonly kind: 'buffer' }
  | { readonly kind: 'skip'; readonly reason: 'overlap' | 'buffer-full' }
  /** Cancels open jobs, skips ticks that wait, and makes the job if that leaves none open. */
  | { readonly kind: 'cancel' }

/** Chooses for one tick. `open` and `waiting` are the numbers of open jobs and waiting ticks. */
export function chooseOverlap(overlap: Overlap, open: number, waiting: number): OverlapChoice {
  if (overlap === 'allowAll' || (open === 0 && waiting === 0)) return { kind: 'make' }
  switch (overlap) {
    case 'skip':
      return { kind: 'skip', reason: 'overlap' }
    case 'bufferOne':
      return waiting === 0 ? { kind: 'buffer' } : { kind: 'skip', reason: 'overlap' }
    case 'bufferAll':
      return waiting < BUFFER_MAX ? { kind: 'buffer' } : { kind: 'skip', reason: 'buffer-full' }
    case 'cancelOther':
      return { kind: 'cancel' }
  }
}
