/**
 * Which job keeps a key that two jobs claim. A key belongs to the job that had it first: whoever
 * enqueues the same key again must get that job, or its work is done twice.
 *
 * While the row of a job is missing, its key is free and a second job can be enqueued under it. The
 * repair restores the first job with its key. The second one gives the key up. If the first has
 * committed and the second has not begun, the second is parked: a person decides whether it runs.
 */
import { isCommitted, type Job } from '../core/job/job.ts'
import { JobDamaged } from '../stores/errors.ts'
import type { Duplicate } from '../stores/examination.ts'
import type { Store } from '../stores/store.ts'
import type { Surroundings } from './mend.ts'
import type { Patient } from './patient.ts'

/** What is known of keys that several jobs have. */
export type Keys = Pick<Surroundings, 'keyless' | 'redundant'>

/** The jobs that must give their key up, among rows that have the same key, oldest first. */
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

/** The id of the job that has the key of a job without a row; nothing if the key is free. */
export async function rivalOf(
  store: Store,
  { dossier, folded }: Patient,
): Promise<string | undefined> {
  if (dossier.row !== null || folded === null || folded.key === null) return undefined
  try {
    return (await store.getByKey(folded.type, folded.key))?.id
  } catch (error) {
    if (error instanceof JobDamaged) return String(error.details.jobId)
    throw error
  }
}

/** What the repair of the second job must know. */
export function keysBetween(first: Job, second: Job): Keys {
  const isFirst = first.createdAt <= second.createdAt
  const [owner, other] = isFirst ? [first, second] : [second, first]
  const ids = new Set([other.id])
  return { keyless: ids, redundant: isDone(owner) ? ids : new Set() }
}

function isDone(job: Job): boolean {
  return job.outcome === 'succeeded' || isCommitted(job)
}
