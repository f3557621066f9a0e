/** How an attempt ends because its handler asks for a later one, or closes a throttle. */
import type { Duration } from '../../core/durations.ts'
import { CommandInvalid } from '../../core/errors.ts'
import { type Snooze, Throttled } from '../../core/failure.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import type { AttemptCommand, Fence } from '../../core/job/commands.ts'
import type { Job } from '../../core/job/job.ts'
import { readKeys } from '../../core/limits/keys.ts'
import type { JobDefinition } from '../define-job.ts'

/**
 * Returns the gate of a throttle that the job has passed. Throws `CommandInvalid` if the job type
 * has no throttle of this name.
 */
function throttleGate(
  { limits, name }: JobDefinition,
  { limitKey }: Job,
  throttle: string,
): string {
  const gate = limits?.throttleGate(throttle, readKeys(limitKey))
  if (gate !== undefined) return gate
  throw new CommandInvalid('throttle', `must be the name of a throttle of job type ${name}`)
}

const OPTIONS: FieldChecks<{ readonly retryAfter: Duration }> = { retryAfter: unchecked }

/** The error by which a handler closes a throttle. Throws `CommandInvalid` for a wrong name. */
export function throttledError(
  definition: JobDefinition,
  job: Job,
  throttle: string,
  options: { readonly retryAfter: Duration },
): Throttled {
  checkFields(options, OPTIONS, { what: 'options' })
  throttleGate(definition, job, throttle)
  return new Throttled(throttle, options.retryAfter)
}

/** The command that suspends the job; a throttle is closed until then. */
export function suspendCommand(
  definition: JobDefinition,
  job: Job,
  fence: Fence,
  error: Snooze | Throttled,
  now: number,
): AttemptCommand {
  if (!(error instanceof Throttled)) {
    return { kind: 'suspend', fence, runAt: now + error.delayMs, reason: 'snoozed' }
  }
  const { throttle, retryAfterMs } = error
  const gate = throttleGate(definition, job, throttle)
  return { kind: 'suspend', fence, runAt: now + retryAfterMs, reason: 'throttled', gate }
}
