/**
 * Fills a store with a seeded random history: jobs of every lifecycle in every state, steps,
 * effects in every state, queues that are paused or bounded, seals, removals by retention and a
 * worker's row. The same seed makes the same history on both databases.
 */
import type { Lifecycle } from 'pawl'
import { sealUp } from 'pawl/audit'
import { type Command, type Fence, LIFECYCLES } from 'pawl/rules'
import type { Held, Settlement, Store } from 'pawl/sqlite'
import { SeededRandom, type TestEnvironment } from 'pawl/testing'
import { parcel } from './lifecycle.ts'

/** Every lifecycle that a golden store contains. */
export const GOLDEN_LIFECYCLES: readonly Lifecycle[] = [...LIFECYCLES, parcel]

const OPERATOR = { actor: 'operator', operator: 'ann', note: 'golden store' } as const
const ROUNDS = 1500
const LEASE_MS = 30_000
const EFFECTS = ['mail', 'hook'] as const

/** What a history needs. */
export interface HistoryParts {
  readonly store: Store
  readonly environment: TestEnvironment
}

/** Plays the history. */
export async function playHistory(parts: HistoryParts): Promise<void> {
  const history = new History(parts)
  await history.play()
}

class History {
  readonly #store: Store
  readonly #environment: TestEnvironment
  readonly #dice = new SeededRandom(20_261_117)
  readonly #ids: string[] = []
  #held: Held[] = []

  constructor({ store, environment }: HistoryParts) {
    this.#store = store
    this.#environment = environment
  }

  async play(): Promise<void> {
    for (let round = 0; round < ROUNDS; round++) {
      await this.#move()
      if (round === ROUNDS / 2) await this.#sealAndPrune()
      this.#environment.advance(this.#roll(800))
    }
    await this.#sealAndPrune()
    for (const lifecycle of GOLDEN_LIFECYCLES) await this.#lastJobs(lifecycle)
    await this.#store.pauseQueue('paused', OPERATOR)
    await this.#store.limitQueue('bounded', { maxDepth: 5, maxWaitMs: 60_000 })
    await this.#store.reportWorker({ id: 'worker-golden', state: 'Polling', info: '{}' })
    await this.#assertEveryState()
  }

