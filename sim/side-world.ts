/**
 * A small simulation beside the main one: some workers and an office share a database of their own.
 * For a while processes die and pause, clocks are wrong, and calls are lost and repeated. Then the
 * faults end, every process is replaced, and the world judges what the store holds.
 *
 * `group-world.ts`, `schedule-world.ts` and `store-world.ts` say what their processes do.
 */
import { type JobWorker, PawlError } from 'pawl'
import { type Database, openSqliteStore, type Store } from 'pawl/sqlite'
import { SeededRandom, SequentialIds } from 'pawl/testing'
import type { Judged } from './checker.ts'
import { openDatabase } from './database.ts'
import { type FaultKind, Faults } from './faults.ts'
import { hostOf, type ProcessParts, SimProcess } from './process.ts'
import { Scheduler } from './scheduler.ts'

/** More steps than any of these worlds needs; a loop without progress reaches it. */
const STEPS_MAX = 60_000

/** From, and below which, a number is drawn. */
type Range = readonly [from: number, below: number]

/** What the worlds differ in. */
export interface SideWorldOptions {
  /** Part of the name of the database. */
  readonly name: string
  /** Keeps the random choices of this world apart from those of others with the same seed. */
  readonly salt: number
  /** When the world begins, drawn with its own random source. */
  readonly start: (random: SeededRandom) => number
  /** How long faults happen, and how long the world may then take to settle. */
  readonly faultyMs: number
  readonly healedMs: number
  readonly process: Pick<ProcessParts, 'leaseMs' | 'hasFaultySchedules'>
  /** Whether processes receive hints of each other's writes. */
  readonly hasHints: boolean
  /** The faults of processes and clocks, drawn in this order after each `restMs`. */
  readonly strikes: readonly Strike[]
  readonly restMs: Range
  readonly pauseMs: Range
  readonly leapMs: Range
  readonly machineMs: Range
  readonly suspendMs: Range
}

/** The kinds of fault that hit a process, or the clock of the machine. */
type Strike = Extract<
  FaultKind,
  | 'crash'
  | 'client-crash'
  | 'pause-beyond-lease'
  | 'clock-leap'
  | 'clock-set-back'
  | 'machine-clock-set'
  | 'suspend'
  | 'stop'
>

/** A worker process, and its worker once it has started. */
export interface Member {
  readonly process: SimProcess
  worker?: JobWorker
}

let worlds = 0

/** The processes, the clock and the database of one world. `judge` returns what it counted. */
export abstract class SideWorld<Counted> {
  protected readonly faults: Faults
  protected readonly scheduler: Scheduler
  protected readonly ids = new SequentialIds()
  protected readonly judged: Judged[] = []
  /** Reads rows without a store. */
  protected readonly auditor: Database
  protected members: Member[] = []
  protected isHealed = false
  readonly #options: SideWorldOptions
  readonly #random: SeededRandom
  readonly #location: string
  #office: SimProcess | undefined
  #names = 0
  /** By how much the wall clock of the machine is wrong. */
  #machineMs = 0

