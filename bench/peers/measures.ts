/**
 * The measurements, each on an open contender in a process of its own. Every one compares what it
 * saw with what the database holds, and throws if the work was not done.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { byCallers, type Session, STEPS } from './contender.ts'

/** What a measurement gets beside the contender. */
export interface Task {
  readonly jobs: number
  /** Ends a measurement that a slow contender would not finish in time. */
  readonly limitMs: number
  readonly steps: boolean
  /** The server's process, if there is one. */
  readonly serverPid?: number
}

/** A rate or a time, and the unit is that of the metric; `share` returns the parts of a rate. */
export type Outcome = number | Shared

/** What one of several processes did; times are those of the machine. */
export interface Shared {
  readonly first: number
  readonly last: number
  readonly calls: number
}

type Measure = (session: Session, task: Task) => Promise<Outcome>

/** Prepares the database for `drain`, `share`, `startUp` and `memory`. */
const fill: Measure = async (session, { jobs }) => {
  await session.addMany(jobs)
  const { waiting } = await session.count()
  expectEqual('jobs waiting', waiting, jobs)
  return jobs
}

/**
 * Jobs a second from the first call of a handler until the database says that all have finished, or
 * until the time is up. The start and the stop of the worker do not count. The jobs already wait.
 */
const drain: Measure = async (session, { jobs, limitMs, steps }) => {
  const watch = new Watch(jobs)
  const stop = await session.work(() => watch.onCall())
  await watch.begun
  const end = watch.first + limitMs
  await Promise.race([watch.reached, sleep(limitMs, undefined, { ref: false })])
  let done = await session.count()
  // Some libraries record results after the handler has returned, in the background.
  while (done.finished < jobs && performance.now() < end) {
    await sleep(10)
    done = await session.count()
  }
  const took = performance.now() - watch.first
  await stop()
  if (done.finished > watch.calls) throw new Error(`${done.finished} finished of ${watch.calls}`)
  if (done.finished < 2) throw new Error(`Only ${done.finished} jobs finished in time.`)
  if (steps && done.steps < done.finished * STEPS) {
    throw new Error(`${done.steps} steps for ${done.finished} jobs`)
  }
  return (done.finished / took) * 1000
}

/** Jobs a second that one caller adds, waiting for each. */
const addOne: Measure = (session, task) => addBy(1, session, task)

/** Jobs a second that fifty callers add, each waiting for its own. */
const addByFifty: Measure = (session, task) => addBy(50, session, task)

async function addBy(callers: number, session: Session, { jobs, limitMs }: Task) {
  // A first few make connections and prepare statements.
  const warm = Math.min(100, jobs)
  await byCallers(warm, callers, () => session.add())
  const start = performance.now()
  let added = 0
  await byCallers(jobs, callers, async () => {
    if (performance.now() - start > limitMs) return
    await session.add()
    added++
  })
  const took = performance.now() - start
  const { waiting } = await session.count()
  expectEqual('jobs waiting', waiting, warm + added)
  return (added / took) * 1000
}

/** Jobs a second by the call for many. */
const addMany: Measure = async (session, { jobs }) => {
  await session.addMany(100)
  const start = performance.now()
  await session.addMany(jobs)
  const took = performance.now() - start
  const { waiting } = await session.count()
  expectEqual('jobs waiting', waiting, jobs + 100)
  return (jobs / took) * 1000
}

/** The median time in milliseconds from the call that adds a job to its handler; idle worker. */
const latency: Measure = async (session, { jobs }) => {
  let onStart = () => {}
  const stop = await session.work(() => onStart())
  const waits: number[] = []
  for (let i = 0; i < jobs + 5; i++) {
    const started = new Promise<number>((resolve) => {
      onStart = () => resolve(performance.now())
    })
    const start = performance.now()
    await session.add()
    const wait = (await started) - start
    // The first jobs meet code that has not run yet.
    if (i >= 5) waits.push(wait)
    // Long enough for the worker to be idle, and never the same part of an interval of polling.
    await sleep(25 + Math.random() * 20)
  }
  await expectFinished(session, jobs + 5)
  await stop()
  return waits.sort((a, b) => a - b)[Math.floor(waits.length / 2)] as number
}

