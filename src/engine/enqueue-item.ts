/** Builds a store's enqueue item from a job type, an input and the options of one job. */
import { encode, type JsonBounds } from '../core/canonical-json.ts'
import type { IdSource } from '../core/ports.ts'
import type { EnqueueItem } from '../stores/store.ts'
import { toMs } from './durations.ts'
import { InputInvalid } from './errors.ts'
import type { AnyJob } from './job-types.ts'
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
  const checked = await validate(definition.schema, input)
  if (!checked.ok) throw new InputInvalid(definition.name, checked.why)
  const { key, onConflict, priority = definition.priority, tags, hold, timeout } = options
  const timeoutMs = timeout === undefined ? definition.timeoutMs : toMs(timeout, 'timeout')
  const runAt = runAtOf(options, now())
  return {
    lifecycle: definition.lifecycle,
    input: encode(input ?? null, bounds),
    ...(onConflict !== undefined && { onConflict }),
    command: {
      jobId: options.jobId ?? ids.next(),
      type: definition.name,
      queue: definition.queue,
      ...(priority !== 0 && { priority }),
      ...(key !== undefined && { key }),
      ...(tags !== undefined && { tags }),
      ...(hold !== undefined && { hold }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(runAt !== undefined && { runAt }),
      ...(options.deadline !== undefined && { deadlineAt: options.deadline.getTime() }),
      ...(definition.policy !== undefined && { policy: definition.policy }),
    },
  }
}
