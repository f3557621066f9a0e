/**
 * Which job keeps a key that two jobs have. The key belongs to the job that had it first: an
 * enqueue with the same key must find that job, or its work is done twice.
 *
 * While the row of a job is missing, its key is free and a second job can be enqueued with it. The
 * repair restores the first job with its key and removes the key from the second one. If the first
 * has committed and the second has not started, the second is parked, and a person decides.
 */
import { isCommitted, type Job } from '../core/job/job.ts'
import type { Duplicate } from '../stores/contract/examination.ts'
import type { Store } from '../stores/contract/store.ts'
import { JobDamaged } from '../stores/errors.ts'
import type { ExaminedJob } from './examined-job.ts'
import type { Surroundings } from './mend.ts'

export type Keys = Pick<Surroundings, 'keyless' | 'redundant'>

/** Finds the jobs that lose their key. `found` has the rows with the same key, oldest first. */
export async function keysOf(store: Store, found: readonly Duplicate[]): Promise<Keys> {
  const owners = new Map<string, string>()
  const rivals: { readonly id: string; readonly owner: string }[] = []
  for (const { id, type, key } of found) {
    if (key === undefined) continue
    const owner = owners.get(`${type}\n${key}`)
    if (owner === undefined) owners.set(`${type}\n${key}`, id)
    else rivals.push({ id, owner })
  }
  const done = new Set<string>()
  for (const { owner } of rivals) {
    const [job] = await store.getMany([owner])
    if (job !== undefined && isDone(job)) done.add(owner)
  }
  return {
    keyless: new Set(rivals.map(({ id }) => id)),
    redundant: new Set(rivals.filter(({ owner }) => done.has(owner)).map(({ id }) => id)),
  }
}

/** Returns the id of the job that now has the key of a job without a row. */
export async function rivalOf(
  store: Store,
  { stored, folded }: ExaminedJob,
): Promise<string | undefined> {
  if (stored.row !== null || folded === null || folded.key === null) return undefined
  try {
    return (await store.getByKey(folded.type, folded.key))?.id
  } catch (error) {
    if (error instanceof JobDamaged) return String(error.details.jobId)
    throw error
  }
}

/** Decides which of two jobs loses its key. */
export function keysBetween(first: Job, second: Job): Keys {
  const isFirst = first.createdAt <= second.createdAt
  const [owner, other] = isFirst ? [first, second] : [second, first]
  const ids = new Set([other.id])
  return { keyless: ids, redundant: isDone(owner) ? ids : new Set() }
}

function isDone(job: Job): boolean {
  return job.outcome === 'succeeded' || isCommitted(job)
}
