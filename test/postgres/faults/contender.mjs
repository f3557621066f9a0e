// One of several processes that do large things to the same jobs at the same time, drawn from a
// seed: cancel all, redrive all, claim and settle many, recover, promote, prune, list, and enqueue
// under keys that are taken. It counts what it did, and keeps every error that reached it.
import { randomUUID } from 'node:crypto'
import { openPostgresStore } from 'pawl/postgres'
import { DEFAULT_POLICY, standard } from 'pawl/rules'
import { SeededRandom } from 'pawl/testing'

const OPERATOR = { actor: 'operator', operator: 'ann', note: 'all of them' }
const TERMINAL = { class: 'terminal', kind: 'terminal', message: 'never' }
const TRANSIENT = { class: 'retryable', kind: 'transient', message: 'not now' }
const POLICY = {
  ...DEFAULT_POLICY,
  retry: { ...DEFAULT_POLICY.retry, max: 1000, delayMs: 10, jitter: 0 },
  crashesMax: 1000,
}
const PAGE = 500
const BATCH = 50

class Contender {
  done = {}
  errors = []

  constructor(store, { worker, seed, jobs }) {
    Object.assign(this, { store, worker, jobs })
    this.random = new SeededRandom(seed)
  }

  below(n) {
    return Math.floor(this.random.next() * n)
  }

  async act() {
    const often = [this.work, this.work, this.recover, this.promote, this.enqueue, this.prune]
    const deeds = [...often, ...often, this.cancelAll, this.redriveAll, this.listAll]
    const deed = deeds[this.below(deeds.length)]
    try {
      const count = await deed.call(this)
      this.done[deed.name] = (this.done[deed.name] ?? 0) + count
    } catch (error) {
      const cause = error.cause?.message ?? ''
      this.errors.push(`${deed.name}: ${error.code ?? error.name}: ${error.message} ${cause}`)
    }
  }

  async idsOf(filter) {
    const { items } = await this.store.list(filter, { limit: PAGE })
    return items.map(({ id }) => id)
  }

  async cancelAll() {
    const ids = await this.idsOf([{ lane: 'ready' }, { lane: 'held' }, {}][this.below(3)])
    const some = ids.filter(() => this.below(3) === 0)
    return this.countDone(await this.store.cancel(some, OPERATOR))
  }

  async redriveAll() {
    const ids = await this.idsOf({ state: 'failed' })
    return this.countDone(await this.store.applyCommand(ids, { kind: 'redrive' }, OPERATOR))
  }

  /** Claims many and settles them in another order, with the next claim, which is abandoned. */
  async work() {
    const leaseMs = 50 + this.below(500)
    const request = { worker: this.worker, limit: BATCH, leaseMs, start: true }
    const held = await this.store.claim(request)
    const onlySuccesses = this.below(2) === 0
    const settlements = held
      .map((one) => ({ held: one, ...this.reportOf(one, onlySuccesses ? 2 : this.below(3)) }))
      .sort(() => this.random.next() - 0.5)
    const next = this.below(2) === 0 ? { ...request, limit: 10 } : undefined
    const { answers } = await this.store.settle(settlements, next)
    return this.countDone(answers)
  }

  reportOf({ job }, chance) {
    const fence = { attempt: job.attempt, claim: job.execution.claim }
    if (chance === 0) return { command: { kind: 'fail', fence, failure: TERMINAL } }
    if (chance === 1) return { command: { kind: 'fail', fence, failure: TRANSIENT } }
    return { command: { kind: 'commit', fence }, payload: '1' }
  }

  async enqueue() {
    const keys = new Set(Array.from({ length: BATCH }, () => `key-${this.below(this.jobs)}`))
    const onConflict = ['existing', 'replace', 'reject'][this.below(3)]
    const items = [...keys].map((key) => ({
      lifecycle: standard,
      command: { jobId: randomUUID(), type: 'order', queue: 'main', key, policy: POLICY },
      input: '{}',
      onConflict,
    }))
    const answers = await this.store.enqueue(items)
    return answers.filter(({ kind }) => kind !== 'rejected').length
  }

  async recover() {
    return this.countDone(await this.store.recover(100))
  }

  promote() {
    return this.store.promote(100)
  }

  prune() {
    return this.store.prune({ endedBefore: this.store.now() - 200, limit: 50 })
  }

  async listAll() {
    const ids = await this.idsOf({})
    await this.store.counts()
    return ids.length
  }

  countDone(answers) {
    return answers.filter(({ kind }) => kind === 'done' || kind === 'asked').length
  }
}

async function work({ url, seconds, ...rest }) {
  const store = await openPostgresStore({ connectionString: url, connections: 4 })
  const contender = new Contender(store, rest)
  const end = performance.now() + seconds * 1000
  // Two at a time, so that a process is also in its own way.
  const lane = async () => {
    while (performance.now() < end) await contender.act()
  }
  await Promise.all([lane(), lane()])
  await store.close()
  const { done, errors } = contender
  return { done, errors }
}

process.on('message', async (question) => {
  process.send(question.kind === 'work' ? await work(question) : {})
})
