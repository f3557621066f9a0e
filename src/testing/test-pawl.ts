/**
 * Pawl for the tests of those who use it: a store in memory, a time that only the test moves,
 * chance and ids that are the same in every run, and no threads.
 *
 * Nothing runs until the test says so. `drain` starts a worker, lets it work off everything that is
 * ready, and stops it; it is the same worker that runs in production, so retries, budgets, fences
 * and commits are the real ones. `advance` moves the time and lets become ready what is due.
 *
 * The test enqueues and looks from a process of its own, `pawl`; each drain is another one, which
 * can be made to die in the middle (`crashAt`, `crash`) without taking the test along.
 */
import { CommandInvalid } from '../core/errors.ts'
import type { Job } from '../core/job/job.ts'
import { findLifecycle, LIFECYCLES } from '../core/lifecycles/index.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { createPawl } from '../engine/create-pawl.ts'
import { type Duration, toMs } from '../engine/durations.ts'
import type { PawlOptions } from '../engine/options.ts'
import type { JobKey, Pawl } from '../engine/pawl.ts'
import type { WorkOptions } from '../engine/work-options.ts'
import type { JobWorker } from '../engine/worker/worker.ts'
import { systemEnvironment } from '../environment/system.ts'
import { openSqlite } from '../stores/sqlite/store.ts'
import type { CommitTx, Store } from '../stores/store.ts'
import { CRASH_POINTS, type CrashPoint } from './crash-points.ts'
import { type Drained, type DrainedAttempt, drainedOf } from './drained.ts'
import { DrainStuck, ProcessDied } from './errors.ts'
import {
  type TestEnvironment,
  type TestEnvironmentOptions,
  testEnvironment,
} from './test-environment.ts'
import { TestProcess } from './test-process.ts'

/** What a test Pawl is made of. */
export interface TestPawlOptions
  extends TestEnvironmentOptions,
    Omit<PawlOptions, 'store' | 'environment'> {
  readonly jobs: NonNullable<PawlOptions['jobs']>
  /** Puts something between Pawl and its store, such as one that loses replies. */
  readonly wrap?: (store: Store) => Store
}

/** How to drain. */
export interface DrainOptions {
  /** How many jobs run at once; 1 if absent, so that they run one after the other. */
  readonly concurrency?: number
  readonly queues?: readonly string[]
  /** How long, in real time, nothing may happen while a handler runs; 5 seconds if absent. */
  readonly patience?: Duration
  /** After so many attempts it is taken for endless: jobs enqueue each other, say; 100 000. */
  readonly attemptsMax?: number
}

/** For so many turns of the event loop nothing may happen before it is said that nothing will. */
const QUIET_TURNS = 8
/** After so many turns somebody waits for the real world, and looking less often is enough. */
const EAGER_TURNS = 200
const LOOK_MS = 1
const PATIENCE_MS = 5000
const ATTEMPTS_MAX = 100_000
const BATCH = 1000
const BATCHES_MAX = 1000
/** How often time is moved to what is due next before it is taken for endless. */
const FORWARDS_MAX = 10_000
const STEPS_MAX = 20_000

/** Opens Pawl on a store in memory, under a time that the test owns. */
export async function createTestPawl(options: TestPawlOptions): Promise<TestPawl> {
  const crash: CrashPlan = { pass: () => {} }
  const crashPoint = (name: string) => crash.pass(name)
  const environment = { ...testEnvironment(options), crashPoint }
  const lifecycles = [...new Set([...LIFECYCLES, ...options.jobs.map((job) => job.lifecycle)])]
  const { start, seed, wrap = (same) => same, ...pawlOptions } = options
  const { logger, onFindings, payloadBytesMax, payloadDepthMax } = pawlOptions
  const { store, query } = await openSqlite({
    ...{ path: ':memory:', lifecycles, environment },
    ...(logger !== undefined && { logger }),
    ...(onFindings !== undefined && { onFindings }),
    ...(payloadBytesMax !== undefined && { payloadBytesMax }),
    ...(payloadDepthMax !== undefined && { payloadDepthMax }),
  })
  const wrapped = wrap(store)
  const pawl = await createPawl({ ...pawlOptions, store: wrapped, environment })
  return new TestPawl({ environment, store, wrapped, query, pawl, pawlOptions, lifecycles, crash })
}

