/**
 * Flows, batches and invoked children in the simulation. The office creates flows, adds to batches
 * and closes them, cancels, parks and redrives. Workers run the jobs; some of them invoke others.
 * In the end every job has ended, and the ledger is judged (P19).
 */
import { createPawl } from 'pawl'
import type { Answer, Held, Store } from 'pawl/sqlite'
import { type Judged, judgeJobs, readStore } from './checker.ts'
import { judgeReport } from './clinic.ts'
import { judgeFlows } from './flow-judge.ts'
import { invokesOf, itemOf, type PlannedFlow, planFlow } from './flow-plans.ts'
import type { SimProcess } from './process.ts'
import { playWorld } from './side-world.ts'
import { ANN, LEASE_MS, StoreWorld } from './store-world.ts'

const FLOWS = [1, 4] as const
const WAKE_LIMIT = 20
/** Some jobs sleep first, so that others wait for them for long. */
const LINGERING = /[0-5]$/
const LINGER_MS = 30_000
/** After so many looks of the office in a healthy world, what still waits in vain is cancelled. */
const PATIENCE = 30
const DEPENDENCY_FAILED = 'dependency_failed'

/** Plays the flows of a seed; returns what they break, and how many jobs were released. */
export async function simulateFlows(
  seed: number,
): Promise<{ readonly judged: readonly Judged[]; readonly released: number }> {
  const { judged, counted } = await playWorld(new FlowWorld(seed))
  return { judged, released: counted ?? 0 }
}

class FlowWorld extends StoreWorld<number> {
  readonly #plans: readonly PlannedFlow[]
  /** How often a job fails for good before it succeeds. */
  readonly #failures = new Map<string, number>()
  /** How each invoke has ended, as its parent was told. */
  readonly #ends = new Map<string, string>()
  #healedLooks = 0
  #healedAt = Number.POSITIVE_INFINITY

