/**
 * One seed, one history. A few processes with a worker each, a client and an operator share one
 * database in memory, each by a connection of its own. While faults last, everything in `faults.ts`
 * may happen. Then all is well: every process is replaced by one that works, and every job must
 * come to its end (P15). What the store then holds is compared with what was seen (`checker.ts`).
 *
 * The same seed gives the same history, event by event: time, chance, ids and the order of events
 * come from it, and nothing here waits for the real world.
 */
import { createPawl, type JobWorker } from 'pawl'
import type { Fence } from 'pawl/rules'
import { type Database, openSqliteStore, type Ref, type Store } from 'pawl/sqlite'
import { SeededRandom, SequentialIds } from 'pawl/testing'
import { type Judged, outcomesOf, type Told } from './checker.ts'
import { examine } from './clinic.ts'
import { repairAll, Vandal } from './damage.ts'
import { openDatabase } from './database.ts'
import { Faults } from './faults.ts'
import { History } from './history.ts'
import { jobsOf, type Plan, planOf } from './jobs.ts'
import { Ledger } from './ledger.ts'
import { SimLimits } from './limits.ts'
import { EVERY_LIFECYCLE, lifecyclesOf, type Release } from './parcels.ts'
import { type Desk, enqueueOne, meddle } from './people.ts'
import { hostOf, SimProcess } from './process.ts'
import type { SimResult } from './report.ts'
import { Scheduler } from './scheduler.ts'
import { simulateBeside } from './side-worlds.ts'
import * as size from './sizes.ts'
import { judge, type Verdict } from './verdict.ts'
import { visit } from './visits.ts'

/** In one seed of so many the operator lets the doctor look while things go wrong. */
const EXAMINED_EVERY = 5
/** In one seed of so many a job is damaged in the end, and mended. */
const DAMAGED_EVERY = 8

let worlds = 0

/** Plays one seed. */
export async function simulate(seed: number, { trace = false } = {}): Promise<SimResult> {
  const world = new World(seed, trace)
  if (played === undefined) process.on('unhandledRejection', (error) => played?.expect(error))
  played = world
  try {
    return await world.play()
  } finally {
    world.close()
  }
}

/** The seed that is played, or was the last: an unhandled rejection counts against it (P16). */
let played: World | undefined

interface Member {
  readonly process: SimProcess
  /** Nothing until it has found the store. */
  worker?: JobWorker
  isStopping?: true
  readonly isOld: boolean
  readonly release: Release
}

