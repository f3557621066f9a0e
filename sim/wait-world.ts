/**
 * Sleeps and signals in the simulation. Workers claim jobs and wait as their plans say; an office
 * sends the signals, cancels and parks. Processes die and pause, calls are lost, late and repeated.
 * Then all is well: every job comes to its end, and the ledger is judged (P18).
 *
 * The workers use the store itself, without the engine: so every answer can be compared.
 */
import { createPawl, PawlError } from 'pawl'
import { LIFECYCLES, standard } from 'pawl/rules'
import { type Database, type Held, openSqliteStore, type Store } from 'pawl/sqlite'
import { SeededRandom, SequentialIds } from 'pawl/testing'
import { type Judged, judgeJobs, readStore } from './checker.ts'
import { judgeReport } from './clinic.ts'
import { openDatabase } from './database.ts'
import { Faults } from './faults.ts'
import { hostOf, SimProcess } from './process.ts'
import { Scheduler } from './scheduler.ts'
import { START } from './sizes.ts'
import { type Planned, planWaits, WaitWitness } from './wait-witness.ts'

const LEASE_MS = 3000
const FAULTY_MS = 20_000
const HEALED_MS = 60 * 60_000
const STEPS_MAX = 60_000
const JOBS = [4, 10] as const
const WORKERS = 2
const ANN = { actor: 'operator', operator: 'ann', note: 'to see what happens' } as const

let worlds = 0

/** Plays the waits of a seed; returns what they break, and how many signals were received. */
export async function simulateWaits(
  seed: number,
): Promise<{ readonly judged: readonly Judged[]; readonly received: number }> {
  const world = new WaitWorld(seed)
  try {
    return await world.play()
  } finally {
    world.close()
  }
}

class WaitWorld {
  readonly #faults: Faults
  readonly #random: SeededRandom
  readonly #scheduler: Scheduler
  readonly #ids = new SequentialIds()
  readonly #location: string
  readonly #auditor: Database
  readonly #plans: readonly Planned[]
  readonly #judged: Judged[] = []
  readonly #witness = new WaitWitness()
  #workers: SimProcess[] = []
  #office: SimProcess | undefined
  #names = 0
  #machineMs = 0
  #isHealed = false

  constructor(seed: number) {
    this.#random = new SeededRandom(seed ^ 0x5164a1)
    const chance = () => new SeededRandom(Math.floor(this.#random.next() * 2 ** 32))
    this.#faults = new Faults(chance())
    this.#scheduler = new Scheduler(START, chance())
    this.#location = `file:/sim-waits-${seed}-${++worlds}?vfs=memdb`
    this.#auditor = openDatabase(this.#location)
    const faults = this.#faults
    this.#plans = Array.from({ length: faults.between(...JOBS) }, () =>
      planWaits(this.#ids.next(), (from, to) => faults.between(from, to)),
    )
  }

  close(): void {
    for (const process of this.#workers) process.abandon()
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
    while (clock.now() < endAt && !this.#isSettled() && this.#mayStep()) {
      await this.#scheduler.step()
    }
    if (!this.#isSettled()) this.#blame('P15', 'the jobs that wait do not come to their end')
    const received = await this.#drive(this.#judge())
    return { judged: this.#judged, received: received ?? 0 }
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
      onWrite: () => {},
      log: () => {},
    })
  }

  #replaceTheDead(): void {
    this.#workers = this.#workers.filter(({ isAlive }) => isAlive)
    while (this.#workers.length < WORKERS) {
      const process = this.#newProcess(`worker-${++this.#names}`)
      this.#workers.push(process)
      this.#repeat(process, (store) => this.#work(process, store))
    }
    if (this.#office?.isAlive) return
    this.#office = this.#newProcess('office')
    this.#repeat(this.#office, (store) => this.#meddle(store))
  }

  /** Does one thing again and again. A call that failed is made again later. */
  #repeat(process: SimProcess, act: (store: Store) => Promise<void>): void {
    void (async () => {
      const store = await process.open(LIFECYCLES)
      for (;;) {
        await act(store).catch((error) => this.#expectTyped(error))
        const ms = this.#faults.between(100, 1500)
        await new Promise<void>((resolve) => process.environment.timers.after(ms, resolve))
      }
    })().catch((error) => {
      if (!process.isAlive) return
      this.#expectTyped(error)
      process.crash('gives up')
    })
  }

  #expectTyped(error: unknown): void {
    if (!(error instanceof PawlError)) this.#blame('P16', `an error is not typed: ${String(error)}`)
  }

  async #work({ name }: SimProcess, store: Store): Promise<void> {
    await store.recover(10)
    await store.promote(10)
    const request = { worker: name, limit: 1, leaseMs: LEASE_MS, start: true }
    for (const held of await store.claim(request)) await this.#handle(store, held)
  }

  /** What a handler would do: it waits for one thing after the other, from the top. */
  async #handle(store: Store, held: Held): Promise<void> {
    const { id, attempt, execution } = held.job
    const plan = this.#plans.find((one) => one.id === id)
    if (plan === undefined || execution === null) return
    const fence = { attempt, claim: execution.claim }
    for (const { ms, ...wait } of plan.waits) {
      const until = ms === null ? null : store.now() + ms
      const answer = await store.waits.wait({ id, fence, wait: { ...wait, until } })
      if (answer.kind !== 'over') return
      this.#judged.push(...this.#witness.sawEnd(id, wait, answer.end))
    }
    await store.settle([{ held, command: { kind: 'commit', fence }, payload: '1' }])
  }

