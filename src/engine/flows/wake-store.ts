/**
 * Wraps a store so that a process that ends a job also wakes the jobs that wait for its end. The
 * verb that ends the job only notes its end; `wake` of the store then releases, parks or ends what
 * waited for it. If the process dies in between, or `wake` fails, a worker does it later
 * (`src/engine/worker/recovery.ts`).
 *
 * Calls that end jobs while another wake runs share the next one.
 */
import { concernsOthers, type FlowTables } from '../../stores/contract/flows.ts'
import type { Answer, OnMoved, Store } from '../../stores/contract/store.ts'
import { wrapStore } from '../../stores/wrap-store.ts'

const BATCH = 1000
/** A chain of jobs that end each other is at most as long as a flow has nodes. */
const BATCHES_MAX = 20_000

/** Wakes jobs until there is nothing to look at. Returns at how many links it has looked. */
export async function wakeAll(flows: FlowTables, batchesMax = BATCHES_MAX): Promise<number> {
  let looked = 0
  for (let batch = 0; batch < batchesMax; batch++) {
    let hasEnded = false
    const seen = await flows.wake(BATCH, (answers) => {
      hasEnded ||= answers.some(concernsOthers)
    })
    looked += seen
    // Jobs that a wake has ended concern others in turn.
    if (seen < BATCH && !hasEnded) break
  }
  return looked
}

/** Returns the store; its verbs resolve after the jobs that wait have been looked at. */
export function wakeStore(store: Store, onError: (error: unknown) => void): Store {
  const waker = new Waker(store.flows, onError)
  /** Waits for the wake if there is one. Other answers pass without a further turn. */
  const after = <T>(result: T, concerns: boolean): T | Promise<T> =>
    concerns ? waker.wake().then(() => result) : result
  const some = <A extends Answer>(answers: A[]) => after(answers, answers.some(concernsOthers))
  const moved = <T>(call: (onMoved: OnMoved) => Promise<T>, onMoved?: OnMoved) => {
    let concerns = false
    const called = call((answers) => {
      concerns ||= answers.some(concernsOthers)
      onMoved?.(answers)
    })
    return called.then((result) => after(result, concerns))
  }
  const verbs: Partial<Store> = {
    applyCommand: (...asked) => store.applyCommand(...asked).then(some),
    cancel: (...asked) => store.cancel(...asked).then(some),
    settle: (...asked) =>
      store
        .settle(...asked)
        .then((settled) => after(settled, settled.answers.some(concernsOthers))),
    commit: (...asked) =>
      store
        .commit(...asked)
        .then((answer) => after(answer, answer.kind === 'done' && answer.job.links !== 0)),
    recover: (limit) => store.recover(limit).then(some),
    shed: (limit) => store.shed(limit).then(some),
    promote: (limit, onMoved) => moved((own) => store.promote(limit, own), onMoved),
    settleEffects: (reports, onMoved) => moved((own) => store.settleEffects(reports, own), onMoved),
  }
  return wrapStore(store, verbs)
}

class Waker {
  readonly #flows: FlowTables
  readonly #onError: (error: unknown) => void
  #running: Promise<void> | undefined
  #next: Promise<void> | undefined

  constructor(flows: FlowTables, onError: (error: unknown) => void) {
    this.#flows = flows
    this.#onError = onError
  }

  /** Resolves when everything was looked at that was written before this call. */
  wake(): Promise<void> {
    if (this.#running === undefined) {
      this.#running = this.#run()
      return this.#running
    }
    // The wake that runs may have looked before the caller's write.
    this.#next ??= this.#running.then(() => {
      this.#next = undefined
      return this.wake()
    })
    return this.#next
  }

  async #run(): Promise<void> {
    try {
      await wakeAll(this.#flows)
    } catch (error) {
      this.#onError(error)
    } finally {
      this.#running = undefined
    }
  }
}