  constructor(seed: number) {
    super(seed, 'flows', 0xf10e5)
    const { faults } = this
    this.#plans = Array.from({ length: faults.between(...FLOWS) }, () =>
      planFlow(this.ids.next(), (from, below) => faults.between(from, below)),
    )
  }

  protected async work({ name }: SimProcess, store: Store): Promise<void> {
    await store.recover(10)
    await store.promote(10)
    await store.flows.wake(WAKE_LIMIT)
    const request = { worker: name, limit: 2, leaseMs: LEASE_MS, start: true }
    for (const held of await store.claim(request)) await this.#handle(store, held)
  }

  /** What a handler would do: it invokes children, from the top, and then fails or succeeds. */
  async #handle(store: Store, held: Held): Promise<void> {
    const { id, type, attempt, execution } = held.job
    if (execution === null) return
    const fence = { attempt, claim: execution.claim }
    if (type === 'plain' && LINGERING.test(id)) {
      const wait = { for: 'sleep', name: 'linger', n: 1, until: store.now() + LINGER_MS } as const
      if ((await store.waits.wait({ id, fence, wait })).kind !== 'over') return
    }
    for (const { name, n, count, concurrency, of } of invokesOf(type, id)) {
      const children = Array.from({ length: count }, () => itemOf(of))
      const answer = await store.flows.invoke({ id, fence, name, n, children, concurrency })
      if (answer.kind !== 'over') return
      this.#sawEnds(`${id} ${name} ${n}`, answer.ends)
    }
    const { answers } = await store.settle([{ held, ...this.#reportOf(id, fence) }])
    await this.#wake(store, answers)
  }

  /** An invoke always ends in the same way, with as many ends as children. */
  #sawEnds(invoke: string, ends: readonly { id: string; outcome: string | null }[]): void {
    const words = JSON.stringify(ends.map(({ id, outcome }) => [id, outcome]))
    const before = this.#ends.get(invoke) ?? words
    this.#ends.set(invoke, before)
    if (before !== words) this.blame('P19', `invoke ${invoke} ended in two ways`)
    if (ends.some(({ outcome }) => outcome === null)) {
      this.blame('P19', `invoke ${invoke} is over, and a child has not ended`)
    }
  }

  #reportOf(id: string, fence: { attempt: number; claim: string }) {
    const left = this.#failures.get(id) ?? (this.faults.strikes('handler-fails') ? 1 : 0)
    this.#failures.set(id, Math.max(0, left - 1))
    if (left === 0) return { command: { kind: 'commit', fence }, payload: '1' } as const
    const failure = { class: 'terminal', kind: 'validation', message: 'no' } as const
    return { command: { kind: 'fail', fence, failure } } as const
  }

  /** What the engine does after it has ended a job that concerns others. */
  async #wake(store: Store, answers: readonly (Answer | undefined)[]): Promise<void> {
    const ended = answers.some((one) => one?.kind === 'done' && one.job.links !== 0)
    if (ended) await store.flows.wake(WAKE_LIMIT)
  }

  /** Creates, adds, closes, cancels, parks and redrives. */
  protected async meddle(store: Store): Promise<void> {
    const { faults } = this
    if (this.isHealed) this.#healedAt = Math.min(this.#healedAt, store.now())
    const plan = this.#plans[faults.between(0, this.#plans.length)] as PlannedFlow
    for (const one of this.isHealed ? this.#plans : [plan]) await this.#advance(store, one)
    const { items } = await store.list({}, { limit: 200 })
    const open = items.filter(({ outcome }) => outcome === null)
    const target = open[faults.between(0, Math.max(1, open.length))]
    if (target !== undefined && faults.strikes('cancel')) {
      await this.#wake(store, await store.cancel([target.id], ANN))
    }
    if (target !== undefined && faults.strikes('quarantine')) {
      await store.applyCommand([target.id], { kind: 'park' }, ANN)
    }
    const parked = (await store.list({ lane: 'parked' }, { limit: 100 })).items
    const failed = items.filter(({ outcome }) => outcome === 'failed')
    for (const { id } of [...failed, ...parked]) {
      if (!this.isHealed && faults.between(0, 4) > 0) continue
      await this.#wake(store, await store.applyCommand([id], { kind: 'redrive' }, ANN))
    }
    if (!this.isHealed || ++this.#healedLooks < PATIENCE) return
    // What it waits for was cancelled: a person gives up.
    const inVain = parked.map(({ id }) => id)
    await this.#wake(store, await store.cancel(inVain, ANN))
  }

  /** Creates a flow, then adds members and closes. A call whose answer is lost is made again. */
  async #advance(store: Store, plan: PlannedFlow): Promise<void> {
    const { request } = plan
    if (!plan.isCreated) {
      const times = this.faults.strikes('enqueue-twice') ? 2 : 1
      const made = Array.from({ length: times }, () => store.flows.create(request))
      for (const answer of await Promise.all(made)) {
        if (answer.kind === 'rejected') this.blame('P19', `create: ${answer.error.message}`)
      }
      plan.isCreated = true
      plan.known = request.nodes.length
      return
    }
    if (plan.isClosed) return
    const [count] = plan.additions
    if (count !== undefined) {
      const members = Array.from({ length: count }, () => itemOf('plain'))
      const answer = await store.flows.add(request.id, members, { at: plan.known })
      if (answer.kind === 'rejected') this.blame('P19', `add: ${answer.error.message}`)
      plan.known += count
      plan.additions.shift()
      return
    }
    await store.flows.close(request.id, ANN)
    plan.isClosed = true
  }

  protected isSettled(): boolean {
    return (
      this.#plans.every(({ isClosed, isCreated }) => isClosed && isCreated) && this.#haveEnded()
    )
  }

  /** Failed jobs are redriven, except for those that wait for a cancelled one. */
  #haveEnded(): boolean {
    if (!this.haveJobsEnded()) return false
    const sql = `SELECT 1 AS open FROM pawl_jobs WHERE outcome = 'failed' AND reason <> ? LIMIT 1`
    return this.auditor.prepare(sql).all(DEPENDENCY_FAILED).length === 0
  }

  protected blameUnsettled(): void {
    if (!this.isSettled()) this.blame('P19', 'jobs that wait for others do not come to their end')
  }

  protected async judge(store: Store): Promise<number> {
    const told = await readStore(store)
    const { judged, released } = judgeFlows(told, this.#plans, this.#healedAt)
    this.judged.push(...judgeJobs(told, store.now()), ...judged)
    const pawl = await createPawl({ store, environment: this.well() })
    this.judged.push(...judgeReport(await pawl.doctor().check({ full: true })))
    return released
  }
}
