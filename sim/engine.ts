/**
 * The engine under faults, in virtual time. One seed is one history: a few processes with a worker
 * each, on one store in memory; jobs that succeed, fail, commit rows, take long or ignore their
 * signals; a client that cancels some of them. While faults last, processes crash, pause beyond
 * their leases, have their clocks set, and lose, repeat or are refused calls of the store. Then
 * everything heals, and every job must come out (P15), each effect once (P3), every promise kept.
 *
 * The same seed gives the same history: time, chance and ids come from it, and nothing here waits
 * for the real world.
 */
import {
  checkFacts,
  checkP9,
  createPawl,
  type Fact,
  findLifecycle,
  type Job,
  type Pawl,
} from 'pawl'
import { openSqliteStore, type Store } from 'pawl/sqlite'
import { SeededRandom, type TestEnvironment, testEnvironment } from 'pawl/testing'
import { jobsOf, type World as Outside, type Plan, planOf } from './jobs.ts'
import { type CallFault, type Fate, SimProcess } from './process.ts'

/** What a seed came to. */
export interface SimResult {
  readonly seed: number
  readonly violations: readonly string[]
  readonly simulatedMs: number
  readonly faults: Readonly<Record<string, number>>
  readonly outcomes: Readonly<Record<string, number>>
  /** What happened, in order; the same for the same seed. */
  readonly trace: string
}

const PROCESSES = 3
const JOBS = 14
const LEASE_MS = 5000
const STEP_MS = 50
const FAULTY_MS = 60_000
const HEALED_MS = 30 * 60_000
const CALL_FAULTS: readonly CallFault[] = ['refused', 'lost-reply', 'duplicate']

/** Plays one seed. */
export async function simulate(seed: number): Promise<SimResult> {
  const environment = testEnvironment({ seed })
  const store = await openSqliteStore({ path: ':memory:', environment })
  try {
    return await new World(seed, environment, store).play()
  } finally {
    await store.close()
  }
}

interface Member {
  readonly process: SimProcess
  readonly pawl: Pawl
}

class World {
  readonly #seed: number
  readonly #environment: TestEnvironment
  readonly #store: Store
  readonly #random: SeededRandom
  readonly #plan: readonly Plan[]
  readonly #faults: Record<string, number> = {}
  readonly #outside: Outside = { delivered: [], stepped: [] }
  #members: Member[] = []
  #areFaultsOn = true

  constructor(seed: number, environment: TestEnvironment, store: Store) {
    this.#seed = seed
    this.#environment = environment
    this.#store = store
    this.#random = new SeededRandom(seed)
    this.#plan = Array.from({ length: JOBS }, (_, n) => planOf(n, this.#random))
  }