  /** Enqueues, sends, cancels, parks and redrives. */
  async #meddle(store: Store): Promise<void> {
    const faults = this.#faults
    const plan = this.#plans[faults.between(0, this.#plans.length)] as Planned
    await this.#enqueue(store, this.#isHealed ? this.#plans : [plan])
    const open = this.#plans.filter(({ isEnqueued }) => isEnqueued)
    for (const one of this.#isHealed ? open : open.filter(() => faults.between(0, 3) === 0)) {
      await this.#send(store, one)
    }
    if (plan.isEnqueued && faults.strikes('cancel')) await store.cancel([plan.id], ANN)
    const give = (kind: 'park' | 'redrive', id: string) => store.applyCommand([id], { kind }, ANN)
    if (plan.isEnqueued && faults.strikes('quarantine')) await give('park', plan.id)
    const { items } = await store.list({ lane: 'parked' }, { limit: 100 })
    for (const { id } of items) {
      if (this.#isHealed || faults.between(0, 3) === 0) await give('redrive', id)
    }
  }

  async #enqueue(store: Store, plans: readonly Planned[]): Promise<void> {
    for (const plan of plans) {
      if (plan.isEnqueued) continue
      const command = { jobId: plan.id, type: 'patient', queue: 'waits' }
      await store.enqueue([{ lifecycle: standard, input: 'null', command }])
      plan.isEnqueued = true
    }
  }

  /** Sends the next signal; one whose answer is lost is sent again, perhaps twice at once. */
  async #send(store: Store, plan: Planned): Promise<void> {
    const signal = plan.signals.find(({ key }) => !this.#witness.isSettled(plan.id, key))
    if (signal === undefined) return
    const times = this.#faults.strikes('enqueue-twice') ? 2 : 1
    const sent = await Promise.all(
      Array.from({ length: times }, () => store.waits.signal([plan.id], signal, ANN)),
    )
    for (const [answer] of sent) this.#witness.sawAnswer(plan.id, signal.key, answer)
  }

  #startMonkey(): void {
    const act = () => {
      this.#replaceTheDead()
      this.#scheduler.after(this.#faults.between(200, 1500), act)
      if (this.#isHealed) return
      const faults = this.#faults
      const process = this.#workers[faults.between(0, this.#workers.length)] as SimProcess
      if (faults.strikes('crash')) process.crash('crashes')
      if (faults.strikes('client-crash')) this.#office?.crash('crashes')
      if (faults.strikes('pause-beyond-lease')) {
        process.pause(faults.between(LEASE_MS, 4 * LEASE_MS))
      }
      if (faults.strikes('clock-leap')) process.leap(faults.between(1, 30_000))
      if (faults.strikes('machine-clock-set')) this.#machineMs += faults.between(-60_000, 60_000)
      if (faults.strikes('suspend')) this.#scheduler.leap(faults.between(1000, 60_000))
    }
    act()
  }

  #heal(): void {
    this.#faults.end()
    this.#isHealed = true
    for (const process of this.#workers) process.crash('is replaced')
    this.#office?.crash('is replaced')
    this.#replaceTheDead()
  }

  #isSettled(): boolean {
    if (!this.#plans.every(({ isEnqueued }) => isEnqueued)) return false
    try {
      const sql = 'SELECT 1 AS open FROM pawl_jobs WHERE lane <> 5 LIMIT 1'
      return this.#auditor.prepare(sql).all().length === 0
    } catch {
      return false
    }
  }

  async #judge(): Promise<number> {
    const store = await this.#openWell()
    const told = await readStore(store)
    this.#judged.push(...judgeJobs(told, store.now()))
    for (const { job, facts } of told) {
      const { signals } = await store.waits.history(job.id)
      this.#judged.push(...this.#witness.judge(job.id, signals, facts))
    }
    const pawl = await createPawl({ store, environment: this.#well() })
    this.#judged.push(...judgeReport(await pawl.doctor().check({ full: true })))
    await store.close()
    return told.flatMap(({ facts }) => facts).filter(({ received }) => received?.signal).length
  }
}