/** Who is asked at every crash point of the store. */
interface CrashPlan {
  pass: (name: string) => void
}

interface Parts {
  readonly environment: TestEnvironment
  readonly store: Store
  readonly wrapped: Store
  readonly query: CommitTx['query']
  readonly pawl: Pawl
  readonly pawlOptions: Omit<PawlOptions, 'store' | 'environment'>
  readonly lifecycles: readonly Lifecycle[]
  readonly crash: CrashPlan
}

/** Pawl under test. */
export class TestPawl implements AsyncDisposable {
  /** The test's own Pawl: it enqueues, looks and cancels; `drain` works. */
  readonly pawl: Pawl
  /** The store itself, without what `wrap` put before it. */
  readonly store: Store
  readonly environment: TestEnvironment
  readonly #parts: Parts
  #process: TestProcess | undefined
  #crashAt: CrashPoint | undefined

  /** Made by `createTestPawl`. @internal */
  constructor(parts: Parts) {
    this.#parts = parts
    this.pawl = parts.pawl
    this.store = parts.store
    this.environment = parts.environment
    parts.crash.pass = (name) => this.#pass(name)
  }

  /**
   * Works off everything that is ready now, and whatever becomes ready by that without time
   * passing, in the order in which a worker would. Returns what ran and where it is now.
   */
  async drain(options: DrainOptions = {}): Promise<Drained> {
    if (this.#process !== undefined) throw new CommandInvalid('drain', 'must end before the next')
    const process = new TestProcess(this.environment, this.#parts.wrapped)
    const attempts: DrainedAttempt[] = []
    this.#process = process
    try {
      // A worker that sleeps may learn of new jobs later, in a time that stands still here; one
      // that begins looks for them. So there is nothing left when one has begun and found nothing.
      for (let before = -1; process.cause === undefined && attempts.length > before; ) {
        before = attempts.length
        await this.#work(process, options, attempts)
      }
      const drained = await this.#sort(attempts)
      return process.cause === undefined ? drained : { ...drained, crashed: process.cause }
    } finally {
      this.#process = undefined
      this.#crashAt = undefined
    }
  }

  /** One worker, from its start until it has nothing to do. */
  async #work(
    process: TestProcess,
    { concurrency = 1, queues, patience = PATIENCE_MS, attemptsMax = ATTEMPTS_MAX }: DrainOptions,
    attempts: DrainedAttempt[],
  ): Promise<void> {
    const { store, environment } = process
    const onEvent: NonNullable<WorkOptions['onEvent']> = (event) => {
      if (event.type !== 'started') return
      const { id: jobId, type, attempt } = event.job
      attempts.push({ jobId, type, attempt })
    }
    const pawl = await createPawl({ ...this.#parts.pawlOptions, store, environment })
    const work = { id: 'test-worker', concurrency, ...(queues !== undefined && { queues }) }
    const worker = await pawl.work({ ...work, onEvent })
    const patienceMs = toMs(patience, 'patience')
    await this.#untilDone(process, worker, { patienceMs, attemptsMax }, attempts)
    // It may yet die while it stops; then nothing comes back from it.
    if (process.cause === undefined) await Promise.race([pawl.close(), process.dies()])
    if (process.cause !== undefined) await this.#quiet()
  }

  /**
   * Moves the time on. Timers fire in their order, and what they set off happens at its own time;
   * then what is due becomes ready: delayed jobs, retries, and jobs whose lease has run out. Only
   * `drain` runs them.
   */
  async advance(duration: Duration): Promise<void> {
    const { environment, store } = this.#parts
    let left = toMs(duration, 'duration')
    await this.#quiet()
    for (let step = 0; left > 0; step++) {
      const next = Math.max(1, environment.untilNextTimer() ?? left)
      const ms = step < STEPS_MAX ? Math.min(next, left) : left
      environment.advance(ms)
      left -= ms
      await this.#quiet()
    }
    // A drain that runs does this itself, and may keep others out of the store meanwhile.
    if (this.#process !== undefined) return
    await untilShort((limit) => store.promote(limit))
    await untilShort(async (limit) => (await store.recover(limit)).length)
  }

  /** Drains, and moves the time to whatever is due next, until nothing waits for its time. */
  async fastForward(options: DrainOptions = {}): Promise<Drained> {
    const attempts: DrainedAttempt[] = []
    let reached: number | undefined
    for (let i = 0; i < FORWARDS_MAX; i++) {
      const drained = await this.drain(options)
      attempts.push(...drained.attempts)
      const { crashed } = drained
      if (crashed !== undefined) return { ...(await this.#sort(attempts)), crashed }
      const due = await this.#nextDue()
      // What is due and did not run, such as a job of an unknown kind, would never run here.
      if (due === undefined || due === reached) return this.#sort(attempts)
      reached = due
      await this.advance(Math.max(0, due - this.store.now()))
    }
    throw new CommandInvalid('fastForward', `must come to an end within ${FORWARDS_MAX} due times`)
  }

  /** The inputs of all jobs of a kind, whatever became of them; the first one first. */
  async enqueued<Input, Output>(definition: JobKey<Input, Output>): Promise<Input[]> {
    const inputs: Input[] = []
    let after: string | undefined
    do {
      const page = await this.store.list(
        { type: definition.name },
        { limit: BATCH, ...(after !== undefined && { after }) },
      )
      for (const { id } of page.items) {
        const texts = await this.store.payloads(id)
        inputs.push(JSON.parse(texts?.input ?? 'null') as Input)
      }
      after = page.next
    } while (after !== undefined)
    return inputs.reverse()
  }

  /** Runs a statement on the database of the store: for tables of your own, before and after. */
  async query<Row = unknown>(
    sql: string,
    values: readonly (string | number | null)[] = [],
  ): Promise<Row[]> {
    const rows = (await this.#parts.query(sql, values)) as Row[]
    // The driver's rows have no prototype, for which strict assertions would refuse them.
    return rows.map((row) => ({ ...row }))
  }

  /** Lets the process of the next drain die at a place, the first time that it gets there. */
  crashAt(point: CrashPoint): void {
    if (!CRASH_POINTS.includes(point)) {
      throw new CommandInvalid('crashAt', `must be one of ${CRASH_POINTS.join(', ')}`)
    }
    this.#crashAt = point
  }

  /** Called by a handler: its process dies here and now. Nothing comes back from this. */
  crash(): Promise<never> {
    if (this.#process === undefined) throw new CommandInvalid('crash', 'needs a drain that runs')
    this.#process.die('handler', new ProcessDied('handler'))
    return new Promise(() => {})
  }

  /** Moves the time on, step by step, until a condition holds; for workers that run on. */
  async until(condition: () => boolean | Promise<boolean>, stepMs = 10): Promise<void> {
    for (let step = 0; step < STEPS_MAX; step++) {
      for (let turn = 0; turn < 12; turn++) {
        if (await condition()) return
        await this.#turn()
      }
      this.environment.advance(stepMs)
    }
    throw new CommandInvalid('until', `must come true within ${STEPS_MAX * stepMs} ms`)
  }

  /** Moves the time on until a promise has settled, and gives back what it settled to. */
  async finish<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false
    const mark = () => {
      isSettled = true
    }
    promise.then(mark, mark)
    await this.until(() => isSettled)
    return promise
  }

  /** Stops every worker and closes the store. */
  async close(): Promise<void> {
    await this.finish(this.pawl.close())
    await this.store.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** When the next job or effect is due that waits for its time. */
  async #nextDue(): Promise<number | undefined> {
    let due = await this.store.nextDue()
    let after: string | undefined
    do {
      const more = after !== undefined && { after }
      const page = await this.store.listEffects({ state: 'pending' }, { limit: BATCH, ...more })
      for (const { runAt } of page.items) {
        // What is due already was not delivered by a drain: nobody here can do it.
        if (runAt > this.store.now()) due = Math.min(due ?? runAt, runAt)
      }
      after = page.next
    } while (after !== undefined)
    return due
  }

  /** The store is at a crash point. A dead process gets past none of them. */
  #pass(name: string): void {
    const process = this.#process
    if (process === undefined) return
    if (process.cause === undefined && name !== this.#crashAt) return
    const died = new ProcessDied(process.cause ?? name)
    process.die(name, died)
    throw died
  }

  /** Until the worker has nothing to do, or its process has died and left the store. */
  async #untilDone(
    process: TestProcess,
    worker: JobWorker,
    { patienceMs, attemptsMax }: { readonly patienceMs: number; readonly attemptsMax: number },
    attempts: readonly DrainedAttempt[],
  ): Promise<void> {
    const real = systemEnvironment()
    let calls = -1
    let changedAt = real.clock.now()
    for (let quiet = 0, turn = 0; quiet < QUIET_TURNS; turn++) {
      if (turn < EAGER_TURNS) await this.#turn()
      else await new Promise<void>((resolve) => real.timers.after(LOOK_MS, resolve))
      const isDone = !process.isBusy && (process.cause !== undefined || isIdle(worker))
      quiet = isDone && process.calls === calls ? quiet + 1 : 0
      if (process.calls !== calls) {
        calls = process.calls
        changedAt = real.clock.now()
        turn = 0
      }
      if (attempts.length > attemptsMax) {
        process.die('endless', new ProcessDied('endless'))
        throw new CommandInvalid('drain', `must come to an end within ${attemptsMax} attempts`)
      }
      const waitedMs = real.clock.now() - changedAt
      if (waitedMs > patienceMs) throw await this.#giveUp(process, attempts, waitedMs)
    }
  }

  /** A drain that cannot end must not keep the rest of the test from ending. */
  async #giveUp(
    process: TestProcess,
    attempts: readonly DrainedAttempt[],
    waitedMs: number,
  ): Promise<DrainStuck> {
    process.die('stuck', new ProcessDied('stuck'))
    await this.#quiet()
    const { held } = await this.#sort(attempts)
    return new DrainStuck(held, waitedMs)
  }

  /** Lets happen what needs no time; a commit that waits for the test may go on waiting. */
  async #quiet(): Promise<void> {
    const process = this.#process
    let calls = process?.calls
    for (let quiet = 0, turn = 0; quiet < EAGER_TURNS && turn < STEPS_MAX; turn++) {
      if (quiet >= QUIET_TURNS && !process?.isBusy) return
      await this.#turn()
      quiet = process?.calls === calls ? quiet + 1 : 0
      calls = process?.calls
    }
  }

  async #sort(attempts: readonly DrainedAttempt[]): Promise<Drained> {
    const jobs: { job: Job; lifecycle: Lifecycle }[] = []
    for (const id of new Set(attempts.map(({ jobId }) => jobId))) {
      const job = await this.store.get(id)
      if (job === undefined) continue
      const { lifecycle, lifecycleVersion } = job
      const found = findLifecycle(lifecycle, lifecycleVersion, this.#parts.lifecycles)
      jobs.push({ job, lifecycle: found })
    }
    return drainedOf(attempts, jobs, this.store.now())
  }

  #turn(): Promise<void> {
    return new Promise((resolve) => this.environment.timers.defer(resolve))
  }
}

/** Whether nothing runs and nothing was found; slots whose handlers never end find nothing. */
function isIdle({ running, states, stuck }: JobWorker): boolean {
  return (
    running === 0 && states.filter((state) => state === 'Idle').length === states.length - stuck
  )
}

/** Repeats what does a batch at a time until there is less than a batch to do. */
async function untilShort(doBatch: (limit: number) => Promise<number>): Promise<void> {
  for (let i = 0; i < BATCHES_MAX; i++) if ((await doBatch(BATCH)) < BATCH) return
}
