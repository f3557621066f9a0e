/**
 * Schedules in the simulation. Three workers, of which some have no code of the jobs, and an
 * operator share a database for some hours around a night in which clocks change. Workers die,
 * pause and have wrong clocks, the machine sleeps, calls are lost and repeated, and the operator
 * pauses, resumes, runs, backfills, changes and removes schedules. Then all is well, and every tick
 * must have one job, or one record that says why not (P17).
 */
import {
  createPawl,
  defineJob,
  defineSchedule,
  type JobWorker,
  type Pawl,
  PawlError,
  type ScheduleDefinition,
  Terminal,
  typed,
} from 'pawl'
import { LIFECYCLES } from 'pawl/rules'
import type { Store } from 'pawl/sqlite'
import { type Database, openSqliteStore } from 'pawl/sqlite'
import { SeededRandom, SequentialIds } from 'pawl/testing'
import { type Judged, readStore } from './checker.ts'
import { judgeReport } from './clinic.ts'
import { openDatabase } from './database.ts'
import { Faults } from './faults.ts'
import { hostOf, SimProcess } from './process.ts'
import { cronOf, judgeSchedules, type SimTiming } from './schedule-judge.ts'
import { Scheduler } from './scheduler.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const WORKERS = 3
const FAULTY_MS = 3 * HOUR
const HEALED_MS = 1.5 * HOUR
const STEPS_MAX = 60_000
const ZONES = ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'UTC'] as const

/** Shortly before clocks change, and a time of day that does not exist then, or comes twice. */
const NIGHTS = [
  { start: '2026-03-28T23:30Z', timezone: 'Europe/Berlin', minute: 150 },
  { start: '2026-10-24T23:00Z', timezone: 'Europe/Berlin', minute: 150 },
  { start: '2026-03-08T05:30Z', timezone: 'America/New_York', minute: 150 },
  { start: '2026-11-01T04:30Z', timezone: 'America/New_York', minute: 90 },
  { start: '2026-04-04T13:30Z', timezone: 'Australia/Lord_Howe', minute: 105 },
  { start: '2026-10-03T14:00Z', timezone: 'Australia/Lord_Howe', minute: 135 },
  { start: '2026-07-01T00:00Z', timezone: 'UTC', minute: 60 },
] as const

const OVERLAPS = ['skip', 'bufferOne', 'bufferAll', 'cancelOther', 'allowAll'] as const
const MODES = ['none', 'latest', 'all'] as const

let worlds = 0

/** Plays the schedules of a seed; returns what they break, and how many ticks had a record. */
export async function simulateSchedules(
  seed: number,
): Promise<{ readonly judged: readonly Judged[]; readonly ticks: number }> {
  const world = new ScheduleWorld(seed)
  try {
    return await world.play()
  } finally {
    world.close()
  }
}

interface Member {
  readonly process: SimProcess
  worker?: JobWorker
}

class ScheduleWorld {
  readonly #faults: Faults
  readonly #random: SeededRandom
  readonly #scheduler: Scheduler
  readonly #ids = new SequentialIds()
  readonly #location: string
  readonly #auditor: Database
  readonly #night: (typeof NIGHTS)[number]
  readonly #timings = new Map<string, SimTiming>()
  readonly #judged: Judged[] = []
  #members: Member[] = []
  #office: SimProcess | undefined
  #machineMs = 0
  #names = 0
  #isHealed = false

