/**
 * Schedules in the simulation, for some hours around a night in which clocks change. One of the
 * workers has no code of the jobs. The office pauses, resumes, runs, backfills, changes and removes
 * schedules. In the end every tick must have one job, or one record that says why not (P17).
 */
import {
  createPawl,
  defineJob,
  defineSchedule,
  type Pawl,
  type ScheduleDefinition,
  Terminal,
  typed,
} from 'pawl'
import { LIFECYCLES } from 'pawl/rules'
import type { Store } from 'pawl/sqlite'
import { type Judged, readStore } from './checker.ts'
import { judgeReport } from './clinic.ts'
import type { SimProcess } from './process.ts'
import { cronOf, judgeSchedules, type SimTiming } from './schedule-judge.ts'
import { type Member, playWorld, SideWorld, type SideWorldOptions } from './side-world.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const WORKERS = 3
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

const OPTIONS: Omit<SideWorldOptions, 'start'> = {
  name: 'schedules',
  salt: 0x5c4ed,
  faultyMs: 3 * HOUR,
  healedMs: 1.5 * HOUR,
  process: { leaseMs: 10 * MINUTE, hasFaultySchedules: true },
  hasHints: false,
  strikes: [
    ...(['crash', 'pause-beyond-lease', 'clock-leap', 'clock-set-back'] as const),
    ...(['machine-clock-set', 'suspend', 'stop'] as const),
  ],
  restMs: [20_000, 6 * MINUTE],
  pauseMs: [MINUTE, HOUR],
  leapMs: [1, 10 * MINUTE],
  machineMs: [-30 * MINUTE, 30 * MINUTE],
  suspendMs: [MINUTE, 2 * HOUR],
}

/** Plays the schedules of a seed; returns what they break, and how many ticks had a record. */
export async function simulateSchedules(
  seed: number,
): Promise<{ readonly judged: readonly Judged[]; readonly ticks: number }> {
  const { judged, counted } = await playWorld(new ScheduleWorld(seed))
  return { judged, ticks: counted ?? 0 }
}

class ScheduleWorld extends SideWorld<number> {
  protected readonly workers = WORKERS
  readonly #night: (typeof NIGHTS)[number]
  readonly #timings = new Map<string, SimTiming>()

  constructor(seed: number) {
    const night = NIGHTS[seed % NIGHTS.length] as (typeof NIGHTS)[number]
    const start = Date.parse(night.start)
    super(seed, {
      ...OPTIONS,
      start: (random) => start + Math.floor(random.next() * HOUR),
    })
    this.#night = night
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
        if (schedule === undefined) this.blame('P17', 'a job of a schedule does not know it')
        if (input.fails && (schedule?.tick.getTime() ?? 0) % 3 === 0) throw new Terminal('it fails')
      },
    })
  }

  #definition(name: string, process: SimProcess): ScheduleDefinition {
    const faults = this.faults
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

  protected async hire(member: Member): Promise<void> {
    const { process } = member
    const isWithoutCode = !this.isHealed && this.members.length === WORKERS
    const other = defineJob({ name: 'other', run: () => {} })
    const store = await process.open(isWithoutCode ? [] : LIFECYCLES)
    const jobs = isWithoutCode ? [other] : [this.#job(process)]
    const pawl = await createPawl({ store, environment: process.environment, jobs })
    member.worker = await pawl.work({
      ...{ id: process.name, lease: '10m', poll: '5m', recover: '4m', drain: 0 },
      ...{ checkup: false, onStuck: 'replace' },
    })
  }

  /** The operator puts schedules, and meddles with them. */
  protected async runOffice(process: SimProcess): Promise<void> {
    const store = await process.open(LIFECYCLES)
    const jobs = [this.#job(process)]
    const pawl = await createPawl({ store, environment: process.environment, jobs })
    for (;;) {
      await this.#meddle(pawl, process)
      const ms = this.faults.between(MINUTE, 25 * MINUTE)
      await new Promise<void>((resolve) => process.environment.timers.after(ms, resolve))
    }
  }

  async #meddle(pawl: Pawl, process: SimProcess): Promise<void> {
    const faults = this.faults
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
    for (const doIt of this.isHealed ? [() => ann.resumeSchedule(name)] : [put, act]) {
      const exists = await pawl.schedules.get(name).catch(() => undefined)
      // A schedule stays for a while, so that its ticks come.
      if (doIt === put && exists !== undefined) continue
      await doIt().catch((error) => this.expectTyped(error))
    }
    if (!this.isHealed && faults.between(0, 2) === 0) {
      await ann.resumeSchedule(name).catch(() => {})
    }
  }

  #examine(report: Parameters<typeof judgeReport>[0]): void {
    this.judged.push(...judgeReport(report).filter(({ promise }) => promise === 'P17'))
  }

  /** Schedules have no end: the world lasts for as long as it may. */
  protected isSettled(): boolean {
    return false
  }

  protected blameUnsettled(): void {
    if (!this.mayStep()) this.blame('P15', 'the schedules never rest')
  }

  protected async judge(store: Store): Promise<number> {
    const told = await readStore(store)
    const jobs = told.map(({ job }) => job)
    const timingOf = (definition: string) => {
      const { timing } = JSON.parse(definition) as { timing: object }
      return this.#timings.get(timingKey(timing)) as SimTiming
    }
    this.judged.push(...(await judgeSchedules(store, jobs, timingOf)))
    const pawl = await createPawl({ store, environment: this.well() })
    this.#examine(await pawl.doctor().check({ full: true }))
    const { items } = await store.schedules.records({ kind: 'tick' }, { limit: 1000 })
    return items.length
  }
}

/** Definitions are stored as canonical JSON, so the order of fields may differ. */
function timingKey(timing: object): string {
  return JSON.stringify(Object.entries(timing).sort(([a], [b]) => (a < b ? -1 : 1)))
}