class World {
  readonly history = new History((...beat) => this.#checkRenewed(...beat))
  readonly #seed: number
  readonly #limits: SimLimits | undefined
  readonly #scheduler: Scheduler
  readonly #faults: Faults
  readonly #runFaults: Faults
  readonly #random: SeededRandom
  readonly #ids = new SequentialIds()
  readonly #location: string
  /** Looks at the rows themselves, past every store. */
  readonly #auditor: Database
  readonly #ledger: Ledger
  readonly #vandal: Vandal
  readonly #plans: readonly Plan[]
  readonly #leaseMs: number
  readonly #size: typeof size.SMALL | typeof size.LARGE | typeof size.LIMITED
  readonly #trace: string[] | undefined
  #members: Member[] = []
  readonly #names: string[] = []
  #office: SimProcess | undefined
  #isMeddling = false
  /** By how much the wall clock of the machine is wrong. */
  #machineMs = 0
  /** Which job the client asks for next. */
  #next = 0
  #healedAt = Number.POSITIVE_INFINITY
  /** How far each job was when everybody had noticed that all is well. */
  #seqs: ReadonlyMap<string, number> | undefined

  constructor(seed: number, isTraced: boolean) {
    this.#seed = seed
    this.#limits = SimLimits.of(seed)
    this.#random = new SeededRandom(seed)
    const chance = () => new SeededRandom(Math.floor(this.#random.next() * 2 ** 32))
    this.#scheduler = new Scheduler(size.START, chance())
    this.#faults = new Faults(chance())
    this.#runFaults = new Faults(chance())
    this.#leaseMs = 1500 + Math.floor(this.#random.next() * 5) * 750
    this.#location = `file:/sim-${seed}-${++worlds}?vfs=memdb`
    this.#auditor = openDatabase(this.#location)
    this.#ledger = new Ledger(this.#auditor)
    this.#vandal = new Vandal(this.#auditor, this.#faults)
    this.#trace = isTraced ? [] : undefined
    const small = this.#limits === undefined ? size.SMALL : size.LIMITED
    this.#size = this.#random.next() < size.LARGE_SHARE ? size.LARGE : small
    const [fewest, most] = this.#size.jobs
    const length = this.#faults.between(fewest, most)
    this.#plans = Array.from({ length }, (_, n) =>
      planOf(n, this.#faults, this.#limits !== undefined),
    )
  }

  async play(): Promise<SimResult> {
    const endsAt = size.START + this.#size.faultyMs
    await this.#drive(this.#prepare(), endsAt)
    this.history.isExamined = this.#seed % EXAMINED_EVERY === 0
    this.#startMonkey()
    const now = () => this.#scheduler.clock.now()
    while (now() < endsAt) await this.#step()
    this.#heal()
    this.#healedAt = now()
    this.history.judged.push(...this.#ledger.check(this.history.pruned))
    const isOver = () => now() > this.#healedAt + size.HEALED_MS || this.history.judged.length > 0
    // A client whose key belongs to a damaged job is refused until that job is repaired.
    const isWaitedFor = () => now() > this.#healedAt + size.HEALED_MS / 2
    const mustRepair = () => this.#vandal.isGuilty && isWaitedFor()
    while (!this.#isSettled() && !isOver() && !mustRepair()) await this.#stepFor(1000)
    if (this.#vandal.isGuilty) await this.#drive(this.#repair(), now() + size.STOP_MS)
    while (!this.#isSettled() && !isOver()) await this.#stepFor(1000)
    await this.#stopAll()
    const simulatedMs = now() - size.START
    const judged = await this.#drive(this.#judge(), now() + size.STOP_MS)
    const outcomes = outcomesOf(judged?.told ?? [])
    const beside = await simulateBeside(this.#seed, this.#random, this.#runFaults)
    return {
      seed: this.#seed,
      violations: [...this.history.judged, ...beside.judged, ...(judged?.violations ?? [])],
      steps: this.#scheduler.steps,
      simulatedMs,
      faults: { ...this.#faults.counts, ...this.#runFaults.counts },
      outcomes,
      runEvents: beside.runEvents,
      ticks: beside.ticks,
      groupStarts: beside.groupStarts,
      signals: beside.signals,
      released: beside.released,
      overtakings: beside.overtakings,
      keysMet: this.history.keysMet,
      blockedLate: this.#limits?.overdue.size ?? 0,
      trace: this.#trace ?? [],
    }
  }

  /** A rejection that no code has handled. */
  expect(error: unknown): void {
    this.history.expectTyped(error)
  }

  /** Closes all connections; the database ends with the last of them. */
  close(): void {
    for (const process of this.#everybody()) process.abandon()
    this.#auditor.close()
  }

  #everybody(): SimProcess[] {
    const members = this.#members.map(({ process }) => process)
    return this.#office === undefined ? members : [...members, this.#office]
  }

  readonly #log = (line: string): void => {
    this.#trace?.push(`${this.#scheduler.clock.now() - size.START} ${line}`)
  }

  async #step(): Promise<void> {
    if (!(await this.#scheduler.step())) throw new Error('nothing happens any more')
    if (this.#scheduler.steps === size.STEPS_MAX) this.history.blame('P15', '', 'it never rests')
  }

  /** Steps for so long in virtual time. */
  async #stepFor(ms: number): Promise<void> {
    let isOver = false
    this.#scheduler.after(ms, () => {
      isOver = true
    })
    while (!isOver) await this.#step()
    this.#checkHeld()
  }

  /** Steps until a promise is settled; returns undefined if that takes too long. */
  async #drive<T>(promise: Promise<T>, deadline: number): Promise<T | undefined> {
    const isOver = () => this.#scheduler.clock.now() > deadline
    const outcome = await this.#scheduler.stepUntilSettled(promise, isOver)
    if (outcome === undefined) {
      this.history.blame('P16', '', 'something never came to its end')
      return undefined
    }
    if ('value' in outcome) return outcome.value
    this.history.blame('P16', '', `it failed without a fault: ${String(outcome.error)}`)
    return undefined
  }

  /** Makes the tables, before anything can go wrong. */
  async #prepare(): Promise<void> {
    const store = await this.#openWell(lifecyclesOf(1))
    await store.close()
    this.#auditor.exec('CREATE TABLE sim_rows (job TEXT NOT NULL, attempt INTEGER NOT NULL)')
    this.#auditor.exec('CREATE TABLE sim_orders (job TEXT PRIMARY KEY)')
  }

  /** A store that nothing happens to. */
  #openWell(lifecycles = EVERY_LIFECYCLE) {
    return openSqliteStore({ path: this.#location, environment: this.#well(), lifecycles })
  }

  #well() {
    const { now } = this.#scheduler.clock
    const clock = { now, host: hostOf(now, () => this.#machineMs) }
    return { clock, timers: this.#scheduler, random: new SeededRandom(1), ids: this.#ids }
  }

  /** The doctor has the last word, by a chance of its own: histories stay what they are. */
  #examine(store: Store, told: readonly Told[]): Promise<Judged[]> {
    const isDamaged = this.#seed % DAMAGED_EVERY === 0
    const random = new SeededRandom(this.#seed)
    return examine(store, this.#well(), this.#auditor, told, { random, isDamaged })
  }

  #newProcess(name: string, skewMs = 0): SimProcess {
    return new SimProcess({
      name,
      scheduler: this.#scheduler,
      faults: this.#faults,
      random: this.#random,
      ids: this.#ids,
      location: this.#location,
      leaseMs: this.#leaseMs,
      skewMs,
      machineMs: () => this.#machineMs,
      onAnswer: (reply) => this.history.note(reply),
      onWrite: (writer) => {
        for (const process of this.#everybody()) if (process !== writer) process.hint()
      },
      log: this.#log,
    })
  }

  /** Starts a worker in a process of its own. */
  #hire(): void {
    const faults = this.#faults
    const isNamesake = this.#names.length > 0 && faults.strikes('same-id')
    const name = isNamesake
      ? (this.#names[faults.between(0, this.#names.length)] as string)
      : `worker-${this.#names.length + 1}`
    if (!isNamesake) this.#names.push(name)
    const skewMs = faults.strikes('clock-skew') ? faults.between(-60_000, 60_000) : 0
    const process = this.#newProcess(name, skewMs)
    const isOld = faults.strikes('old-release')
    const member: Member = { process, isOld, release: this.#release() }
    this.#members.push(member)
    this.#log(`${name} starts, ${skewMs} ms off`)
    void this.#employ(member)
  }

  /** Which of two releases a new process has. */
  #release(): Release {
    return this.#faults.strikes('old-version') ? 1 : 2
  }

  async #employ(member: Member): Promise<void> {
    const { process, isOld, release } = member
    const { environment } = process
    const [{ outside }, limits] = [this.history, this.#limits]
    const jobs = jobsOf(this.#plans, process, this.#faults, outside, { isOld, release, limits })
    try {
      const store = await process.open(lifecyclesOf(release))
      const pawl = await createPawl({ store, environment, jobs, ...limits?.queues })
      const worker = await pawl.work({
        id: process.name,
        concurrency: 3,
        lease: this.#leaseMs,
        poll: 15_000,
        recover: size.RECOVER_MS,
        drain: this.#random.next() < 0.5 ? 0 : 2000,
        onStuck: 'replace',
      })
      member.worker = worker
    } catch (error) {
      this.#endBy(process, error)
    }
  }

  /** Where the client and the operator work; a new one takes over when it dies. */
  #openOffice(): void {
    const process = this.#newProcess('office')
    this.#office = process
    this.#isMeddling = false
    const run = async () => {
      const { environment } = process
      const release = this.#release()
      const [{ outside }, limits] = [this.history, this.#limits]
      const jobs = jobsOf(this.#plans, process, this.#faults, outside, { release, limits })
      const store = await process.open(lifecyclesOf(release))
      const pawl = await createPawl({ store, environment, jobs, ...limits?.queues })
      const desk = { process, pawl, jobs, vandal: this.#vandal, limits }
      const visiting = visit(desk, this.#seed, this.history)
      await Promise.all([this.#enqueueAll(desk), visiting, this.#operate(desk)])
    }
    void run().catch((error) => this.#endBy(process, error))
  }

  /** Goes on where the one before died, until every job is acknowledged. */
  async #enqueueAll(desk: Desk): Promise<void> {
    const { process } = desk
    for (; this.#next < this.#plans.length; this.#next++) {
      const n = this.#next
      const ask = () => enqueueOne(desk, n, this.#plans[n] as Plan, this.history)
      const asked = this.#faults.strikes('enqueue-twice') ? [ask(), ask()] : [ask()]
      if (this.#faults.strikes('client-crash')) {
        this.#scheduler.after(this.#faults.between(0, 100), () => process.crash('crashes'))
      }
      await Promise.all(asked)
      const pauseMs = this.#faults.between(0, 2500)
      await new Promise<void>((resolve) => process.environment.timers.after(pauseMs, resolve))
    }
  }

  /** A person who acts now and then, and approves what waits for approval. */
  async #operate(desk: Desk): Promise<void> {
    const { timers } = desk.process.environment
    for (;;) {
      await new Promise<void>((resolve) => timers.after(4000, resolve))
      this.#isMeddling = true
      await meddle(desk, this.#faults, this.history)
      this.#isMeddling = false
    }
  }

  /** Errors of a process that is already dead, on closed connections, are ignored. */
  #endBy(process: SimProcess, error: unknown): void {
    if (!process.isAlive) return
    this.history.expectTyped(error)
    process.crash('gives up')
  }

  /** Lets things happen to processes, and replaces those that have ended. */
  #startMonkey(): void {
    const act = () => {
      this.#replaceTheDead()
      if (this.#scheduler.clock.now() >= this.#healedAt) return
      this.#strike(this.#members[this.#faults.between(0, this.#members.length)] as Member)
      this.#limits?.look(this.#ledger, this.#storeNow())
      this.#scheduler.after(this.#faults.between(100, 1000), act)
    }
    act()
  }

  #strike(member: Member): void {
    const faults = this.#faults
    const { process } = member
    const lease = this.#leaseMs
    if (faults.strikes('crash')) process.crash('crashes')
    if (faults.strikes('pause')) process.pause(faults.between(1, lease))
    if (faults.strikes('pause-beyond-lease')) {
      process.pause(faults.between(lease, lease * 4))
      if (faults.strikes('stop-while-paused')) this.#stop(member)
    }
    if (faults.strikes('no-heartbeats')) process.deafen(faults.between(lease / 2, lease * 2))
    if (faults.strikes('clock-leap')) process.leap(faults.between(1, 30_000))
    if (faults.strikes('clock-set-back')) process.leap(-faults.between(1, 30_000))
    if (faults.strikes('machine-clock-set')) this.#setClock(faults.between(-120_000, 120_000))
    if (faults.strikes('suspend')) this.#scheduler.leap(faults.between(1000, 120_000))
    if (faults.strikes('stop')) this.#stop(member)
  }

  /** The wall clock of the machine is set, for all its processes. */
  #setClock(ms: number): void {
    this.#log(`the machine's clock is set by ${ms}`)
    this.#machineMs += ms
  }

  #stop(member: Member): void {
    const { worker, process } = member
    if (worker === undefined || member.isStopping) return
    member.isStopping = true
    this.#log(`${process.name} is told to stop`)
    void worker.stop().then(() => process.crash('has stopped'))
    if (this.#faults.strikes('stop-twice')) {
      this.#scheduler.after(this.#faults.between(0, 2000), () => void worker.stop())
    }
    if (this.#faults.strikes('stop-killed')) {
      this.#scheduler.after(this.#faults.between(0, 3000), () => process.crash('is killed'))
    }
  }

  #replaceTheDead(): void {
    this.#members = this.#members.filter(({ process }) => process.isAlive)
    while (this.#members.length < this.#size.workers) this.#hire()
    if (!this.#office?.isAlive) this.#openOffice()
  }

  /** Ends the faults, and replaces every process that is not well. */
  #heal(): void {
    this.#faults.end()
    this.history.isExamined = false
    this.#log('all is well')
    for (const { process, isOld, release, isStopping } of this.#members) {
      const isReplaced = isOld || release === 1 || isStopping
      if (!process.isWell || isReplaced) process.crash('is replaced')
    }
    this.#replaceTheDead()
    // A poisonous job still kills the process that runs it, until its budget is spent.
    const renew = () => {
      this.#replaceTheDead()
      this.#scheduler.after(1000, renew)
    }
    renew()
  }

  /** Everybody else has come to an end: now the damaged ones may. */
  async #repair(): Promise<void> {
    const store = await this.#openWell()
    await repairAll(store, this.#well())
    await store.close()
  }

  #isSettled(): boolean {
    const isAsked = this.#next === this.#plans.length && this.history.visitsLeft === 0
    return isAsked && !this.#isMeddling && this.#ledger.unsettled() === 0
  }

  /** P7: no process holds a job for long whose lease has expired. */
  #checkHeld(): void {
    if (this.#scheduler.clock.now() < this.#healedAt + size.GRACE_MS) return
    this.#seqs ??= this.#ledger.seqs()
    const now = this.#storeNow()
    for (const id of this.#ledger.heldSince(now - size.RECOVER_MS - 2000)) {
      this.history.blame('P7', id, 'is held, though its lease ran out long ago')
    }
    if (this.#vandal.isGuilty) return
    this.history.judged.push(...(this.#limits?.checkBlocked(this.#ledger, now) ?? []))
  }

  #storeNow(): number {
    return Math.max(...this.#everybody().map(({ storeNow }) => storeNow))
  }

  /** P4: who is told that its lease was renewed, holds the job. */
  #checkRenewed(ref: Ref, { attempt }: Fence, now: number): void {
    if (!this.#ledger.isTakenOver(ref, attempt, now)) return
    this.history.blame('P4', String(ref), `attempt ${attempt} was told that it still holds it`)
  }

  async #stopAll(): Promise<void> {
    const stopped = Promise.all(this.#members.map(({ worker }) => worker?.stop()))
    await this.#drive(stopped, this.#scheduler.clock.now() + size.STOP_MS)
  }

  async #judge(): Promise<Verdict> {
    const store = await this.#openWell()
    const verdict = await judge(store, {
      history: this.history,
      ledger: this.#ledger,
      limits: this.#limits,
      seqs: this.#seqs,
      isDamaged: this.#vandal.isGuilty,
      // A job that kills its process takes the leases of its neighbours with it.
      areLeasesSafe: !this.#plans.some(({ isPoison }) => isPoison) && !this.#vandal.isGuilty,
      examine: (told) => this.#examine(store, told),
    })
    await store.close()
    for (const { facts } of verdict.told) {
      for (const { jobId, seq, at, trigger, to } of facts) {
        this.#trace?.push(`${jobId.slice(-4)}.${seq} ${at - size.START} ${trigger} ${to}`)
      }
    }
    return verdict
  }
}
