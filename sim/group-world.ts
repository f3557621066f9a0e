/**
 * Groups and priorities in the simulation. Two or three workers and an office share a database. The
 * office enqueues jobs of groups that take turns, of strict groups, and of a queue in which some
 * are ahead of others. Workers die and pause, handlers
 * fail, calls are lost and repeated, jobs are cancelled, parked and discarded. Then all is well,
 * every job comes to its end, and `group-judge.ts` and `order-judge.ts` read
 * the ledger.
 */
import {
  createPawl,
  defineJob,
  type JobWorker,
  type Pawl,
  PawlError,
  Retryable,
  type RunnableJob,
  typed,
} from 'pawl'
import { LIFECYCLES } from 'pawl/rules'
import { type Database, openSqliteStore, type Store } from 'pawl/sqlite'
import { SeededRandom, SequentialIds } from 'pawl/testing'
import { type Judged, judgeJobs, readStore } from './checker.ts'
import { judgeReport } from './clinic.ts'
import { openDatabase } from './database.ts'
import { Faults } from './faults.ts'
import { type GroupPlan, judgeGroups } from './group-judge.ts'
import { judgeOrder } from './order-judge.ts'
import { hostOf, SimProcess } from './process.ts'
import { Scheduler } from './scheduler.ts'
import { START } from './sizes.ts'

const LEASE_MS = 3000
const FAULTY_MS = 25_000
const HEALED_MS = 30 * 60_000
const STEPS_MAX = 60_000
const JOBS = [25, 60] as const
/** The weight of each group that takes turns, by its key. */
const WEIGHTS = [1, 1, 2, 3] as const
const STRICT_KEYS = 3
/** Below it: by how much jobs are ahead of others. */
const AHEAD_MS = 6000

type Input = {
  readonly n: number
  readonly key: number
  readonly ms: number
  readonly fails: number
}

let worlds = 0

interface GroupOutcome {
  readonly judged: readonly Judged[]
  /** How many jobs started. */
  readonly starts: number
  /** How often a job was claimed before another one because it is ahead. */
  readonly overtakings: number
}

