/** The errors of the test kit. */
import { PawlError } from '../core/errors.ts'
import type { DrainFailure } from './drained.ts'

/** How many failures a message lists. */
const LISTED_MAX = 20

import { span } from '../core/format.ts'

/** A drain waits for a handler that does not end. */
export class DrainStuck extends PawlError {
  readonly code = 'E_DRAIN_STUCK'
  constructor(jobIds: readonly string[], waitedMs: number) {
    super(
      `${jobIds.join(', ') || 'The worker'} has not ended; nothing happened for ${span(waitedMs)}`,
      'Resolve what the handler waits for. If it waits for time to pass, call advance() during ' +
        'the drain. If it is only slow, set a longer `patience` for drain().',
      { jobIds, waitedMs },
    )
  }
}

/** Attempts of a drain failed; `cause` is what the first handler threw. */
export class DrainFailed extends PawlError {
  readonly code = 'E_DRAIN_FAILED'
  readonly failures: readonly DrainFailure[]
  constructor(failures: readonly DrainFailure[]) {
    const lines = failures.slice(0, LISTED_MAX).map(({ type, jobId, attempt, message, error }) => {
      const why = error instanceof Error ? (error.stack ?? error.message) : message
      return `${type} ${jobId}, attempt ${attempt}: ${why}`
    })
    const more = failures.length > LISTED_MAX ? [`and ${failures.length - LISTED_MAX} more`] : []
    super(
      [`Attempts failed: ${failures.length}`, ...lines, ...more].join('\n'),
      'Mend the handler. If the failure is what the test expects, leave throwOnFailure out and ' +
        'look at `failures` of the result.',
      { jobIds: [...new Set(failures.map(({ jobId }) => jobId))] },
    )
    this.failures = failures
    this.cause = failures[0]?.error
  }
}

/** The process of a test died at a point that the test had chosen. */
export class ProcessDied extends PawlError {
  readonly code = 'E_PROCESS_DIED'
  constructor(cause: string) {
    super(`The process died: ${cause}`, 'The test asked for it; continue with another drain.', {
      cause,
    })
  }
}