  constructor(seed: number) {
    this.#random = new SeededRandom(seed ^ 0x5c4ed)
    const chance = () => new SeededRandom(Math.floor(this.#random.next() * 2 ** 32))
    this.#faults = new Faults(chance())
    this.#night = NIGHTS[seed % NIGHTS.length] as (typeof NIGHTS)[number]
    const start = Date.parse(this.#night.start)
    this.#scheduler = new Scheduler(start + Math.floor(this.#random.next() * HOUR), chance())
    this.#location = `file:/sim-schedules-${seed}-${++worlds}?vfs=memdb`
    this.#auditor = openDatabase(this.#location)
  }

  close(): void {
    for (const { process } of this.#members) process.abandon()
    this.#office?.abandon()
    this.#auditor.close()
  }

  async play() {
    const { clock } = this.#scheduler
    const healAt = clock.now() + FAULTY_MS
    await this.#drive(this.#openWell().then((store) => store.close()))
    this.#replaceTheDead()
    this.#startMonkey()
    while (clock.now() < healAt && this.#mayStep()) await this.#scheduler.step()
    this.#heal()
    const endAt = clock.now() + HEALED_MS
    while (clock.now() < endAt && this.#mayStep()) await this.#scheduler.step()
    if (!this.#mayStep()) this.#blame('P15', 'the schedules never rest')
    const workers = this.#members.flatMap(({ worker }) => worker ?? [])
    await this.#drive(Promise.all(workers.map((worker) => worker.stop())))
    const ticks = await this.#drive(this.#judge())
    return { judged: this.#judged, ticks: ticks ?? 0 }
  }

  #mayStep(): boolean {
    return this.#scheduler.steps < STEPS_MAX
  }

  #blame(promise: string, what: string): void {
    this.#judged.push({ promise, job: '', what, facts: [] })
  }

  /** Lets things happen until a promise is settled. */
  async #drive<T>(promise: Promise<T>): Promise<T | undefined> {
    let outcome: { value: T } | { error: unknown } | undefined
    promise.then(
      (value) => {
        outcome = { value }
      },
      (error) => {
        outcome = { error }
      },
    )
    await new Promise<void>((resolve) => setImmediate(resolve))
    for (let i = 0; outcome === undefined && i < STEPS_MAX; i++) await this.#scheduler.step()
    if (outcome !== undefined && 'value' in outcome) return outcome.value
    this.#blame('P16', `something failed: ${String(outcome?.error ?? 'it never ended')}`)
    return undefined
  }

  #openWell(): Promise<Store> {
    return openSqliteStore({ path: this.#location, environment: this.#well() })
  }

  #well() {
    const { now } = this.#scheduler.clock
    const clock = { now, host: hostOf(now, () => this.#machineMs) }
    return { clock, timers: this.#scheduler, random: new SeededRandom(1), ids: this.#ids }
  }

  #newProcess(name: string): SimProcess {
    const isSkewed = this.#faults.strikes('clock-skew')
    return new SimProcess({
      name,
      scheduler: this.#scheduler,
      faults: this.#faults,
      random: this.#random,
      ids: this.#ids,
      location: this.#location,
      leaseMs: 10 * MINUTE,
      skewMs: isSkewed ? this.#faults.between(-60_000, 60_000) : 0,
      machineMs: () => this.#machineMs,
      hasFaultySchedules: true,
      onAnswer: () => {},
      onWrite: () => {},
      log: () => {},
    })
  }

  /** Jobs take some time, so that ticks meet open ones; some fail. */
  #job(process: SimProcess) {
    return defineJob({
      name: 'ticked',
      input: typed<{ ms: number; fails: boolean }>(),
      crashesMax: 50,
      releasesMax: 1000,
      retry: { max: 20, delay: '1m' },
      run: async ({ input, signal, schedule }) => {
        await new Promise<void>((resolve) => {
          const timer = process.environment.timers.after(input.ms, resolve)
          signal.addEventListener('abort', () => {
            timer.cancel()
            resolve()
          })
        })
        signal.throwIfAborted()
        if (schedule === undefined) this.#blame('P17', 'a job of a schedule does not know it')
        if (input.fails && (schedule?.tick.getTime() ?? 0) % 3 === 0) throw new Terminal('it fails')
      },
    })
  }

  #definition(name: string, process: SimProcess): ScheduleDefinition {
    const faults = this.#faults
    const pick = <T>(list: readonly T[]): T => list[faults.between(0, list.length)] as T
    const timezone = pick(ZONES)
    const drawn = pick<SimTiming>([
      { kind: 'every', everyMs: pick([7, 10, 31]) * MINUTE },
      { kind: 'steps', minutes: pick([5, 10, 30]), timezone },
      { kind: 'daily', minute: pick([90, 125, 150, 0, 45]), timezone },
    ])
    const timing: SimTiming = name === 's0' ? { kind: 'daily', ...this.#night } : drawn
    const common = {
      ...{ name, job: this.#job(process), overlap: pick(OVERLAPS) },
      input: { ms: pick([0, 1000, 6 * MINUTE]), fails: pick([false, true]) },
      catchUp: { mode: pick(MODES), within: pick(['2m', '1h', '1d'] as const) },
      ...(pick([false, true]) && { jitter: '90s' as const }),
      pauseOnFailure: pick([false, false, true]),
    }
    const definition =
      timing.kind === 'every'
        ? defineSchedule({ ...common, every: timing.everyMs })
        : defineSchedule({ ...common, cron: cronOf(timing), timezone: timing.timezone })
    this.#timings.set(timingKey(definition.rules.timing), timing)
    return definition
  }

  #replaceTheDead(): void {
    this.#members = this.#members.filter(({ process }) => process.isAlive)
    while (this.#members.length < WORKERS) this.#hire()
    if (!this.#office?.isAlive) this.#openOffice()
  }

  #hire(): void {
    const process = this.#newProcess(`worker-${++this.#names}`)
    const member: Member = { process }
    this.#members.push(member)
    const isWithoutCode = !this.#isHealed && this.#members.length === WORKERS
    const other = defineJob({ name: 'other', run: () => {} })
    void (async () => {
      const store = await process.open(isWithoutCode ? [] : LIFECYCLES)
      const jobs = isWithoutCode ? [other] : [this.#job(process)]
      const pawl = await createPawl({ store, environment: process.environment, jobs })
      member.worker = await pawl.work({
        ...{ id: process.name, lease: '10m', poll: '5m', recover: '4m', drain: 0 },
        ...{ checkup: false, onStuck: 'replace' },
      })
    })().catch((error) => this.#endBy(process, error))
  }

  #endBy(process: SimProcess, error: unknown): void {
    if (!process.isAlive) return
    if (!(error instanceof PawlError)) this.#blame('P16', `an error is not typed: ${String(error)}`)
    process.crash('gives up')
  }

  /** The operator puts schedules, and meddles with them. */
  #openOffice(): void {
    const process = this.#newProcess('office')
    this.#office = process
    void (async () => {
      const store = await process.open(LIFECYCLES)
      const jobs = [this.#job(process)]
      const pawl = await createPawl({ store, environment: process.environment, jobs })
      for (;;) {
        await this.#meddle(pawl, process)
        const ms = this.#faults.between(MINUTE, 25 * MINUTE)
        await new Promise<void>((resolve) => process.environment.timers.after(ms, resolve))
      }
    })().catch((error) => this.#endBy(process, error))
  }

  async #meddle(pawl: Pawl, process: SimProcess): Promise<void> {
    const faults = this.#faults
    const ann = pawl.operator({ name: 'ann', reason: 'to see what happens' })
    const name = `s${faults.between(0, 3)}`
    const now = pawl.store.now()
    const from = new Date(now - faults.between(0, 2 * HOUR))
    const overlap = faults.between(0, 2) === 0 ? 'allowAll' : 'bufferAll'
    const acts: readonly (() => Promise<unknown>)[] = [
      () => ann.pauseSchedule(name),
      () => ann.runScheduleNow(name),
      () => ann.backfillSchedule(name, { from, to: new Date(now), overlap }),
      () => pawl.schedules.put(this.#definition(name, process)),
      () => ann.removeSchedule(name),
      () =>
        pawl
          .doctor()
          .check({ full: true })
          .then((report) => this.#examine(report)),
    ]
    const act = acts[faults.between(0, acts.length)] as () => Promise<unknown>
    const put = () => pawl.schedules.put(this.#definition(name, process))
    for (const doIt of this.#isHealed ? [() => ann.resumeSchedule(name)] : [put, act]) {
      const exists = await pawl.schedules.get(name).catch(() => undefined)
      // A schedule stays for a while, so that its ticks come.
      if (doIt === put && exists !== undefined) continue
      await doIt().catch((error) => {
        if (error instanceof PawlError) return
        this.#blame('P16', `an error is not typed: ${String(error)}`)
      })
    }
    if (!this.#isHealed && faults.between(0, 2) === 0) {
      await ann.resumeSchedule(name).catch(() => {})
    }
  }

  #examine(report: Parameters<typeof judgeReport>[0]): void {
    this.#judged.push(...judgeReport(report).filter(({ promise }) => promise === 'P17'))
  }

  #startMonkey(): void {
    const act = () => {
      this.#replaceTheDead()
      this.#scheduler.after(this.#faults.between(20_000, 6 * MINUTE), act)
      if (this.#isHealed) return
      const faults = this.#faults
      const member = this.#members[faults.between(0, this.#members.length)]
      if (member === undefined) return
      const { process, worker } = member
      if (faults.strikes('crash')) process.crash('crashes')
      if (faults.strikes('pause-beyond-lease')) process.pause(faults.between(MINUTE, HOUR))
      if (faults.strikes('clock-leap')) process.leap(faults.between(1, 10 * MINUTE))
      if (faults.strikes('clock-set-back')) process.leap(-faults.between(1, 10 * MINUTE))
      if (faults.strikes('machine-clock-set')) {
        this.#machineMs += faults.between(-30 * MINUTE, 30 * MINUTE)
      }
      if (faults.strikes('suspend')) this.#scheduler.leap(faults.between(MINUTE, 2 * HOUR))
      if (faults.strikes('stop')) void worker?.stop().then(() => process.crash('has stopped'))
    }
    act()
  }

  #heal(): void {
    this.#faults.end()
    this.#isHealed = true
    for (const { process } of this.#members) process.crash('is replaced')
    this.#office?.crash('is replaced')
    this.#replaceTheDead()
  }

  async #judge(): Promise<number> {
    const store = await this.#openWell()
    const told = await readStore(store)
    const jobs = told.map(({ job }) => job)
    const timingOf = (definition: string) => {
      const { timing } = JSON.parse(definition) as { timing: object }
      return this.#timings.get(timingKey(timing)) as SimTiming
    }
    this.#judged.push(...(await judgeSchedules(store, jobs, timingOf)))
    const pawl = await createPawl({ store, environment: this.#well() })
    this.#examine(await pawl.doctor().check({ full: true }))
    const { items } = await store.schedules.records({ kind: 'tick' }, { limit: 1000 })
    await store.close()
    return items.length
  }
}

/** Definitions are stored as canonical JSON, so the order of fields may differ. */
function timingKey(timing: object): string {
  return JSON.stringify(Object.entries(timing).sort(([a], [b]) => (a < b ? -1 : 1)))
}
