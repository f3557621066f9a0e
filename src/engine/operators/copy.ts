import type { Job } from '../../core/job/job.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { readKeys } from '../../core/limits/keys.ts'
import type { EnqueueItem } from '../../stores/contract/store.ts'

interface CopyParts {
  readonly id: string
  readonly input: string
  readonly lifecycle: Lifecycle
  readonly now: number
}

/** The key stays with the original. A deadline that has passed would fail the copy at once. */
export function copyOf(job: Job, { id, input, lifecycle, now }: CopyParts): EnqueueItem {
  const { deadlineAt, timeoutMs, limitKey, policy } = job
  const isInTime = deadlineAt !== null && deadlineAt > now
  return {
    lifecycle,
    input,
    command: {
      jobId: id,
      type: job.type,
      queue: job.queue,
      priority: job.priority,
      aheadMs: job.aheadMs,
      tags: job.tags,
      retryOf: job.id,
      ...(limitKey !== null && { limitKeys: readKeys(limitKey) }),
      ...(timeoutMs !== null && { timeoutMs }),
      ...(isInTime && { deadlineAt }),
      ...(policy !== null && { policy }),
    },
  }
}
