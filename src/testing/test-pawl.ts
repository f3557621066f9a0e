/**
 * Pawl for tests of programs that use it: a store in memory, a time that only the test advances,
 * the same random numbers and ids in every run, and no threads.
 *
 * Nothing runs until the test asks for it. `drain` starts a worker, lets it run all ready jobs, and
 * stops it. It is the production worker, so retries, budgets, fences and commits are real.
 * `advance` moves the time and makes due jobs ready.
 *
 * The test enqueues and reads through `pawl`. Each drain is a separate simulated process, which can
 * be made to die (`crashAt`, `crash`) while the test continues.
 */
import { callable, count, flag } from '../core/checks.ts'
import { type Duration, toMs } from '../core/durations.ts'
import { CommandInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import type { Job } from '../core/job/job.ts'
import { findLifecycle, LIFECYCLES } from '../core/lifecycles/index.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { decodeValue } from '../core/values.ts'
import { createPawl } from '../engine/create-pawl.ts'
import { wakeAll } from '../engine/flows/wake-store.ts'
import type { JobKey } from '../engine/job-types.ts'
import { PAWL_CHECKS, type PawlOptions } from '../engine/options.ts'
import type { Pawl } from '../engine/pawl.ts'
import { ticksOf } from '../engine/schedules/cron.ts'
import type { WorkOptions } from '../engine/work-options.ts'
import type { JobWorker } from '../engine/worker/worker.ts'
import { systemEnvironment } from '../environment/system.ts'
import type { Store } from '../stores/contract/store.ts'
import type { SqlStatement, SqlValue } from '../stores/user-sql.ts'
import { CRASH_POINTS, type CrashPoint } from './crash-points.ts'
import {
  type Drained,
  type DrainedAttempt,
  type DrainFailure,
  drainedOf,
  ThrownErrors,
} from './drained.ts'
import { DrainFailed, DrainStuck, ProcessDied } from './errors.ts'
import {
  ENVIRONMENT_OPTIONS,
  type TestEnvironment,
  type TestEnvironmentOptions,
  testEnvironment,
} from './test-environment.ts'
import { TestProcess } from './test-process.ts'
import { openTestStore, type TestStore } from './test-store.ts'

/** The options of `createTestPawl`. */
export interface TestPawlOptions
  extends TestEnvironmentOptions,
    Omit<PawlOptions, 'store' | 'environment'> {
  /** The job types of the test. */
  readonly jobs: NonNullable<PawlOptions['jobs']>
  /**
   * `'postgres://…'` for a schema of its own on a PostgreSQL server, which `close` drops.
   * @defaultValue `'sqlite::memory:'`
   */
  readonly store?: string
  /**
   * Wraps the store, for example to lose replies.
   * @defaultValue none
   */
  readonly wrap?: (store: Store) => Store
}

/** The options of `drain`. */
export interface DrainOptions {
  /** How many jobs run at once; 1 if absent. */
  readonly concurrency?: number
  readonly queues?: readonly string[]
  /**
   * How long, in real time, a handler may run without any call of the store; 5 seconds if absent.
   */
  readonly patience?: Duration
  /** The drain fails after this many attempts, for example if jobs enqueue each other; 100,000. */
  readonly attemptsMax?: number
  /** If true, `DrainFailed` is thrown when an attempt failed; its message has the stacks. */
  readonly throwOnFailure?: boolean
}

/** Work is finished if nothing happens for this many turns of the event loop. */
const QUIET_TURNS = 8
/** After this many turns a handler waits for something real, so checks become less frequent. */
const EAGER_TURNS = 200
const LOOK_MS = 1
const PATIENCE_MS = 5000
const ATTEMPTS_MAX = 100_000
const BATCH = 1000
const BATCHES_MAX = 1000
/** How often `fastForward` advances to the next due time before it fails. */
const FORWARDS_MAX = 10_000
const STEPS_MAX = 20_000

/** Throws `CommandInvalid` for unknown options, before anything is opened. */
function checkTestOptions(options: TestPawlOptions): void {
  const { environment: _, ...checks } = PAWL_CHECKS
  const all = { ...checks, ...ENVIRONMENT_OPTIONS, wrap: callable }
  checkFields(options, all, { what: 'options' })
  if (options.jobs === undefined) throw new CommandInvalid('jobs', 'must be given')
}

const DRAIN: FieldChecks<DrainOptions> = {
  // The worker checks these two.
  concurrency: unchecked,
  queues: unchecked,
  patience: unchecked,
  attemptsMax: (value) => count(value, 1, Number.MAX_SAFE_INTEGER),
  throwOnFailure: flag,
}

/** Opens Pawl on a store of the test's own, with a time that the test controls. */
export async function createTestPawl(options: TestPawlOptions): Promise<TestPawl> {
  checkTestOptions(options)
  const { start, seed, store: name, wrap = (same) => same, ...pawlOptions } = options
  const crash: CrashPlan = { pass: () => {} }
  const crashPoint = (name: string) => crash.pass(name)
  const time = { ...(start !== undefined && { start }), ...(seed !== undefined && { seed }) }
  const environment = { ...testEnvironment(time), crashPoint }
  const lifecycles = [...new Set([...LIFECYCLES, ...options.jobs.map((job) => job.lifecycle)])]
  const { logger, onFindings, payloadBytesMax, payloadDepthMax } = pawlOptions
  const opened = await openTestStore(name, {
    ...{ lifecycles, environment },
    ...(logger !== undefined && { logger }),
    ...(onFindings !== undefined && { onFindings }),
    ...(payloadBytesMax !== undefined && { payloadBytesMax }),
    ...(payloadDepthMax !== undefined && { payloadDepthMax }),
  })
  const wrapped = wrap(opened.store)
  try {
    const pawl = await createPawl({ ...pawlOptions, store: wrapped, environment })
    return new TestPawl({ environment, opened, wrapped, pawl, pawlOptions, lifecycles, crash })
  } catch (error) {
    await opened.close()
    throw error
  }
}

/** Called at every crash point of the store. */
interface CrashPlan {
  pass: (name: string) => void
}

interface Parts {
  readonly environment: TestEnvironment
  readonly opened: TestStore
  readonly wrapped: Store
  readonly pawl: Pawl
  readonly pawlOptions: Omit<PawlOptions, 'store' | 'environment'>
  readonly lifecycles: readonly Lifecycle[]
  readonly crash: CrashPlan
}

/** Pawl under test; see `createTestPawl`. */
export class TestPawl implements AsyncDisposable {
  /** The test's Pawl, for enqueueing, reading and cancelling; `drain` runs the jobs. */
  readonly pawl: Pawl
  /** The store without the wrapper of `wrap`. */
  readonly store: Store
  readonly environment: TestEnvironment
  readonly #parts: Parts
  #process: TestProcess | undefined
  #crashAt: CrashPoint | undefined

  /** Use `createTestPawl`. @internal */
  constructor(parts: Parts) {
    this.#parts = parts
    this.pawl = parts.pawl
    this.store = parts.opened.store
    this.environment = parts.environment
    parts.crash.pass = (name) => this.#pass(name)
  }

  /**
   * Runs all jobs that are ready, and those that become ready meanwhile without time passing, in
   * the order of a worker. Returns the attempts and the state of each job after it.
   */
  async drain(options: DrainOptions = {}): Promise<Drained> {
    checkFields(options, DRAIN, { what: 'options' })
    if (this.#process !== undefined) {
      throw new CommandInvalid('drain', 'must not be called while another drain runs')
    }
    const process = new TestProcess(this.environment, this.#parts.wrapped)
    const attempts: DrainedAttempt[] = []
    const failures: DrainFailure[] = []
    this.#process = process
    try {
      // An idle worker may notice new jobs only later, and time stands still here. A new worker
      // looks for them at its start. So the work is finished when a new worker finds nothing.
      for (let before = -1; process.cause === undefined && attempts.length > before; ) {
        before = attempts.length
        await this.#work(process, options, attempts, failures)
      }
      const drained = await this.#sort(attempts, failures)
      if (options.throwOnFailure && failures.length > 0) throw new DrainFailed(failures)
      return process.cause === undefined ? drained : { ...drained, crashed: process.cause }
    } finally {
      this.#process = undefined
      this.#crashAt = undefined
    }
  }

  /** Runs one worker from its start until it has nothing to do. */
  async #work(
    process: TestProcess,
    { concurrency = 1, queues, patience = PATIENCE_MS, attemptsMax = ATTEMPTS_MAX }: DrainOptions,
    attempts: DrainedAttempt[],
    failures: DrainFailure[],
  ): Promise<void> {
    const { store, environment } = process
    const thrown = new ThrownErrors()
    const onEvent: NonNullable<WorkOptions['onEvent']> = (event) => {
      if (event.type === 'reported') failures.push(...thrown.failuresOf(event.job))
      if (event.type !== 'started') return
      const { id: jobId, type, attempt } = event.job
      attempts.push({ jobId, type, attempt })
    }
    const { pawlOptions } = this.#parts
    const jobs = (pawlOptions.jobs ?? []).map((job) => thrown.watch(job))
    const pawl = await createPawl({ ...pawlOptions, jobs, store, environment })
    const work = { id: 'test-worker', concurrency, ...(queues !== undefined && { queues }) }
    const worker = await pawl.work({ ...work, onEvent })
    const patienceMs = toMs(patience, 'patience')
    await this.#untilDone(process, worker, { patienceMs, attemptsMax }, attempts)
    // The process may die while it stops; then `close` never returns.
    if (process.cause === undefined) await Promise.race([pawl.close(), process.dies()])
    if (process.cause !== undefined) await this.#quiet()
  }

  /**
   * Advances the time. Timers fire in order, each at its time, and each tick of a schedule makes
   * its job at its time. Then due jobs become ready: delayed jobs, retries, and jobs whose lease
   * has expired. Only `drain` runs them.
   */
  async advance(duration: Duration): Promise<void> {
    const { environment, store } = this
    let left = toMs(duration, 'duration')
    await this.#quiet()
    for (let step = 0; left > 0; step++) {
      const timer = environment.untilNextTimer() ?? left
      const next = Math.max(1, Math.min(timer, (await this.#untilTick()) ?? left))
      const ms = step < STEPS_MAX ? Math.min(next, left) : left
      environment.advance(ms)
      left -= ms
      await this.#quiet()
      if (((await this.#untilTick()) ?? 1) <= 0) await this.#fire()
    }
    // A running drain does this itself, and may hold the store's transaction meanwhile.
    if (this.#process !== undefined) return
    await untilShort((limit) => store.promote(limit))
    await untilShort(async (limit) => (await store.recover(limit)).length)
    await wakeAll(store.flows)
  }

  /** How long until a schedule has to be looked at. A running drain does that itself. */
  async #untilTick(): Promise<number | undefined> {
    if (this.#process !== undefined) return undefined
    const at = await this.store.schedules.nextLook()
    return at === undefined ? undefined : at - this.store.now()
  }

  async #fire(): Promise<void> {
    for (let i = 0; i < BATCHES_MAX; i++) {
      const { more } = await this.pawl.store.schedules.fire(BATCH, ticksOf)
      if (!more) return
    }
  }

  /** Drains and advances to the next due time, until no job waits for its time. */
  async fastForward(options: DrainOptions = {}): Promise<Drained> {
    const attempts: DrainedAttempt[] = []
    const failures: DrainFailure[] = []
    let reached: number | undefined
    for (let i = 0; i < FORWARDS_MAX; i++) {
      const drained = await this.drain(options)
      attempts.push(...drained.attempts)
      failures.push(...drained.failures)
      const { crashed } = drained
      if (crashed !== undefined) return { ...(await this.#sort(attempts, failures)), crashed }
      const due = await this.#nextDue()
      // A job that is due and did not run, for example of an unknown type, never runs here.
      if (due === undefined || due === reached) return this.#sort(attempts, failures)
      reached = due
      await this.advance(Math.max(0, due - this.store.now()))
    }
    throw new CommandInvalid('fastForward', `must end within ${FORWARDS_MAX} due times`)
  }

  /** The inputs of all jobs of a type in any state, oldest first. */
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
        inputs.push(decodeValue(texts?.input ?? 'null') as Input)
      }
      after = page.next
    } while (after !== undefined)
    return inputs.reverse()
  }

  /** Runs an SQL statement on the store's database, for your own tables. */
  async query<Row = unknown>(
    sql: string | SqlStatement,
    values?: readonly SqlValue[],
  ): Promise<Row[]> {
    const rows = (await this.#parts.opened.query(sql, values)) as Row[]
    // The driver's rows have no prototype, so strict assertions would reject them.
    return rows.map((row) => ({ ...row }))
  }

  /** Lets the process of the next drain die when it first reaches this point. */
  crashAt(point: CrashPoint): void {
    if (!CRASH_POINTS.includes(point)) {
      throw new CommandInvalid('crashAt', `must be one of ${CRASH_POINTS.join(', ')}`)
    }
    this.#crashAt = point
  }

  /** For handlers: lets the process die at once. The promise never settles. */
  crash(): Promise<never> {
    if (this.#process === undefined) {
      throw new CommandInvalid('crash', 'must be called during a drain')
    }
    this.#process.die('handler', new ProcessDied('handler'))
    return new Promise(() => {})
  }

  /** Advances the time in steps until a condition holds; for workers started by `pawl.work`. */
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

  /** Advances the time until a promise has settled, and returns its value. */
  async finish<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false
    const mark = () => {
      isSettled = true
    }
    promise.then(mark, mark)
    await this.until(() => isSettled)
    return promise
  }

  async close(): Promise<void> {
    await this.finish(this.pawl.close())
    await this.#parts.opened.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** When the next waiting job or effect is due. */
  async #nextDue(): Promise<number | undefined> {
    let due = await this.store.nextDue()
    let after: string | undefined
    do {
      const more = after !== undefined && { after }
      const page = await this.store.listEffects({ state: 'pending' }, { limit: BATCH, ...more })
      for (const { runAt } of page.items) {
        // An effect that is due already was not delivered by the drain, so no effect here delivers
        // it.
        if (runAt > this.store.now()) due = Math.min(due ?? runAt, runAt)
      }
      after = page.next
    } while (after !== undefined)
    return due
  }

  /** Called at a crash point of the store; throws if the process is dead or dies here. */
  #pass(name: string): void {
    const process = this.#process
    if (process === undefined) return
    if (process.cause === undefined && name !== this.#crashAt) return
    const died = new ProcessDied(process.cause ?? name)
    process.die(name, died)
    throw died
  }

  /** Waits until the worker has nothing to do, or its process has died and has no open calls. */
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
        throw new CommandInvalid('drain', `must end within ${attemptsMax} attempts`)
      }
      const waitedMs = real.clock.now() - changedAt
      if (waitedMs > patienceMs) throw await this.#giveUp(process, attempts, waitedMs)
    }
  }

  /** Ends the process, so that the test can go on. */
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

  /** Waits until everything that needs no time has happened. Commits may wait for the test. */
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

  async #sort(
    attempts: readonly DrainedAttempt[],
    failures: readonly DrainFailure[] = [],
  ): Promise<Drained> {
    const jobs: { job: Job; lifecycle: Lifecycle }[] = []
    for (const id of new Set(attempts.map(({ jobId }) => jobId))) {
      const job = await this.store.get(id)
      if (job === undefined) continue
      const { lifecycle, lifecycleVersion } = job
      const found = findLifecycle(lifecycle, lifecycleVersion, this.#parts.lifecycles)
      jobs.push({ job, lifecycle: found })
    }
    return { ...drainedOf(attempts, jobs, this.store.now()), failures }
  }

  #turn(): Promise<void> {
    return new Promise((resolve) => this.environment.timers.defer(resolve))
  }
}

/** Whether no job runs and none was found. Slots with stuck handlers do not count. */
function isIdle({ running, states, stuck }: JobWorker): boolean {
  return (
    running === 0 && states.filter((state) => state === 'Idle').length === states.length - stuck
  )
}

/** Repeats a batch operation until it processes less than a full batch. */
async function untilShort(doBatch: (limit: number) => Promise<number>): Promise<void> {
  for (let i = 0; i < BATCHES_MAX; i++) if ((await doBatch(BATCH)) < BATCH) return
}
