/** Retry options: a retry policy with durations such as `'30s'`. */
import { DefinitionInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import type { RetryPolicy } from '../core/retry.ts'
import { type Duration, toMs } from './durations.ts'

/** The name of a back-off, or the parts of a policy that differ from the default. */
export type RetryOptions =
  | RetryPolicy['backoff']
  | (Omit<Partial<RetryPolicy>, 'delayMs' | 'delayMaxMs'> & {
      readonly delay?: Duration
      readonly delayMax?: Duration
    })

/** The values are checked with the whole policy. */
const RETRY: FieldChecks<Exclude<RetryOptions, string>> = {
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
    ...(delay !== undefined && { delayMs: toMs(delay, 'retry.delay') }),
    ...(delayMax !== undefined && { delayMaxMs: toMs(delayMax, 'retry.delayMax') }),
  }
}
