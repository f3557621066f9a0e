/** What the test kit itself can refuse. One class, one code each. */
import { PawlError } from '../core/errors.ts'

/** A drain waits for a handler that does not end. */
export class DrainStuck extends PawlError {
  readonly code = 'E_DRAIN_STUCK'
  constructor(jobIds: readonly string[], waitedMs: number) {
    super(
      `Nothing has happened for ${waitedMs} ms, and ${jobIds.join(', ') || 'the worker'} goes on`,
      'End what the handler waits for. If it waits for time to pass, call advance() while the ' +
        'drain runs; if it is only slow, give drain() more patience.',
      { jobIds, waitedMs },
    )
  }
}

/** The process of a test died at a place that the test had chosen. */
export class ProcessDied extends PawlError {
  readonly code = 'E_PROCESS_DIED'
  constructor(cause: string) {
    super(`The process died: ${cause}`, 'The test asked for it; let another drain go on.', {
      cause,
    })
  }
}
