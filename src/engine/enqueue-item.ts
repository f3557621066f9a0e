/** Builds a store's enqueue item from a job type, an input and the options of one job. */
import type { JsonBounds } from '../core/canonical-json.ts'
import { toMs } from '../core/durations.ts'
import { readPriority } from '../core/job/priority.ts'
import type { IdSource } from '../core/ports.ts'
import { encodeValue } from '../core/values.ts'
import type { EnqueueItem } from '../stores/contract/store.ts'
import { admissionOf } from './admission-options.ts'
import { AfterMissing, InputInvalid } from './errors.ts'
import { type AnyJob, checkJobType } from './job-types.ts'
import { type EnqueueOptions, runAtOf } from './options.ts'
import { acceptsAll, validate } from './schema.ts'

export interface ItemContext {
  readonly ids: IdSource
  readonly bounds: JsonBounds
  /** Returns the store's time; delays start from it. */
  readonly now: () => number
  /** True for a job of a flow, which may come after others. */
  readonly isNode?: boolean
}

type Mutable<T> = { -readonly [Field in keyof T]: T[Field] }

/**
 * Throws `InputInvalid` if the schema rejects the input, `CommandInvalid` for a bad option, and
 * `AfterMissing` if only a flow can make the job. Returns no promise if no schema checks it: a call
 * with many jobs would wait for each of them.
 */
export function itemOf(
  definition: AnyJob,
  input: unknown,
  options: Omit<EnqueueOptions, 'tx'>,
  context: ItemContext,
): EnqueueItem | Promise<EnqueueItem> {
  checkJobType(definition)
  const { name, schema, groups } = definition
  if (groups !== undefined && context.isNode !== true) {
    throw new AfterMissing(
      name,
      groups.map((group) => group.name),
    )
  }
  if (acceptsAll(schema)) return buildItem(definition, input, input, options, context)
  return validate(schema, input).then((checked) => {
    if (!checked.ok) throw new InputInvalid(name, checked.why)
    return buildItem(definition, input, checked.value, options, context)
  })
}

/** `value` is the input as its schema returned it. Fields are set one by one: spreads are slow. */
function buildItem(
  definition: AnyJob,
  input: unknown,
  value: unknown,
  options: Omit<EnqueueOptions, 'tx'>,
  { ids, bounds, now }: ItemContext,
): EnqueueItem {
  const { key, onConflict, tags, hold, timeout, deadline } = options
  const { priority, aheadMs } =
    options.priority === undefined ? definition : readPriority(options.priority)
  const timeoutMs = timeout === undefined ? definition.timeoutMs : toMs(timeout, 'timeout')
  const runAt = runAtOf(options, now)
  const limitKeys = definition.limits?.keysOf(value)
  const { name: type, queue, admission: rules, lifecycle, policy } = definition
  const admission = admissionOf(type, rules, value, { runAt, hold })
  const text = encodeValue(input, bounds)
  const command: Mutable<EnqueueItem['command']> = {
    jobId: options.jobId ?? ids.next(),
    type,
    queue,
  }
  if (priority !== 0) command.priority = priority
  if (aheadMs > 0) command.aheadMs = aheadMs
  if (key !== undefined) command.key = key
  if (tags !== undefined) command.tags = tags
  if (hold !== undefined) command.hold = hold
  if (timeoutMs !== undefined) command.timeoutMs = timeoutMs
  if (runAt !== undefined) command.runAt = runAt
  if (deadline !== undefined) command.deadlineAt = deadline.getTime()
  if (limitKeys !== undefined) command.limitKeys = limitKeys
  if (policy !== undefined) command.policy = policy
  const item: Mutable<EnqueueItem> = { lifecycle, input: text, command }
  if (onConflict !== undefined) item.onConflict = onConflict
  if (admission !== undefined) item.admission = admission
  return item
}
