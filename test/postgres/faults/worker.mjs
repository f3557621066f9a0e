// A worker process under fire. It enqueues as many jobs as it is allowed, and until it is told to
// finish it claims, renews, commits, settles, cancels, redrives, recovers and promotes, drawn from a
// seed. It tells how many attempts it has settled; at the end, what it was promised and every error
// that reached it. It finishes when no job is open any more.
import { randomUUID } from 'node:crypto'
import { openPostgresStore } from 'pawl/postgres'
import { DEFAULT_POLICY, standard } from 'pawl/rules'
import { SeededRandom } from 'pawl/testing'

const CLIENT = { actor: 'client' }
const OPERATOR = { actor: 'operator', operator: 'ann', note: 'under fire' }
const LEASE_MS = 1500
const IDLE_MS = 100
const TRANSIENT = { class: 'retryable', kind: 'transient', message: 'not now' }
const TERMINAL = { class: 'terminal', kind: 'terminal', message: 'never' }
const POLICY = {
  ...DEFAULT_POLICY,
  retry: { ...DEFAULT_POLICY.retry, max: 1000, delayMs: 20, jitter: 0 },
  crashesMax: 1000,
  releasesMax: 1000,
}

const fenceOf = ({ job }) => ({ attempt: job.attempt, claim: job.execution.claim })

class Worker {
  allowed = 0
  isFinishing = false
  accepted = []
  /** Jobs whose enqueueing failed: they may be there or not. */
  doubtful = []
  errors = []
  settled = 0
  #wake = () => {}

  constructor(store, worker, seed) {
    Object.assign(this, { store, worker })
    this.random = new SeededRandom(seed)
    store.onWake(() => this.#wake())
  }

  below(n) {
    return Math.floor(this.random.next() * n)
  }

  async run() {
    const deeds = [this.work, this.work, this.work, this.work, this.recover, this.promote]
    const rare = [this.cancel, this.redrive]
    for (;;) {
      if (this.allowed > 0) await this.try('enqueue', () => this.enqueue())
      const deed = this.below(8) === 0 ? rare[this.below(2)] : deeds[this.below(deeds.length)]
      await this.try(deed.name, () => deed.call(this))
      if (this.isFinishing && this.allowed === 0 && (await this.isOver())) return
    }
  }

  /** Whatever fails is written down; the process goes on. */
  async try(verb, deed) {
    try {
      return await deed()
    } catch (error) {
      this.errors.push(`${verb}: ${error.code ?? error.name}: ${error.message}`)
    }
  }

  async isOver() {
    const counts = await this.try('counts', () => this.store.counts())
    if (counts === undefined) return false
    const { waiting, ready, held } = counts.lanes
    return waiting + ready + held === 0
  }

  async enqueue() {
    const count = Math.min(this.allowed, 1 + this.below(5))
    this.allowed -= count
    const ids = Array.from({ length: count }, () => randomUUID())
    await Promise.all(ids.map((jobId) => this.enqueueOne(jobId)))
  }

  async enqueueOne(jobId) {
    const command = { jobId, type: 'order', queue: `queue-${this.below(3)}`, policy: POLICY }
    try {
      const [answer] = await this.store.enqueue([{ lifecycle: standard, command, input: '{}' }])
      if (answer.kind === 'created') this.accepted.push(jobId)
      else this.errors.push(`enqueue answered ${answer.kind}: ${answer.error?.message}`)
    } catch (error) {
      this.doubtful.push(jobId)
      throw error
    }
  }

  async work() {
    const request = {
      worker: this.worker,
      limit: 1 + this.below(8),
      leaseMs: LEASE_MS,
      start: true,
    }
    const held = await this.store.claim(request)
    if (held.length === 0) return this.idle()
    const beats = held.map((one) => ({ ref: one.ref, fence: fenceOf(one) }))
    await this.try('heartbeat', () => this.store.heartbeat(beats, LEASE_MS))
    const settlements = []
    const commits = []
    for (const one of held) {
      const chance = this.below(20)
      if (chance === 0) continue
      if (chance <= 10) commits.push(this.try('commit', () => this.commit(one)))
      else settlements.push({ held: one, ...this.reportOf(one, chance) })
    }
    await Promise.all(commits)
    // What is claimed with it is abandoned, as by a process that was lost after its claim.
    const next = this.below(10) === 0 ? { ...request, limit: 1 } : undefined
    const { answers } = await this.store.settle(settlements, next)
    this.report(answers.filter(({ kind }) => kind === 'done').length)
  }

  reportOf(held, chance) {
    const fence = fenceOf(held)
    if (chance === 11) return { command: { kind: 'fail', fence, failure: TRANSIENT } }
    if (chance === 12) return { command: { kind: 'fail', fence, failure: TERMINAL } }
    if (chance === 13) return { command: { kind: 'release', fence } }
    return { command: { kind: 'commit', fence }, payload: '"settled"' }
  }

  async commit(held) {
    const answer = await this.store.commit(held, async (tx) => {
      await tx.query('INSERT INTO user_rows (job) VALUES ($1)', [held.job.id])
      return '"user"'
    })
    if (answer.kind === 'done') this.report(1)
  }

  report(settled) {
    this.settled += settled
    process.send({ kind: 'progress', settled: this.settled })
  }

  /** Until somebody may have made something ready. */
  idle() {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, IDLE_MS)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  async someIds() {
    const { items } = await this.store.list({}, { limit: 20 })
    return items.map(({ id }) => id).filter(() => this.below(8) === 0)
  }

  async cancel() {
    await this.store.cancel(await this.someIds(), CLIENT)
  }

  async redrive() {
    if (!this.isFinishing)
      await this.store.applyCommand(await this.someIds(), { kind: 'redrive' }, OPERATOR)
  }

  async recover() {
    await this.store.recover(50)
  }

  async promote() {
    await this.store.promote(50)
  }
}

let worker

async function work({ url, name, seed, connections }) {
  const store = await openPostgresStore({ connectionString: url, connections })
  worker = new Worker(store, name, seed)
  process.send({ kind: 'ready' })
  await worker.run()
  await store.close()
  const { accepted, doubtful, errors, settled } = worker
  process.send({ kind: 'result', accepted, doubtful, errors, settled })
}

process.on('message', (order) => {
  if (order.kind === 'work') void work(order)
  if (order.kind === 'allow') worker.allowed += order.jobs
  if (order.kind === 'finish') worker.isFinishing = true
})
