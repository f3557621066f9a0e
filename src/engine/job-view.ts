/** A job in the field names of its lifecycle's document, with what is stored beside its facts. */
import type { Job } from '../core/job/job.ts'
import { type JobView, viewOf } from '../core/job/views.ts'
import { findLifecycle } from '../core/lifecycles/index.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Store } from '../stores/store.ts'
import { versionsOf } from '../stores/versions.ts'

/** The view of a job; a lifecycle that this process does not have is read from the store. */
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

/** What a JSON text holds; a payload may be something else, such as a cipher. */
function valueIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
