/** The view of a job: the field names of its lifecycle's requirement document, and its input. */
import type { Job } from '../core/job/job.ts'
import { type JobView, viewOf } from '../core/job/views.ts'
import { findLifecycle } from '../core/lifecycles/index.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { decodeValue } from '../core/values.ts'
import type { Store } from '../stores/contract/store.ts'
import { versionsOf } from '../stores/versions.ts'

/** Reads the lifecycle from the store if this process does not have it. */
export async function viewIn(
  store: Store,
  lifecycles: readonly Lifecycle[],
  job: Job,
): Promise<JobView> {
  const { stored } = await versionsOf(store, lifecycles)
  const all = [...lifecycles, ...stored]
  const lifecycle = findLifecycle(job.lifecycle, job.lifecycleVersion, all)
  const texts = await store.payloads(job.id)
  return viewOf(lifecycle, job, texts && { input: valueIn(texts.input) })
}

/** Returns the text itself if it is not a value: a payload may be encrypted, for example. */
function valueIn(text: string): unknown {
  try {
    return decodeValue(text)
  } catch {
    return text
  }
}