/** Jobs a second while ten callers add jobs and a worker runs them, until all have run. */
const mixed: Measure = async (session, { jobs }) => {
  const watch = new Watch(jobs)
  const stop = await session.work(() => watch.onCall())
  const start = performance.now()
  await byCallers(jobs, 10, () => session.add())
  await watch.reached
  const took = performance.now() - start
  await expectFinished(session, jobs)
  await stop()
  return (jobs / took) * 1000
}

/** Works until all jobs have finished, of which other processes run some. */
const share: Measure = async (session, { jobs, limitMs }) => {
  const watch = new Watch(jobs)
  const stop = await session.work(() => watch.onCall())
  const end = performance.now() + limitMs
  while ((await session.count()).finished < jobs) {
    if (performance.now() > end) throw new Error('Not all jobs were run in time.')
    await sleep(100)
  }
  await stop()
  const { timeOrigin } = performance
  return { first: timeOrigin + watch.first, last: timeOrigin + watch.last, calls: watch.calls }
}

/** Milliseconds from the start of the process to the first handler; one job waits. */
const startUp: Measure = async (session) => {
  const watch = new Watch(1)
  const stop = await session.work(() => watch.onCall())
  await watch.reached
  await expectFinished(session, 1)
  await stop()
  return watch.first
}

/** Milliseconds of CPU a second of an idle worker, and of its server. */
const idleCpu: Measure = async (session, { jobs: seconds, serverPid }) => {
  const stop = await session.work(() => {})
  await sleep(2000)
  const usedMs = () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000 + (serverPid === undefined ? 0 : serverMs(serverPid))
  }
  const before = usedMs()
  await sleep(seconds * 1000)
  const used = usedMs() - before
  await stop()
  return used / seconds
}

/** MiB of the process while every slot has a job and the others wait in the database. */
const memory: Measure = async (session, { jobs }) => {
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const stop = await session.work(() => released)
  await sleep(3000)
  globalThis.gc?.()
  const { rss } = process.memoryUsage()
  const { finished } = await session.count()
  expectEqual('finished jobs', finished, 0)
  if (jobs < 1) throw new Error('Nothing waits.')
  release()
  await stop()
  return rss / 1024 / 1024
}

/** The measurements by name. */
export const MEASURES = {
  fill,
  drain,
  addOne,
  addByFifty,
  addMany,
  latency,
  mixed,
  share,
  startUp,
  idleCpu,
  memory,
} as const

export type MeasureName = keyof typeof MEASURES

/** When handlers were called. */
class Watch {
  calls = 0
  first = 0
  last = 0
  readonly begun: Promise<void>
  readonly reached: Promise<void>
  readonly #expected: number
  #onBegun = () => {}
  #onReached = () => {}

  constructor(expected: number) {
    this.#expected = expected
    this.begun = new Promise((resolve) => {
      this.#onBegun = resolve
    })
    this.reached = new Promise((resolve) => {
      this.#onReached = resolve
    })
  }

  onCall(): void {
    this.last = performance.now()
    if (this.calls++ === 0) {
      this.first = this.last
      this.#onBegun()
    }
    if (this.calls === this.#expected) this.#onReached()
  }
}

function expectEqual(what: string, actual: number, expected: number): void {
  if (actual !== expected) throw new Error(`${what}: ${actual} instead of ${expected}`)
}

/** Waits until so many jobs are recorded as finished; results may be recorded in the background. */
async function expectFinished(session: Session, jobs: number): Promise<void> {
  let finished = 0
  for (let tries = 0; tries < 500 && finished < jobs; tries++) {
    if (tries > 0) await sleep(10)
    finished = (await session.count()).finished
  }
  expectEqual('finished jobs', finished, jobs)
}

/** The time of the server's processes so far, also of those that have ended. */
function serverMs(pid: number): number {
  const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
  let ticks = 0
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    const fields = statOf(name)
    if (fields === undefined) continue
    const [parent, ...times] = [fields[1], fields[11], fields[12]].map(Number)
    const isServer = Number(name) === pid
    if (!isServer && parent !== pid) continue
    const ended = isServer ? [Number(fields[13]), Number(fields[14])] : []
    for (const time of [...times, ...ended]) ticks += time
  }
  return (ticks * 1000) / ticksPerSecond
}

/** The fields of a process after its name, which may contain spaces; undefined if it has ended. */
function statOf(pid: string): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}
