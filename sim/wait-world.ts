/**
 * Sleeps and signals in the simulation. Workers claim jobs and wait as their plans say; the office
 * sends the signals, cancels, parks and redrives. In the end the ledger is judged (P18).
 */
import { createPawl } from 'pawl'
import { standard } from 'pawl/rules'
import type { Held, Store } from 'pawl/sqlite'
import { type Judged, judgeJobs, readStore } from './checker.ts'
import { judgeReport } from './clinic.ts'
import type { SimProcess } from './process.ts'
import { playWorld } from './side-world.ts'
import { ANN, LEASE_MS, StoreWorld } from './store-world.ts'
import { type Planned, planWaits, WaitWitness } from './wait-witness.ts'

const JOBS = [4, 10] as const

/** Plays the waits of a seed; returns what they break, and how many signals were received. */
export async function simulateWaits(
  seed: number,
): Promise<{ readonly judged: readonly Judged[]; readonly received: number }> {
  const { judged, counted } = await playWorld(new WaitWorld(seed))
  return { judged, received: counted ?? 0 }
}

class WaitWorld extends StoreWorld<number> {
  readonly #plans: readonly Planned[]
  readonly #witness = new WaitWitness()

  constructor(seed: number) {
    super(seed, 'waits', 0x5164a1)
    const { faults } = this
    this.#plans = Array.from({ length: faults.between(...JOBS) }, () =>
      planWaits(this.ids.next(), (from, to) => faults.between(from, to)),
    )
  }

  protected async work({ name }: SimProcess, store: Store): Promise<void> {
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
      this.judged.push(...this.#witness.sawEnd(id, wait, answer.end))
    }
    await store.settle([{ held, command: { kind: 'commit', fence }, payload: '1' }])
  }

  /** Enqueues, sends, cancels, parks and redrives. */
  protected async meddle(store: Store): Promise<void> {
    const faults = this.faults
    const plan = this.#plans[faults.between(0, this.#plans.length)] as Planned
    await this.#enqueue(store, this.isHealed ? this.#plans : [plan])
    const open = this.#plans.filter(({ isEnqueued }) => isEnqueued)
    for (const one of this.isHealed ? open : open.filter(() => faults.between(0, 3) === 0)) {
      await this.#send(store, one)
    }
    if (plan.isEnqueued && faults.strikes('cancel')) await store.cancel([plan.id], ANN)
    const give = (kind: 'park' | 'redrive', id: string) => store.applyCommand([id], { kind }, ANN)
    if (plan.isEnqueued && faults.strikes('quarantine')) await give('park', plan.id)
    const { items } = await store.list({ lane: 'parked' }, { limit: 100 })
    for (const { id } of items) {
      if (this.isHealed || faults.between(0, 3) === 0) await give('redrive', id)
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
    const times = this.faults.strikes('enqueue-twice') ? 2 : 1
    const sent = await Promise.all(
      Array.from({ length: times }, () => store.waits.signal([plan.id], signal, ANN)),
    )
    for (const [answer] of sent) this.#witness.sawAnswer(plan.id, signal.key, answer)
  }

  protected isSettled(): boolean {
    return this.#plans.every(({ isEnqueued }) => isEnqueued) && this.haveJobsEnded()
  }

  protected blameUnsettled(): void {
    if (!this.isSettled()) this.blame('P15', 'the jobs that wait do not come to their end')
  }

  protected async judge(store: Store): Promise<number> {
    const told = await readStore(store)
    this.judged.push(...judgeJobs(told, store.now()))
    for (const { job, facts } of told) {
      const { signals } = await store.waits.history(job.id)
      this.judged.push(...this.#witness.judge(job.id, signals, facts))
    }
    const pawl = await createPawl({ store, environment: this.well() })
    this.judged.push(...judgeReport(await pawl.doctor().check({ full: true })))
    return told.flatMap(({ facts }) => facts).filter(({ received }) => received?.signal).length
  }
}
