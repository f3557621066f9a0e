/**
 * The look at a store when it is opened. It costs a few milliseconds, however much is in the store:
 *
 *   - whether it still has the constraints and triggers that keep its promises. If something is
 *     missing, nobody can say what was written meanwhile, so ids, states and attempts of all jobs
 *     are counted, too;
 *   - whether the next jobs of each lane can be read and trusted: ids, states against the machines,
 *     attempts, lanes, the number of the last fact. Single jobs that cannot are logged, and do not
 *     keep the store from working: claims never take them, and workers set them aside.
 *
 * A store with findings takes in work and settles what is held, but gives out nothing: running jobs
 * on damaged data could make it worse. It looks again every few seconds, so that workers go on by
 * themselves once the doctor has mended it.
 */
import type { Logger } from '../core/ports.ts'
import { StoreDamaged } from './errors.ts'
import type { Store } from './store.ts'
import { wrapStore } from './wrap-store.ts'

/** What a store does about findings at its opening. */
export interface SoundnessOptions {
  /** 'block' unless said otherwise: nothing is claimed. 'warn' only tells the logger. */
  readonly onFindings?: 'block' | 'warn' | undefined
  readonly logger?: Logger
}

/** A blocked store looks again this often at most. */
const LOOK_AGAIN_MS = 5000

/** The store itself where it is sound; else one that keeps claims back, or warns. */
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

/** What is wrong with a store, as far as it shows at once. */
async function faultsOf({ examination }: Store): Promise<string[]> {
  const drift = await examination.drift()
  if (drift.length === 0) return []
  const objects = drift.map(({ kind, name, problem }) => `${kind} ${name} is ${problem}`)
  // Where a table is gone nothing can be counted, and the doctor must still get in.
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