/** Plays the groups of a seed; returns what they break, and how many jobs of them started. */
export async function simulateGroups(seed: number): Promise<GroupOutcome> {
  const world = new GroupWorld(seed)
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

class GroupWorld {
  readonly #faults: Faults
  readonly #random: SeededRandom
  readonly #scheduler: Scheduler
  readonly #ids = new SequentialIds()
  readonly #location: string
  readonly #auditor: Database
  readonly #plans: readonly GroupPlan[]
  readonly #workers: number
  readonly #isSkipping: boolean
  readonly #judged: Judged[] = []
  readonly #acknowledged = new Set<string>()
  /** Those that are claimed by priority. */
  readonly #line = new Set<string>()
  #members: Member[] = []
  #office: SimProcess | undefined
  #names = 0
  #next = 0
  #machineMs = 0
  #isHealed = false

  constructor(seed: number) {
    this.#random = new SeededRandom(seed ^ 0x960095)
    const chance = () => new SeededRandom(Math.floor(this.#random.next() * 2 ** 32))
    this.#faults = new Faults(chance())
    this.#scheduler = new Scheduler(START, chance())
    this.#location = `file:/sim-groups-${seed}-${++worlds}?vfs=memdb`
    this.#auditor = openDatabase(this.#location)
    const faults = this.#faults
    this.#workers = faults.between(2, 4)
    this.#isSkipping = faults.between(0, 2) === 0
    this.#plans = Array.from({ length: faults.between(...JOBS) }, (_, n) => planOf(n, faults))
  }

  close(): void {
    for (const { process } of this.#members) process.abandon()
    this.#office?.abandon()
    this.#auditor.close()
  }

  async play(): Promise<GroupOutcome> {
    const { clock } = this.#scheduler
    const healAt = clock.now() + FAULTY_MS
    await this.#drive(this.#openWell().then((store) => store.close()))
    this.#replaceTheDead()
    this.#startMonkey()
    while (clock.now() < healAt && this.#mayStep()) await this.#scheduler.step()
    this.#heal()
    const endAt = clock.now() + HEALED_MS
    while (clock.now() < endAt && !this.#isSettled() && this.#mayStep()) {
      await this.#scheduler.step()
    }
    if (!this.#isSettled()) this.#blame('P15', 'the jobs of groups do not come to their end')
    const workers = this.#members.flatMap(({ worker }) => worker ?? [])
    await this.#drive(Promise.all(workers.map((worker) => worker.stop())))
    const counted = await this.#drive(this.#judge())
    return { judged: this.#judged, starts: 0, overtakings: 0, ...counted }
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
    return new SimProcess({
      name,
      scheduler: this.#scheduler,
      faults: this.#faults,
      random: this.#random,
      ids: this.#ids,
      location: this.#location,
      leaseMs: LEASE_MS,
      skewMs: this.#faults.strikes('clock-skew') ? this.#faults.between(-60_000, 60_000) : 0,
      machineMs: () => this.#machineMs,
      onAnswer: () => {},
      onWrite: (writer) => {
        for (const { process } of this.#members) if (process !== writer) process.hint()
      },
      log: () => {},
    })
  }

  #jobs(process: SimProcess): GroupJobs {
    const common = { crashesMax: 8, retry: { max: 3, delay: '1s' }, input: typed<Input>() } as const
    const run = async ({ input, attempt, signal }: RunContext) => {
      await new Promise<void>((resolve) => process.environment.timers.after(input.ms, resolve))
      signal.throwIfAborted()
      if (attempt <= input.fails) throw new Retryable(`failure ${attempt}`)
      return attempt
    }
    const key = (input: Input) => `k${input.key}`
    const weight = ({ key }: Input) => WEIGHTS[key] as number
    const onParked = this.#isSkipping ? 'skip' : 'hold'
    return {
      turn: defineJob({ ...common, name: 'turn', queue: 'turns', group: { key, weight }, run }),
      strict: defineJob({
        ...{ ...common, name: 'strict', queue: 'rows', run },
        group: { key, order: 'strict', onParked },
      }),
      line: defineJob({ ...common, name: 'line', queue: 'lines', run }),
    }
  }

  #replaceTheDead(): void {
    this.#members = this.#members.filter(({ process }) => process.isAlive)
    while (this.#members.length < this.#workers) this.#hire()
    if (!this.#office?.isAlive) this.#openOffice()
  }

  #hire(): void {
    const process = this.#newProcess(`worker-${++this.#names}`)
    const member: Member = { process }
    this.#members.push(member)
    void (async () => {
      const store = await process.open(LIFECYCLES)
      const jobs = Object.values(this.#jobs(process))
      const pawl = await createPawl({ store, environment: process.environment, jobs })
      member.worker = await pawl.work({
        ...{ id: process.name, concurrency: 2, lease: LEASE_MS, poll: 5000, recover: 3000 },
        ...{ drain: 0, checkup: false, onStuck: 'replace' },
      })
    })().catch((error) => this.#endBy(process, error))
  }

  #endBy(process: SimProcess, error: unknown): void {
    if (!process.isAlive) return
    if (!(error instanceof PawlError)) this.#blame('P16', `an error is not typed: ${String(error)}`)
    process.crash('gives up')
  }

  /** Enqueues, and decides on what is parked: a strict group may wait for it. */
  #openOffice(): void {
    const process = this.#newProcess('office')
    this.#office = process
    void (async () => {
      const store = await process.open(LIFECYCLES)
      const jobs = this.#jobs(process)
      const pawl = await createPawl({
        ...{ store, environment: process.environment, jobs: Object.values(jobs) },
      })
      for (;;) {
        await this.#enqueueSome(pawl, jobs)
        await this.#meddle(pawl).catch((error) => this.#expectTyped(error))
        const ms = this.#faults.between(200, 3000)
        await new Promise<void>((resolve) => process.environment.timers.after(ms, resolve))
      }
    })().catch((error) => this.#endBy(process, error))
  }

  #expectTyped(error: unknown): void {
    if (!(error instanceof PawlError)) this.#blame('P16', `an error is not typed: ${String(error)}`)
  }

  /** Several at once, so that groups have to wait; an answer that is lost is asked for again. */
  async #enqueueSome(pawl: Pawl, jobs: GroupJobs): Promise<void> {
    const end = Math.min(this.#plans.length, this.#next + this.#faults.between(1, 12))
    for (; this.#next < end; this.#next++) {
      const plan = this.#plans[this.#next] as GroupPlan
      const { n, kind, key, ms, fails, priority, delayMs } = plan
      const definition = jobs[kind]
      const options = { key: `job ${n}`, priority, delay: delayMs }
      try {
        const { id } = await pawl.enqueue(definition, { n, key, ms, fails }, options)
        this.#acknowledged.add(id)
        if (kind === 'line') this.#line.add(id)
      } catch (error) {
        this.#expectTyped(error)
        return
      }
    }
  }

  async #meddle(pawl: Pawl): Promise<void> {
    const faults = this.#faults
    const ann = pawl.operator({ name: 'ann', reason: 'to see what happens' })
    const ids = [...this.#acknowledged]
    const one = () => ids[faults.between(0, ids.length)] as string
    if (ids.length > 0 && faults.strikes('cancel')) await ann.cancel(one())
    if (ids.length > 0 && faults.strikes('quarantine')) await ann.quarantine(one())
    const line = [...this.#line]
    if (line.length > 0 && faults.between(0, 3) === 0) {
      const id = line[faults.between(0, line.length)] as string
      await ann.prioritise(id, { ahead: faults.between(0, AHEAD_MS) })
    }
    const { items } = await pawl.store.list({ lane: 'parked' }, { limit: 100 })
    for (const { id } of items)
      if (this.#isHealed || faults.between(0, 3) === 0) await ann.discard(id)
  }

  #startMonkey(): void {
    const act = () => {
      this.#replaceTheDead()
      this.#scheduler.after(this.#faults.between(200, 1500), act)
      if (this.#isHealed) return
      const faults = this.#faults
      const member = this.#members[faults.between(0, this.#members.length)] as Member
      const { process, worker } = member
      if (faults.strikes('crash')) process.crash('crashes')
      if (faults.strikes('pause-beyond-lease'))
        process.pause(faults.between(LEASE_MS, 4 * LEASE_MS))
      if (faults.strikes('clock-leap')) process.leap(faults.between(1, 30_000))
      if (faults.strikes('machine-clock-set')) this.#machineMs += faults.between(-60_000, 60_000)
      if (faults.strikes('suspend')) this.#scheduler.leap(faults.between(1000, 60_000))
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

  #isSettled(): boolean {
    if (this.#next < this.#plans.length) return false
    try {
      const sql = 'SELECT 1 AS open FROM pawl_jobs WHERE lane <> 5 LIMIT 1'
      return this.#auditor.prepare(sql).all().length === 0
    } catch {
      return false
    }
  }

  async #judge(): Promise<Omit<GroupOutcome, 'judged'>> {
    const store = await this.#openWell()
    const told = await readStore(store)
    const ledger = this.#auditor
      .prepare(
        'SELECT j.id, l.seq FROM pawl_ledger l JOIN pawl_jobs j ON j.rid = l.job ORDER BY l.pos',
      )
      .all() as { id: string; seq: number }[]
    const planOf = new Map(
      told.flatMap(({ job: { id, key } }) => {
        const plan = this.#plans[Number(key?.slice('job '.length))]
        return plan === undefined ? [] : [[id, plan] as const]
      }),
    )
    const isSkipping = this.#isSkipping
    const { judged, starts } = judgeGroups({ told, ledger, planOf, weights: WEIGHTS, isSkipping })
    const isOrdered = (id: string) => planOf.get(id)?.kind === 'line'
    const order = judgeOrder({ told, ledger, isOrdered })
    const pawl = await createPawl({ store, environment: this.#well() })
    const examined = judgeReport(await pawl.doctor().check({ full: true }))
    this.#judged.push(...judgeJobs(told, store.now()), ...judged, ...order.judged, ...examined)
    await store.close()
    return { starts, overtakings: order.overtakings }
  }
}

/** Priority and due time do not change the order of a strict group; turns have neither. */
function planOf(n: number, faults: Faults): GroupPlan {
  const kind = (['turn', 'strict', 'line'] as const)[faults.between(0, 3)] as GroupPlan['kind']
  const key = faults.between(0, kind === 'strict' ? STRICT_KEYS : WEIGHTS.length)
  const fails = faults.strikes('handler-fails') ? faults.between(1, 5) : 0
  const common = { n, kind, key, fails, ms: faults.between(0, 1200) }
  const delayMs = faults.between(0, 900)
  if (kind === 'turn') return { ...common, priority: 0, delayMs: 0 }
  if (kind === 'strict') return { ...common, priority: faults.between(-3, 4), delayMs }
  const isAhead = faults.between(0, 2) === 0
  const priority = isAhead ? { ahead: faults.between(0, AHEAD_MS) } : 0
  return { ...common, priority, delayMs: n % 3 === 0 ? delayMs : 0 }
}

type GroupJob = RunnableJob<Input, Input, unknown>
type GroupJobs = Readonly<Record<GroupPlan['kind'], GroupJob>>

interface RunContext {
  readonly input: Input
  readonly attempt: number
  readonly signal: AbortSignal
}
