/**
 * Work items that jobs do, on any machine with a worker. The key of the job is made of the run, the
 * item and its inputs, so a run that is resumed after a crash finds the job that it had enqueued,
 * and waits for it.
 *
 * An item that runs again, because it failed or is forced, needs a new job. So the jobs of an item
 * are numbered: `<effect key>#<n>`, from 1.
 */
import type { StartBecause } from '../core/run/events.ts'
import type { JobHandle } from '../engine/job-handle.ts'
import type { Pawl } from '../engine/pawl.ts'
import { QueueMissing, WorkJobFailed } from './errors.ts'
import { sha256Of } from './journal/hash.ts'
import type { ItemContext, JobWork } from './node-context.ts'
import type { Doer } from './work-items.ts'

const JOBS_MAX = 1000
const KEY_MAX = 255

/** Makes a doer that enqueues a job and waits for its result. */
export function jobDoer<Input, Output>(
  pawl: Pawl | undefined,
  { job, input }: JobWork<Input, Output>,
): Doer<Output> {
  return {
    worker: `queue:${job.queue}`,
    run: async (item, because) => {
      if (pawl === undefined) throw new QueueMissing(item.key)
      const handle = await enqueue(pawl, { job, input }, item, because)
      const outcome = await handle.result({ signal: item.signal })
      if (outcome.kind === 'succeeded') return outcome.output
      const error = outcome.kind === 'cancelled' ? null : outcome.error
      const why = error?.message ?? outcome.reason ?? 'no reason was given'
      throw new WorkJobFailed(item.key, handle.id, outcome.kind, why)
    },
  }
}

async function enqueue<Input, Output>(
  pawl: Pawl,
  { job, input }: JobWork<Input, Output>,
  { key, effectKey, signal }: ItemContext,
  because: StartBecause,
): Promise<JobHandle<Output>> {
  for (let n = 1; n <= JOBS_MAX; n++) {
    signal.throwIfAborted()
    const handle = await pawl.enqueue(job, input, { key: jobKeyOf(effectKey, n) })
    if (handle.created || !(await isSpent(handle, because))) return handle
  }
  throw new WorkJobFailed(key, '-', 'failed', `it has had ${JOBS_MAX} jobs`)
}

/** Returns true if the job has ended and the item needs a new one. */
async function isSpent(handle: JobHandle, because: StartBecause): Promise<boolean> {
  const { outcome } = await handle.get()
  if (because === 'forced') return outcome !== null
  return because === 'failed' && outcome !== null && outcome !== 'succeeded'
}

function jobKeyOf(effectKey: string, n: number): string {
  const key = `${effectKey}#${n}`
  return key.length <= KEY_MAX ? key : sha256Of(key)
}
