// An engine on a store in memory, under a time that only the test moves.
import { type TestEnvironment, testEnvironment } from 'pawl/testing'
import { onTestFinished } from 'vitest'
import type { JobDefinition } from '../../src/engine/define-job.ts'
import { createPawl, type Pawl, type WorkOptions } from '../../src/engine/pawl.ts'
import type { JobWorker, WorkerEvent } from '../../src/engine/worker.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import type { Store } from '../../src/stores/store.ts'

// biome-ignore lint/suspicious/noExplicitAny: any kind of job
type AnyJob = JobDefinition<any, any, any>

/** What a test of the engine works with. */
export class EngineBench {
  readonly environment: TestEnvironment
  readonly store: Store
  readonly pawl: Pawl
  readonly events: WorkerEvent[] = []

  private constructor(environment: TestEnvironment, store: Store, pawl: Pawl) {
    this.environment = environment
    this.store = store
    this.pawl = pawl
  }

  /** Opens a store and Pawl on it; `wrap` may put something in between. */
  static async open(
    jobs: readonly AnyJob[],
    wrap: (store: Store) => Store = (store) => store,
  ): Promise<EngineBench> {
    const environment = testEnvironment()
    const store = await openSqliteStore({ path: ':memory:', environment })
    const pawl = await createPawl({ store: wrap(store), jobs, environment })
    return EngineBench.#untilTestEnds(environment, store, pawl, () => store.close())
  }

  /** Another process on the store of a bench, under the same time. */
  static async openOn(
    { environment, store }: EngineBench,
    jobs: readonly AnyJob[],
  ): Promise<EngineBench> {
    const pawl = await createPawl({ store, jobs, environment })
    return EngineBench.#untilTestEnds(environment, store, pawl, async () => {})
  }

  static #untilTestEnds(
    environment: TestEnvironment,
    store: Store,
    pawl: Pawl,
    end: () => Promise<void>,
  ): EngineBench {
    const bench = new EngineBench(environment, store, pawl)
    onTestFinished(async () => {
      await bench.finish(pawl.close())
      await end()
    })
    return bench
  }

  /** Starts a worker whose events are kept. */
  work(options: WorkOptions = {}): Promise<JobWorker> {
    const onEvent = (event: WorkerEvent) => {
      this.events.push(event)
    }
    return this.pawl.work({ concurrency: 1, ...options, onEvent })
  }

  /** The states that the worker's slots went through, each as "from → to". */
  get trace(): string[] {
    return this.events.flatMap((event) =>
      event.type === 'state' ? [`${event.from} → ${event.to}`] : [],
    )
  }

  /** Lets happen what needs no time, then moves the time on, until the condition holds. */
  async until(condition: () => boolean | Promise<boolean>, stepMs = 10): Promise<void> {
    for (let step = 0; step < 20_000; step++) {
      for (let turn = 0; turn < 12; turn++) {
        if (await condition()) return
        await new Promise<void>((resolve) => setImmediate(resolve))
      }
      this.environment.advance(stepMs)
    }
    throw new Error('it never came true')
  }

  /** Moves the time on until a promise has settled. */
  async finish<T>(promise: Promise<T>): Promise<T> {
    let settled = false
    const mark = () => {
      settled = true
    }
    promise.then(mark, mark)
    await this.until(() => settled)
    return promise
  }

  /** The state of a job now. */
  async state(id: string): Promise<string | undefined> {
    return (await this.store.get(id))?.state
  }
}

/** A handler that goes on until it is aborted, and tells why. */
export const untilAborted = (reasons: unknown[]) => ({
  run: ({ signal }: { signal: AbortSignal }) =>
    new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => {
        reasons.push(signal.reason)
        reject(signal.reason)
      })
    }),
})
