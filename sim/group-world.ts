/**
 * Groups and priorities in the simulation. The office enqueues jobs of groups that take turns, of
 * strict groups, and of a queue in which some jobs are ahead of others; it also cancels, parks and
 * discards. Handlers fail. In the end `group-judge.ts` and `order-judge.ts` read the ledger.
 */
import { createPawl, defineJob, type Pawl, Retryable, type RunnableJob, typed } from 'pawl'
import { LIFECYCLES } from 'pawl/rules'
import type { Store } from 'pawl/sqlite'
import { type Judged, judgeJobs, readStore } from './checker.ts'
import { judgeReport } from './clinic.ts'
import type { Faults } from './faults.ts'
import { type GroupPlan, judgeGroups } from './group-judge.ts'
import { judgeOrder } from './order-judge.ts'
import type { SimProcess } from './process.ts'
import { type Member, playWorld, SideWorld, type SideWorldOptions } from './side-world.ts'
import { START } from './sizes.ts'

const LEASE_MS = 3000
const JOBS = [25, 60] as const
/** The weight of each group that takes turns, by its key. */
const WEIGHTS = [1, 1, 2, 3] as const
const STRICT_KEYS = 3
/** Below it: by how much jobs are ahead of others. */
const AHEAD_MS = 6000

const OPTIONS: SideWorldOptions = {
  name: 'groups',
  salt: 0x960095,
  start: () => START,
  faultyMs: 25_000,
  healedMs: 30 * 60_000,
  process: { leaseMs: LEASE_MS },
  hasHints: true,
  strikes: [
    ...(['crash', 'pause-beyond-lease', 'clock-leap', 'machine-clock-set'] as const),
    ...(['suspend', 'stop'] as const),
  ],
  restMs: [200, 1500],
  pauseMs: [LEASE_MS, 4 * LEASE_MS],
  leapMs: [1, 30_000],
  machineMs: [-60_000, 60_000],
  suspendMs: [1000, 60_000],
}

type Input = {
  readonly n: number
  readonly key: number
  readonly ms: number
  readonly fails: number
}

interface GroupOutcome {
  readonly judged: readonly Judged[]
  /** How many jobs started. */
  readonly starts: number
  /** How often a job was claimed before another one because it is ahead. */
  readonly overtakings: number
}

/** Plays the groups of a seed; returns what they break, and how many jobs of them started. */
export async function simulateGroups(seed: number): Promise<GroupOutcome> {
  const { judged, counted } = await playWorld(new GroupWorld(seed))
  return { judged, starts: 0, overtakings: 0, ...counted }
}

class GroupWorld extends SideWorld<Omit<GroupOutcome, 'judged'>> {
  protected readonly workers: number
  readonly #plans: readonly GroupPlan[]
  readonly #isSkipping: boolean
  readonly #acknowledged = new Set<string>()
  /** Those that are claimed by priority. */
  readonly #line = new Set<string>()
  #next = 0

  constructor(seed: number) {
    super(seed, OPTIONS)
    const { faults } = this
    this.workers = faults.between(2, 4)
    this.#isSkipping = faults.between(0, 2) === 0
    this.#plans = Array.from({ length: faults.between(...JOBS) }, (_, n) => planOf(n, faults))
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

  protected async hire(member: Member): Promise<void> {
    const { process } = member
    const store = await process.open(LIFECYCLES)
    const jobs = Object.values(this.#jobs(process))
    const pawl = await createPawl({ store, environment: process.environment, jobs })
    member.worker = await pawl.work({
      ...{ id: process.name, concurrency: 2, lease: LEASE_MS, poll: 5000, recover: 3000 },
      ...{ drain: 0, checkup: false, onStuck: 'replace' },
    })
  }

  /** Enqueues, and decides on what is parked: a strict group may wait for it. */
  protected async runOffice(process: SimProcess): Promise<void> {
    const store = await process.open(LIFECYCLES)
    const jobs = this.#jobs(process)
    const pawl = await createPawl({
      ...{ store, environment: process.environment, jobs: Object.values(jobs) },
    })
    for (;;) {
      await this.#enqueueSome(pawl, jobs)
      await this.#meddle(pawl).catch((error) => this.expectTyped(error))
      const ms = this.faults.between(200, 3000)
      await new Promise<void>((resolve) => process.environment.timers.after(ms, resolve))
    }
  }

  /** Several at once, so that groups have to wait; an answer that is lost is asked for again. */
  async #enqueueSome(pawl: Pawl, jobs: GroupJobs): Promise<void> {
    const end = Math.min(this.#plans.length, this.#next + this.faults.between(1, 12))
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
        this.expectTyped(error)
        return
      }
    }
  }

  async #meddle(pawl: Pawl): Promise<void> {
    const faults = this.faults
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
      if (this.isHealed || faults.between(0, 3) === 0) await ann.discard(id)
  }

  protected isSettled(): boolean {
    return this.#next >= this.#plans.length && this.haveJobsEnded()
  }

  protected blameUnsettled(): void {
    if (!this.isSettled()) this.blame('P15', 'the jobs of groups do not come to their end')
  }

  protected async judge(store: Store): Promise<Omit<GroupOutcome, 'judged'>> {
    const told = await readStore(store)
    const ledger = this.auditor
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
    const pawl = await createPawl({ store, environment: this.well() })
    const examined = judgeReport(await pawl.doctor().check({ full: true }))
    this.judged.push(...judgeJobs(told, store.now()), ...judged, ...order.judged, ...examined)
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
