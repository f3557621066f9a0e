// The test kit, with what only our own tests of the engine need: what a worker goes through.
import {
  createTestPawl,
  type TestEnvironment,
  type TestPawl,
  type TestPawlOptions,
} from 'pawl/testing'
import { onTestFinished } from 'vitest'
import { createPawl } from '../../src/engine/create-pawl.ts'
import type { JobDefinition } from '../../src/engine/define-job.ts'
import type { Pawl } from '../../src/engine/pawl.ts'
import type { WorkOptions } from '../../src/engine/work-options.ts'
import type { JobWorker } from '../../src/engine/worker/worker.ts'
import type { Store } from '../../src/stores/contract/store.ts'

// biome-ignore lint/suspicious/noExplicitAny: any kind of job
type AnyJob = JobDefinition<any, any, any, any, any>
type Event = Parameters<NonNullable<WorkOptions['onEvent']>>[0]

/** What a test of the engine works with. */
export class EngineBench {
  readonly test: TestPawl
  readonly environment: TestEnvironment
  readonly store: Store
  readonly pawl: Pawl
  readonly events: Event[] = []

  private constructor(test: TestPawl, pawl: Pawl) {
    this.test = test
    this.environment = test.environment
    this.store = test.store
    this.pawl = pawl
  }

  /** Opens a store and Pawl on it; `wrap` may put something in between. */
  static async open(
    jobs: readonly AnyJob[],
    wrap: (store: Store) => Store = (store) => store,
    options: Omit<TestPawlOptions, 'jobs' | 'wrap'> = {},
  ): Promise<EngineBench> {
    const test = await createTestPawl({ ...options, jobs, wrap })
    onTestFinished(() => test.close())
    return new EngineBench(test, test.pawl)
  }

  /** Another process on the store of a bench, under the same time. */
  static async openOn(
    { test, store, environment }: EngineBench,
    jobs: readonly AnyJob[],
  ): Promise<EngineBench> {
    const pawl = await createPawl({ store, jobs, environment })
    onTestFinished(() => test.finish(pawl.close()))
    return new EngineBench(test, pawl)
  }

  /** Starts a worker whose events are kept. */
  work(options: WorkOptions = {}): Promise<JobWorker> {
    const onEvent = (event: Event) => {
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
  until(condition: () => boolean | Promise<boolean>, stepMs?: number): Promise<void> {
    return this.test.until(condition, stepMs)
  }

  /** Lets so much time pass. */
  async pass(ms: number, stepMs?: number): Promise<void> {
    const end = this.environment.clock.now() + ms
    await this.until(() => this.environment.clock.now() >= end, stepMs)
  }

  /** Moves the time on until a promise has settled. */
  finish<T>(promise: Promise<T>): Promise<T> {
    return this.test.finish(promise)
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