  /** A golden store that lacks a state would prove nothing about it. */
  async #assertEveryState(): Promise<void> {
    for (const { name, roles } of GOLDEN_LIFECYCLES) {
      for (const state of roles.keys()) {
        const { items } = await this.#store.list({ state, type: `golden-${name}` }, { limit: 1 })
        if (items.length === 0) throw new Error(`no job of ${name} is ${state}: change the seed`)
      }
    }
  }

  #roll(below: number): number {
    return Math.floor(this.#dice.next() * below)
  }

  #oneOf<T>(items: readonly T[]): T {
    return items[this.#roll(items.length)] as T
  }

  async #move(): Promise<void> {
    const moves = [
      () => this.#enqueue(this.#oneOf(GOLDEN_LIFECYCLES)),
      () => this.#enqueue(this.#oneOf(GOLDEN_LIFECYCLES)),
      () => this.#claim(),
      () => this.#claim(),
      () => this.#report(),
      () => this.#report(),
      () => this.#report(),
      () => this.#report(),
      () => this.#report(),
      () => this.#report(),
      () => this.#ask(),
      () => this.#deliver(),
      () => this.#pass(),
    ]
    await this.#oneOf(moves)()
  }

  async #enqueue(lifecycle: Lifecycle, fields: { hold?: true; runAt?: number } = {}) {
    const number = this.#ids.length
    const now = this.#environment.clock.now()
    const jobId = this.#environment.ids.next()
    const [answer] = await this.#store.enqueue([
      {
        lifecycle,
        input: JSON.stringify({ number, text: 'grüße\u0000', list: [1, null, true] }),
        onConflict: this.#oneOf(['existing', 'replace'] as const),
        command: {
          jobId,
          type: `golden-${lifecycle.name}`,
          queue: this.#oneOf(['main', 'main', 'paused', 'bounded']),
          ...(this.#roll(4) === 0 && { key: `key-${this.#roll(40)}` }),
          ...(this.#roll(3) === 0 && { tags: ['red', `n${this.#roll(5)}`] }),
          ...(this.#roll(3) === 0 && { priority: this.#roll(20) - 10 }),
          ...(this.#roll(6) === 0 && { timeoutMs: 600_000 }),
          ...(this.#roll(6) === 0 && { deadlineAt: now + 86_400_000 }),
          ...(this.#roll(6) === 0 && { runAt: now + this.#roll(60_000) }),
          ...fields,
        },
      },
    ])
    if (answer?.kind === 'created') this.#ids.push(jobId)
  }

  async #claim(): Promise<void> {
    const claimed = await this.#store.claim({
      worker: `worker-${this.#roll(3)}`,
      limit: 1 + this.#roll(5),
      leaseMs: LEASE_MS,
      start: this.#roll(5) > 0,
    })
    this.#held.push(...claimed)
  }

  async #report(): Promise<void> {
    const held = this.#held.splice(this.#roll(this.#held.length), 1)[0]
    if (held === undefined) return
    const fence = fenceOf(held)
    if (this.#roll(3) === 0) {
      await this.#step(held, fence)
      this.#held.push(held)
      return
    }
    if (this.#roll(4) === 0) {
      await this.#commitWithEffects(held)
      return
    }
    const message = `boom ${this.#roll(3)}`
    const release: End = () => ({ kind: 'release', fence })
    const ends = [commit, commit, fail('transient', message), fail('transient', message)]
    const rare = [fail('terminal', message), fail('invalid_input', message), release, cancel]
    const command = this.#oneOf([...ends, ...rare])(fence)
    await this.#store.settle([{ held, command, payload: '{"ok":true}' }])
  }

  async #commitWithEffects(held: Held): Promise<void> {
    const committing = this.#store.commit(held, (tx) => {
      for (const name of EFFECTS) tx.effect(name, JSON.stringify({ to: held.job.id }))
      return '{"committed":true}'
    })
    await this.#withTimers(committing)
  }

  /** Advances the time to each timer that is set while a verb waits. */
  async #withTimers(work: Promise<unknown>): Promise<void> {
    let isOver = false
    const over = work.finally(() => {
      isOver = true
    })
    while (!isOver) {
      await new Promise((turn) => setImmediate(turn))
      const waitMs = isOver ? undefined : this.#environment.untilNextTimer()
      if (waitMs !== undefined) this.#environment.advance(waitMs)
    }
    await over
  }

  async #step(held: Held, fence: Fence): Promise<void> {
    const command = { kind: 'step', fence, name: 'fetch', n: this.#roll(3) + 1 } as const
    await this.#store.settle([{ held, command, payload: '{"step":1}' }])
  }

  async #ask(): Promise<void> {
    const id = this.#oneOf(this.#ids)
    if (id === undefined) return
    const later = this.#environment.clock.now() + this.#roll(120_000)
    const command: Command = this.#oneOf<Command>([
      { kind: 'park' },
      { kind: 'redrive' },
      { kind: 'discard' },
      { kind: 'reschedule', runAt: later },
      { kind: 'prioritise', priority: this.#roll(9) },
      { kind: 'submit' },
    ])
    if (this.#roll(4) === 0) await this.#store.cancel([id], OPERATOR)
    else await this.#store.applyCommand([id], command, OPERATOR)
  }

  async #deliver(): Promise<void> {
    const effects = await this.#store.claimEffects({ limit: 3, leaseMs: LEASE_MS })
    const runAt = this.#environment.clock.now() + 5000
    await this.#store.settleEffects(
      effects.map((effect) =>
        this.#oneOf([
          { kind: 'delivered', effect },
          { kind: 'delivered', effect },
          { kind: 'retry', effect, runAt, error: 'receiver is down' },
          { kind: 'parked', effect, error: 'receiver refused it' },
        ] as const),
      ),
    )
  }

  async #pass(): Promise<void> {
    if (this.#roll(4) === 0) this.#environment.advance(LEASE_MS)
    await this.#store.recover(100)
    await this.#store.promote(100)
    await this.#store.shed(100)
  }

  async #sealAndPrune(): Promise<void> {
    for await (const _ of sealUp(this.#store));
    const endedBefore = this.#environment.clock.now() - 60_000
    await this.#store.prune({ endedBefore, limit: 10, archive: async () => {} })
  }

  /** What random moves may have missed or ended again: each lane, and each end of an attempt. */
  async #lastJobs(lifecycle: Lifecycle): Promise<void> {
    const later = this.#environment.clock.now() + 3_600_000
    await this.#enqueue(lifecycle, { hold: true })
    await this.#enqueue(lifecycle, { runAt: later })
    await this.#enqueue(lifecycle)
    await this.#hold(lifecycle, false)
    await this.#hold(lifecycle, true)
    const ends = [commit, fail('transient'), fail('terminal'), fail('invalid_input'), cancel]
    for (const end of ends) {
      const held = await this.#hold(lifecycle, true)
      await this.#store.settle([{ held, command: end(fenceOf(held)) }])
    }
    await this.#commitWithEffects(await this.#hold(lifecycle, true))
    const parked = await this.#hold(lifecycle, true)
    await this.#store.applyCommand([parked.job.id], { kind: 'park' }, OPERATOR)
  }

  async #hold(lifecycle: Lifecycle, start: boolean): Promise<Held> {
    const jobId = this.#environment.ids.next()
    const queue = `queue-${jobId}`
    const command = { jobId, type: `golden-${lifecycle.name}`, queue }
    await this.#store.enqueue([{ lifecycle, input: '{}', command }])
    const claim = { worker: 'worker-last', queues: [queue], limit: 1, leaseMs: LEASE_MS, start }
    const [held] = await this.#store.claim(claim)
    if (held === undefined) throw new Error('a job in a queue of its own was not claimed')
    return held
  }
}

type End = (fence: Fence) => Settlement['command']

const commit: End = (fence) => ({ kind: 'commit', fence, usage: { pages: 3 } })
const cancel: End = (fence) => ({ kind: 'cancel', fence })

function fail(kind: 'transient' | 'terminal' | 'invalid_input', message = 'boom'): End {
  const failureClass = kind === 'transient' ? 'retryable' : kind
  return (fence) => ({ kind: 'fail', fence, failure: { class: failureClass, kind, message } })
}

function fenceOf({ job }: Held): Fence {
  return { attempt: job.attempt, claim: job.execution?.claim ?? '' }
}
