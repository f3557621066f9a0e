/** Retry options: a retry policy with durations such as `'30s'`. */

import { type Duration, toMs } from '../core/durations.ts'
import { DefinitionInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import type { PolicyOverrides, RetryPolicy } from '../core/retry.ts'

/** The name of a back-off, or settings that differ from those of the lifecycle. */
export type RetryOptions = RetryPolicy['backoff'] | RetrySettings

/** When failed attempts are repeated. The defaults are those of the lifecycle `standard`. */
export interface RetrySettings {
  /**
   * How many retries a job has; 0 for none.
   * @defaultValue 3
   */
  readonly max?: number
  /**
   * Whether all delays are the same, or each is `factor` times the one before.
   * @defaultValue `'fixed'`
   */
  readonly backoff?: RetryPolicy['backoff']
  /**
   * The delay before the first retry.
   * @defaultValue 1 second
   */
  readonly delay?: Duration
  /**
   * How much longer each delay is than the one before, with exponential back-off.
   * @defaultValue 2
   */
  readonly factor?: number
  /**
   * The longest delay.
   * @defaultValue 1 hour
   */
  readonly delayMax?: Duration
  /**
   * Which part of a delay is random, from 0 to 1, so that jobs that failed together are spread.
   * @defaultValue 1
   */
  readonly jitter?: number
}

/** The values are checked with the whole policy. */
const RETRY: FieldChecks<RetrySettings> = {
  max: unchecked,
  backoff: unchecked,
  factor: unchecked,
  jitter: unchecked,
  delay: unchecked,
  delayMax: unchecked,
}

/** Converts the options to parts of a policy; throws `DefinitionInvalid`. */
export function retryOf(options: RetryOptions): Partial<RetryPolicy> {
  if (typeof options === 'string') return { backoff: options }
  const refuse = (field: string, why: string) => new DefinitionInvalid(field, why)
  checkFields(options, RETRY, { what: 'retry', prefix: 'retry.', refuse })
  const { delay, delayMax, ...rest } = options
  return {
    ...rest,
    ...(delay !== undefined && { delayMs: toMs(delay, 'retry.delay', DefinitionInvalid) }),
    ...(delayMax !== undefined && {
      delayMaxMs: toMs(delayMax, 'retry.delayMax', DefinitionInvalid),
    }),
  }
}

/** The options of a job type that differ from the policy of its lifecycle. */
interface PolicyOptions extends Partial<Omit<PolicyOverrides, 'retry'>> {
  readonly retry?: RetryOptions
}

/** Returns undefined if there are none. */
export function overridesOf(options: PolicyOptions): PolicyOverrides | undefined {
  const { retry, crashesMax, releasesMax, recovery, notify } = options
  const overrides: PolicyOverrides = {
    ...(retry !== undefined && { retry: retryOf(retry) }),
    ...(crashesMax !== undefined && { crashesMax }),
    ...(releasesMax !== undefined && { releasesMax }),
    ...(recovery !== undefined && { recovery }),
    ...(notify !== undefined && { notify }),
  }
  return Object.keys(overrides).length === 0 ? undefined : overrides
}