  async play(): Promise<SimResult> {
    const start = this.#environment.clock.now()
    for (let i = 0; i < PROCESSES; i++) await this.#hire()
    const ids = await this.#enqueueAll()
    while (this.#environment.clock.now() - start < FAULTY_MS) {
      await this.#misfortune()
      await this.#cancelSometimes(ids)
      await this.#tick()
    }
    this.#areFaultsOn = false
    const healedAt = this.#environment.clock.now()
    while (!(await this.#isAllSettled(ids))) {
      if (this.#environment.clock.now() - healedAt > HEALED_MS) break
      await this.#replaceTheDead()
      await this.#tick()
    }
    for (const { process } of this.#members) process.crash()
    return this.#judge(ids, this.#environment.clock.now() - start)
  }

  async #hire(): Promise<void> {
    const process = new SimProcess(this.#environment, this.#store, this.#fate)
    const jobs = jobsOf(this.#plan, process.environment.timers, this.#outside)
    const { environment, store } = process
    const pawl = await createPawl({ store, environment, jobs })
    await pawl.work({ concurrency: 2, lease: LEASE_MS, drain: 1000 })
    this.#members.push({ process, pawl })
  }

  readonly #fate: Fate = (verb) => {
    if (!this.#areFaultsOn || this.#random.next() > 0.04) return undefined
    const fault = this.#pick(CALL_FAULTS)
    // A claim that is made twice would only be one that is lost.
    if (fault === 'duplicate' && verb.startsWith('claim')) return undefined
    this.#count(fault)
    return fault
  }

  async #enqueueAll(): Promise<string[]> {
    const jobs = jobsOf(this.#plan, this.#environment.timers, this.#outside)
    const pawl = await createPawl({ store: this.#store, environment: this.#environment, jobs })
    const ids: string[] = []
    for (const [n, plan] of this.#plan.entries()) {
      const job = jobs.find(({ name }) => name === plan.kind)
      if (job === undefined) throw new Error(`no job is named ${plan.kind}`)
      const delay = this.#random.next() < 0.3 ? Math.floor(this.#random.next() * 20_000) : 0
      ids.push((await pawl.enqueue(job, { n }, { key: `job ${n}`, delay })).id)
    }
    return ids
  }

  /** Now and then something happens to a process. */
  async #misfortune(): Promise<void> {
    if (this.#random.next() > 0.02) return
    const member = this.#pick(this.#members)
    const kind = this.#pick(['crash', 'pause', 'clock'] as const)
    this.#count(kind)
    if (kind === 'pause') member.process.pause(LEASE_MS * (0.5 + this.#random.next() * 3))
    else if (kind === 'clock') member.process.clockOffset += (this.#random.next() - 0.5) * 1_200_000
    else member.process.crash()
    await this.#replaceTheDead()
  }

  async #replaceTheDead(): Promise<void> {
    this.#members = this.#members.filter(({ process }) => process.isAlive)
    while (this.#members.length < PROCESSES) await this.#hire()
  }

  async #cancelSometimes(ids: readonly string[]): Promise<void> {
    if (this.#random.next() > 0.002) return
    this.#count('cancel')
    await this.#store.cancel([this.#pick(ids)], { actor: 'client' })
  }

  /** Lets happen what needs no time, then moves the time on. */
  async #tick(): Promise<void> {
    for (let turn = 0; turn < 6; turn++) {
      await new Promise<void>((resolve) => setImmediate(resolve))
    }
    this.#environment.advance(STEP_MS)
  }

  async #isAllSettled(ids: readonly string[]): Promise<boolean> {
    for (const id of ids) {
      const job = await this.#store.get(id)
      if (job !== undefined && !isSettled(job)) return false
    }
    return true
  }

  async #judge(ids: readonly string[], simulatedMs: number): Promise<SimResult> {
    const violations: string[] = []
    const outcomes: Record<string, number> = {}
    const trace: string[] = []
    for (const [n, id] of ids.entries()) {
      const job = await this.#store.get(id)
      const facts = await this.#store.facts(id)
      if (job === undefined) {
        violations.push(`P1: job ${n} is gone`)
        continue
      }
      violations.push(...this.#faultsOf(n, job, facts), ...(await this.#effectsOf(n, job)))
      violations.push(...this.#outsideOf(n, job, facts))
      outcomes[job.state] = (outcomes[job.state] ?? 0) + 1
      trace.push(
        facts.map(({ seq, at, trigger, to }) => `${n}.${seq} ${at} ${trigger} ${to}`).join('\n'),
      )
    }
    const faults = { ...this.#faults }
    return { seed: this.#seed, violations, simulatedMs, faults, outcomes, trace: trace.join('\n') }
  }

  /** The rows that a job's commit has written, which it counts itself in its result. */
  async #effectsOf(n: number, job: Job): Promise<string[]> {
    const doesCommit = job.type === 'commits' || job.type === 'sends'
    if (!doesCommit || job.outcome !== 'succeeded') return []
    const texts = await this.#store.payloads(job.id)
    const rows = (JSON.parse(texts?.result ?? '[]') as unknown[]).length
    return rows === 1 ? [] : [`P3: job ${n} has ${rows} effects`]
  }

  /** Every effect was delivered, under its own key; no step ran again whose result was there. */
  #outsideOf(n: number, job: Job, facts: readonly Fact[]): string[] {
    if (job.type !== 'sends') return []
    const { delivered, stepped } = this.#outside
    const count = facts.find(({ trigger }) => trigger === 'commit')?.effects ?? 0
    const wanted = Array.from({ length: count }, (_, i) => `${job.id}/mail/${i + 1}`)
    const sent = new Set(delivered.filter((key) => key.startsWith(`${job.id}/`)))
    const broken = wanted.filter((key) => !sent.has(key)).map((key) => `P10: ${key} was not sent`)
    for (const key of sent) if (!wanted.includes(key)) broken.push(`P10: ${key} was not declared`)
    let attempt = 0
    for (const { trigger, step } of facts) {
      if (trigger === 'claim') attempt++
      if (step === undefined) continue
      const again = stepped.some(
        (run) => run.jobId === job.id && run.name === step.name && run.attempt > attempt,
      )
      if (again) broken.push(`step ${step.name} of job ${n} ran again`)
    }
    return broken
  }

  #faultsOf(n: number, job: Job, facts: readonly Fact[]): string[] {
    const lifecycle = findLifecycle(job.lifecycle, job.lifecycleVersion)
    const broken = [...checkFacts(lifecycle, facts), ...checkP9(job, facts)]
    const texts = broken.map((found) => `job ${n}: ${JSON.stringify(found)}`)
    if (!isSettled(job)) texts.push(`P15: job ${n} is still ${job.state}`)
    return texts
  }

  #pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.#random.next() * items.length)] as T
  }

  #count(fault: string): void {
    this.#faults[fault] = (this.#faults[fault] ?? 0) + 1
  }
}

function isSettled(job: Job): boolean {
  return job.outcome !== null || job.state === 'quarantined'
}
