/** Builds a store's enqueue item from a job type, an input and the options of one job. */
import type { JsonBounds } from '../core/canonical-json.ts'
import { toMs } from '../core/durations.ts'
import { readPriority } from '../core/job/priority.ts'
import type { IdSource } from '../core/ports.ts'
import { encodeValue } from '../core/values.ts'
import type { EnqueueItem } from '../stores/contract/store.ts'
import { admissionOf } from './admission-options.ts'
import { InputInvalid } from './errors.ts'
import { type AnyJob, checkJobType } from './job-types.ts'
import { type EnqueueOptions, runAtOf } from './options.ts'
import { validate } from './schema.ts'

export interface ItemContext {
  readonly ids: IdSource
  readonly bounds: JsonBounds
  /** Returns the store's time; delays start from it. */
  readonly now: () => number
}

/** Throws `InputInvalid` if the schema rejects the input, `CommandInvalid` for a bad option. */
export async function itemOf(
  definition: AnyJob,
  input: unknown,
  options: Omit<EnqueueOptions, 'tx'>,
  { ids, bounds, now }: ItemContext,
): Promise<EnqueueItem> {
  checkJobType(definition)
  const checked = await validate(definition.schema, input)
  if (!checked.ok) throw new InputInvalid(definition.name, checked.why)
  const { key, onConflict, tags, hold, timeout } = options
  const { priority, aheadMs } =
    options.priority === undefined ? definition : readPriority(options.priority)
  const timeoutMs = timeout === undefined ? definition.timeoutMs : toMs(timeout, 'timeout')
  const runAt = runAtOf(options, now())
  const limitKeys = definition.limits?.keysOf(checked.value)
  const { name: type, admission: rules } = definition
  const admission = admissionOf(type, rules, checked.value, { runAt, hold })
  return {
    lifecycle: definition.lifecycle,
    input: encodeValue(input, bounds),
    ...(onConflict !== undefined && { onConflict }),
    ...(admission !== undefined && { admission }),
    command: {
      jobId: options.jobId ?? ids.next(),
      type: definition.name,
      queue: definition.queue,
      ...(priority !== 0 && { priority }),
      ...(aheadMs > 0 && { aheadMs }),
      ...(key !== undefined && { key }),
      ...(tags !== undefined && { tags }),
      ...(hold !== undefined && { hold }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(runAt !== undefined && { runAt }),
      ...(options.deadline !== undefined && { deadlineAt: options.deadline.getTime() }),
      ...(limitKeys !== undefined && { limitKeys }),
      ...(definition.policy !== undefined && { policy: definition.policy }),
    },
  }
}
