/** The errors of the test kit. */
import { PawlError } from '../core/errors.ts'

/** A drain waits for a handler that does not end. */
export class DrainStuck extends PawlError {
  readonly code = 'E_DRAIN_STUCK'
  constructor(jobIds: readonly string[], waitedMs: number) {
    super(
      `${jobIds.join(', ') || 'The worker'} has not ended, and nothing happened for ${waitedMs} ms`,
      'Resolve what the handler waits for. If it waits for time to pass, call advance() during ' +
        'the drain. If it is only slow, set a longer `patience` for drain().',
      { jobIds, waitedMs },
    )
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