  constructor(seed: number, options: SideWorldOptions) {
    this.#options = options
    this.#random = new SeededRandom(seed ^ options.salt)
    const chance = () => new SeededRandom(Math.floor(this.#random.next() * 2 ** 32))
    this.faults = new Faults(chance())
    this.scheduler = new Scheduler(options.start(this.#random), chance())
    this.#location = `file:/sim-${options.name}-${seed}-${++worlds}?vfs=memdb`
    this.auditor = openDatabase(this.#location)
  }

  /** How many workers there are at any time. */
  protected abstract readonly workers: number
  /** Starts the worker of a new process. */
  protected abstract hire(member: Member): Promise<void>
  /** Runs the clients and operators until their process dies. */
  protected abstract runOffice(process: SimProcess): Promise<void>
  /** Whether nothing is left to do. */
  protected abstract isSettled(): boolean
  /** Called when the world has settled, or has had all the time that it may take. */
  protected abstract blameUnsettled(): void
  /** Judges a store to which nothing happens any more. */
  protected abstract judge(store: Store): Promise<Counted>

  /** Closes the connections of all processes; the database ends with its last connection. */
  close(): void {
    for (const { process } of this.members) process.abandon()
    this.#office?.abandon()
    this.auditor.close()
  }

  /** Plays the world to its end; `counted` is missing if it could not be judged. */
  async play(): Promise<{ judged: readonly Judged[]; counted: Counted | undefined }> {
    const { faultyMs, healedMs } = this.#options
    const { clock } = this.scheduler
    const healAt = clock.now() + faultyMs
    await this.#drive(this.#openWell().then((store) => store.close()))
    this.#replaceTheDead()
    this.#startMonkey()
    await this.#stepUntil(healAt, () => false)
    this.#heal()
    await this.#stepUntil(clock.now() + healedMs, () => this.isSettled())
    this.blameUnsettled()
    const workers = this.members.flatMap(({ worker }) => worker ?? [])
    await this.#drive(Promise.all(workers.map((worker) => worker.stop())))
    const counted = await this.#drive(this.#judgeStore())
    return { judged: this.judged, counted }
  }

  protected blame(promise: string, what: string): void {
    this.judged.push({ promise, job: '', what, facts: [] })
  }

  protected expectTyped(error: unknown): void {
    if (!(error instanceof PawlError)) this.blame('P16', `an error is not typed: ${String(error)}`)
  }

  /** Whether the world may go on: a loop without progress ends it. */
  protected mayStep(): boolean {
    return this.scheduler.steps < STEPS_MAX
  }

  /** Whether every job in the store has ended. */
  protected haveJobsEnded(): boolean {
    try {
      const sql = 'SELECT 1 AS open FROM pawl_jobs WHERE lane <> 5 LIMIT 1'
      return this.auditor.prepare(sql).all().length === 0
    } catch {
      return false
    }
  }

  /** What a process without faults is given: its clock is right but for that of the machine. */
  protected well() {
    const { now } = this.scheduler.clock
    const clock = { now, host: hostOf(now, () => this.#machineMs) }
    return { clock, timers: this.scheduler, random: new SeededRandom(1), ids: this.ids }
  }

  async #stepUntil(endAt: number, isOver: () => boolean): Promise<void> {
    const { clock } = this.scheduler
    while (clock.now() < endAt && !isOver() && this.mayStep()) await this.scheduler.step()
  }

  /** Steps until a promise is settled. */
  async #drive<T>(promise: Promise<T>): Promise<T | undefined> {
    const { scheduler } = this
    const end = scheduler.steps + STEPS_MAX
    const outcome = await scheduler.stepUntilSettled(promise, () => scheduler.steps >= end)
    if (outcome !== undefined && 'value' in outcome) return outcome.value
    this.blame('P16', `something failed: ${String(outcome?.error ?? 'it never ended')}`)
    return undefined
  }

  #openWell(): Promise<Store> {
    return openSqliteStore({ path: this.#location, environment: this.well() })
  }

  async #judgeStore(): Promise<Counted> {
    const store = await this.#openWell()
    const counted = await this.judge(store)
    await store.close()
    return counted
  }

  #newProcess(name: string): SimProcess {
    const { faults, scheduler, ids } = this
    return new SimProcess({
      ...{ name, scheduler, faults, ids, random: this.#random, location: this.#location },
      ...this.#options.process,
      skewMs: faults.strikes('clock-skew') ? faults.between(-60_000, 60_000) : 0,
      machineMs: () => this.#machineMs,
      onAnswer: () => {},
      onWrite: (writer) => this.#hintOthers(writer),
      log: () => {},
    })
  }

  #hintOthers(writer: SimProcess): void {
    if (!this.#options.hasHints) return
    for (const { process } of this.members) if (process !== writer) process.hint()
  }

  #replaceTheDead(): void {
    this.members = this.members.filter(({ process }) => process.isAlive)
    while (this.members.length < this.workers) {
      const member = { process: this.#newProcess(`worker-${++this.#names}`) }
      this.members.push(member)
      this.#endByError(member.process, this.hire(member))
    }
    if (this.#office?.isAlive) return
    this.#office = this.#newProcess('office')
    this.#endByError(this.#office, this.runOffice(this.#office))
  }

  /** A process whose program fails ends; whatever a dead one does is over. */
  #endByError(process: SimProcess, program: Promise<void>): void {
    program.catch((error) => {
      if (!process.isAlive) return
      this.expectTyped(error)
      process.crash('gives up')
    })
  }

  #startMonkey(): void {
    const act = () => {
      this.#replaceTheDead()
      this.scheduler.after(this.faults.between(...this.#options.restMs), act)
      if (this.isHealed) return
      const member = this.members[this.faults.between(0, this.members.length)] as Member
      for (const kind of this.#options.strikes) {
        if (this.faults.strikes(kind)) this.#strike(kind, member)
      }
    }
    act()
  }

  #strike(kind: Strike, { process, worker }: Member): void {
    const { pauseMs, leapMs, machineMs, suspendMs } = this.#options
    const draw = (range: Range) => this.faults.between(...range)
    const actions: Record<Strike, () => unknown> = {
      crash: () => process.crash('crashes'),
      'client-crash': () => this.#office?.crash('crashes'),
      'pause-beyond-lease': () => process.pause(draw(pauseMs)),
      'clock-leap': () => process.leap(draw(leapMs)),
      'clock-set-back': () => process.leap(-draw(leapMs)),
      'machine-clock-set': () => (this.#machineMs += draw(machineMs)),
      suspend: () => this.scheduler.leap(draw(suspendMs)),
      stop: () => worker?.stop().then(() => process.crash('has stopped')),
    }
    actions[kind]()
  }

  #heal(): void {
    this.faults.end()
    this.isHealed = true
    for (const { process } of this.members) process.crash('is replaced')
    this.#office?.crash('is replaced')
    this.#replaceTheDead()
  }
}

/** Plays a world and closes it. */
export async function playWorld<Counted>(
  world: SideWorld<Counted>,
): Promise<{ judged: readonly Judged[]; counted: Counted | undefined }> {
  try {
    return await world.play()
  } finally {
    world.close()
  }
}
