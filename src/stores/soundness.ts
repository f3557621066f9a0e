/**
 * The check of a store when it is opened. It takes a few milliseconds, whatever the size of the
 * store:
 *
 *   - whether it still has the constraints and triggers that keep its promises. If one is missing,
 *     rows may have been written without it, so ids, states and attempts of all jobs are counted;
 *   - whether the next jobs of each lane can be read and trusted: ids, states against the machines,
 *     attempts, lanes, the number of the last fact. Single damaged jobs are logged and do not stop
 *     the store: claims never take them, and workers set them aside.
 *
 * A store with findings accepts jobs and reports, but claims return nothing: running jobs on
 * damaged data could make it worse. It checks again every few seconds, so that workers go on when
 * the doctor has repaired it.
 */
import type { Logger } from '../core/ports.ts'
import type { Store } from './contract/store.ts'
import { StoreDamaged } from './errors.ts'
import { wrapStore } from './wrap-store.ts'

/** What a store does if the check at its opening finds damage. */
export interface SoundnessOptions {
  /**
   * What to do if constraints or triggers are missing: 'block' refuses claims, 'warn' only writes
   * to the log.
   * @defaultValue `'block'`
   */
  readonly onFindings?: 'block' | 'warn' | undefined
  /**
   * Receives what the check found.
   * @defaultValue none
   */
  readonly logger?: Logger
}

/** A blocked store looks again this often at most. */
const LOOK_AGAIN_MS = 5000

/** Returns the store itself if it is sound; else one that refuses claims, or warns. */
export async function lookAtOpening(
  store: Store,
  { onFindings = 'block', logger }: SoundnessOptions,
): Promise<Store> {
  let faults = await faultsOf(store)
  if (faults.length === 0) {
    await tellOfDamage(store, logger)
    return store
  }
  logger?.error(
    { event: 'store.damaged', findings: faults },
    `The store is damaged: ${faults.join('; ')}. Run "pawl doctor --full --plan"`,
  )
  if (onFindings === 'warn') return store
  let seenAt = store.now()
  const isSound = async () => {
    if (faults.length > 0 && store.now() - seenAt >= LOOK_AGAIN_MS) {
      seenAt = store.now()
      faults = await faultsOf(store)
    }
    return faults.length === 0
  }
  return wrapStore(store, {
    async claim(request) {
      if (await isSound()) return store.claim(request)
      throw new StoreDamaged(faults)
    },
    async settle(settlements, next) {
      return store.settle(settlements, (await isSound()) ? next : undefined)
    },
  })
}

const TOLD_MAX = 10

async function tellOfDamage({ examination }: Store, logger: Logger | undefined): Promise<void> {
  const damaged = await examination.damaged()
  for (const { details, message } of damaged.slice(0, TOLD_MAX)) {
    const fields = { event: 'store.job_damaged', job_id: details.jobId, found: damaged.length }
    logger?.error(fields, `${message}. Workers set it aside. Run "pawl doctor --full --plan"`)
  }
}

/** Returns the findings about a store. */
async function faultsOf({ examination }: Store): Promise<string[]> {
  const drift = await examination.drift()
  if (drift.length === 0) return []
  const objects = drift.map(({ kind, name, problem }) => `${kind} ${name} is ${problem}`)
  // If a table is missing nothing can be counted, and the doctor must still be able to work.
  const isTableGone = drift.some(({ kind, problem }) => kind === 'table' && problem === 'missing')
  if (isTableGone) return objects
  const { duplicates, unknownStates, negativeAttempts } = await examination.scan()
  return [
    ...objects,
    ...(duplicates > 0 ? [`${duplicates} ids are not unique`] : []),
    ...unknownStates.map((state) => `there are jobs in the unknown state "${state}"`),
    ...(negativeAttempts > 0 ? [`${negativeAttempts} jobs have negative counts`] : []),
  ]
}
