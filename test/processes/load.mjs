// One of several processes that work on the same jobs at the same time. What it does next is drawn
// from a seed: it claims, commits, fails, releases, abandons, cancels, redrives, recovers, promotes
// and prunes, and counts what it was answered. It ends when no job is left open, or time is up.
import { appendFileSync } from 'node:fs'
import { openSqliteStore } from 'pawl/sqlite'
import { SeededRandom } from 'pawl/testing'

const OPERATOR = { actor: 'operator', operator: 'ann', note: 'under load' }
const CLIENT = { actor: 'client' }
const failure = { class: 'retryable', kind: 'transient', message: 'not now' }
const hopeless = { class: 'terminal', kind: 'terminal', message: 'never' }

class Load {
  #answers = {}
  #errors = []

  constructor(store, { ids, seed, archive, worker }) {
    Object.assign(this, { store, ids, archive, worker })
    this.random = new SeededRandom(seed)
  }

  result() {
    return { answers: this.#answers, errors: this.#errors }
  }

  below(n) {
    return Math.floor(this.random.next() * n)
  }

  someIds(n) {
    return Array.from({ length: n }, () => this.ids[this.below(this.ids.length)])
  }

  /** Counts an answer by its kind, a refusal by its code. */
  count(verb, answer) {
    const name = `${verb}: ${answer.error?.code ?? answer.kind}`
    this.#answers[name] = (this.#answers[name] ?? 0) + 1
  }

  async act() {
    const deeds = [
      ...Array.from({ length: 12 }, () => this.work),
      ...[this.cancel, this.redrive, this.recover, this.recover, this.promote, this.promote],
      this.prune,
    ]
    try {
      await deeds[this.below(deeds.length)].call(this)
    } catch (error) {
      this.#errors.push(`${error.code ?? error.name}: ${error.message}`)
    }
  }

  /** Claims some jobs and does something with each; a few are left to their leases. */
  async work() {
    const request = {
      worker: this.worker,
      limit: 1 + this.below(20),
      leaseMs: 100 + this.below(200),
      start: this.below(4) > 0,
    }
    const held = await this.store.claim(request)
    await this.beat(held)
    const settlements = []
    for (const one of held) {
      const chance = this.below(10)
      if (chance === 0) continue
      if (chance <= 3) await this.commit(one)
      else settlements.push(this.settlementOf(one, chance))
    }
    const next = this.below(3) === 0 ? { ...request, limit: 2 } : undefined
    // What is claimed with it is abandoned, as by a process that was lost after its claim.
    const { answers } = await this.store.settle(settlements, next)
    for (const answer of answers) this.count('settle', answer)
  }

  settlementOf(held, chance) {
    const fence = { attempt: held.job.attempt, claim: held.job.execution.claim }
    if (chance === 4) return { held, command: { kind: 'fail', fence, failure } }
    if (chance === 5) return { held, command: { kind: 'fail', fence, failure: hopeless } }
    if (chance === 6) return { held, command: { kind: 'release', fence } }
    return { held, command: { kind: 'commit', fence }, payload: '"settled"' }
  }

  async beat(held) {
    const beats = held.map(({ ref, job }) => ({
      ref,
      fence: { attempt: job.attempt, claim: job.execution.claim },
    }))
    await this.store.heartbeat(beats, 300)
  }

  async commit(held) {
    const work = async (tx) => {
      await tx.query('INSERT INTO user_rows (job) VALUES (?)', [held.job.id])
      return '"user"'
    }
    // A lease that is about to end leaves no time for the function, and that is an answer, too.
    const answer = await this.store.commit(held, work).catch((error) => {
      if (error.code === 'E_COMMIT_TOO_SLOW') return { kind: 'rejected', error }
      throw error
    })
    this.count('commit', answer)
  }

  async cancel() {
    const answers = await this.store.cancel(this.someIds(2), CLIENT)
    for (const answer of answers) this.count('cancel', answer)
  }

  async redrive() {
    const answers = await this.store.applyCommand(this.someIds(20), { kind: 'redrive' }, OPERATOR)
    for (const answer of answers) this.count('redrive', answer)
  }

  async recover() {
    for (const answer of await this.store.recover(50)) this.count('recover', answer)
  }

  async promote() {
    await this.store.promote(50)
  }

  async prune() {
    const endedBefore = this.store.now() - 100
    await this.store.prune({
      endedBefore,
      limit: 1 + this.below(20),
      archive: async (lines) => appendFileSync(this.archive, lines),
    })
  }
}

async function work({ path, seconds, ...rest }) {
  const store = await openSqliteStore({ path })
  const load = new Load(store, rest)
  const end = performance.now() + seconds * 1000
  for (let open = true; open && performance.now() < end; ) {
    await load.act()
    const { lanes } = await store.counts()
    open = lanes.waiting + lanes.ready + lanes.held > 0
  }
  await store.close()
  return load.result()
}

process.on('message', async (question) => {
  process.send(question.kind === 'work' ? await work(question) : {})
})
