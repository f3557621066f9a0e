// What R0 asks of the machine as a whole, on both stores: every command in every state,
// invariants while several workers and an operator are at it, and stalled jobs by the clock.
import { createPawl, defineJob, type Job, Terminal } from 'pawl'
import { type Command, hardened, hopsOf } from 'pawl/rules'
import type { Held, Store } from 'pawl/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { PLACES } from '../engine/processes/places.ts'
import { allJobs, brokenPromises } from '../processes/inspect.ts'
import { type Examined, STORES as STORE_KINDS } from '../stores/examined-stores.ts'
import { PAIRS, STATES, type State } from './000-hardened-helpers.ts'
import { wayOf } from './played-job.ts'

const ANN = { actor: 'operator', operator: 'ann', note: 'to see what happens' } as const
const EDGES = new Set(PAIRS.filter(({ kind }) => kind === 'edge').map((p) => `${p.from} ${p.to}`))

/** Every command that somebody can tell a job, by name. */
const COMMANDS: readonly Command[] = [
  { kind: 'submit' },
  { kind: 'due' },
  { kind: 'reschedule', runAt: 9_000_000_000_000 },
  { kind: 'prioritise', priority: 7 },
  { kind: 'exhaust' },
  { kind: 'cancel' },
  { kind: 'park' },
  { kind: 'redrive' },
  { kind: 'discard' },
  { kind: 'done', attempt: 1 },
  { kind: 'expire', fence: { attempt: 1, claim: '99999999-0000-7000-8000-000000000000' } },
]

async function enqueue({ store, environment }: Examined): Promise<string> {
  const jobId = environment.ids.next()
  const command = { jobId, type: 'work', queue: 'default' }
  await store.enqueue([{ lifecycle: hardened, command, input: 'null' }])
  return jobId
}

async function hold(examined: Examined, leaseMs = 60_000): Promise<Held> {
  await enqueue(examined)
  const [held] = await examined.store.claim({ worker: 'w1', limit: 1, leaseMs, start: true })
  return held as Held
}

const fenceOf = ({ job }: Held) => ({ attempt: job.attempt, claim: job.execution?.claim ?? '' })

/** A job in a state, by its id. */
async function jobIn(examined: Examined, state: State): Promise<string> {
  if (state === 'pending') return enqueue(examined)
  const held = await hold(examined)
  const { store } = examined
  const fence = fenceOf(held)
  const failure = { kind: 'error', message: 'it broke' } as const
  const command = {
    running: undefined,
    succeeded: { kind: 'commit', fence },
    failed: { kind: 'fail', fence, failure: { ...failure, class: 'retryable' } },
    quarantined: { kind: 'fail', fence, failure: { ...failure, class: 'terminal' } },
  } as const
  const report = command[state]
  if (report !== undefined) {
    await store.settle([{ held, command: report, ...(state === 'succeeded' && { payload: '1' }) }])
  }
  expect(await store.get(held.job.id)).toMatchObject({ state })
  return held.job.id
}

describe.each(STORE_KINDS)('R0 on $name', ({ open }) => {
  it('every command in every state takes edges of the table, or changes nothing', async () => {
    const examined = await open()
    const { store } = examined
    const seen = { done: 0, same: 0, rejected: 0, asked: 0 }
    for (const state of STATES) {
      for (const command of COMMANDS) {
        const id = await jobIn(examined, state)
        const before = [await store.get(id), await store.facts(id)]
        const [answer] = await store.applyCommand([id], command, ANN)
        const what = `${command.kind} of a job that is ${state}`
        seen[answer?.kind ?? 'asked']++
        const facts = await store.facts(id)
        if (answer?.kind === 'done') {
          expect(facts, what).toHaveLength((before[1] as unknown[]).length + 1)
          // What can be given up only by way of others opens an attempt, and aborts it.
          const hops = hopsOf(answer.fact).map(({ from, to }) => `${from} ${to}`)
          expect(
            hops.filter((hop) => !EDGES.has(hop)),
            what,
          ).toEqual([])
          expect(facts.at(-1), what).toMatchObject({ to: answer.job.state, operator: 'ann' })
          expect(state, what).not.toBe('succeeded')
        } else {
          expect([await store.get(id), facts], what).toEqual(before)
        }
      }
    }
    expect(seen.done).toBeGreaterThan(10)
    expect(seen.rejected).toBeGreaterThan(10)
    expect(seen.same).toBeGreaterThan(3)
    expect(await brokenPromises(store)).toEqual([])
  })

  it('of contradicting commands at one moment each finds the job as the last left it', async () => {
    const examined = await open()
    const others = [examined.store, await examined.again(), await examined.again()]
    const ids = await Promise.all(Array.from({ length: 10 }, () => enqueue(examined)))
    const commands = [{ kind: 'park' }, { kind: 'cancel' }, { kind: 'redrive' }] as const
    const told = await Promise.all(
      others.flatMap((store) => commands.map((command) => store.applyCommand(ids, command, ANN))),
    )
    const facts = told.flat().flatMap((answer) => (answer.kind === 'done' ? [answer.fact] : []))
    // Whoever was told that it was done is in the ledger, once, and nobody else is.
    for (const id of ids) {
      const own = facts.filter(({ jobId }) => jobId === id).toSorted((a, b) => a.seq - b.seq)
      expect((await examined.store.facts(id)).slice(1)).toEqual(own)
      expect(own.length).toBeGreaterThan(0)
    }
    expect(await brokenPromises(examined.store)).toEqual([])
  })

  it.each([
    ['2 seconds', 2000],
    ['10 minutes', 600_000],
    ['30 minutes', 1_800_000],
  ])(
    'a job is stalled after a lease of %s, not before, and is pending again',
    async (_, leaseMs) => {
      const examined = await open()
      const { store, environment } = examined
      const { job } = await hold(examined, leaseMs)
      environment.advance(leaseMs - 1)
      expect(await store.recover(10)).toEqual([])
      environment.advance(1)
      const [found] = await store.recover(10)
      expect(found).toMatchObject({ kind: 'done', holder: 'w1', job: { id: job.id, crashes: 1 } })
      const fact = (await store.facts(job.id)).at(-1)
      expect(fact && wayOf(fact)).toBe('running → failed → pending')
      expect(fact?.runAt).toBe(store.now() + 60_000)
      environment.advance(59_999)
      expect(await store.promote(10)).toBe(0)
      environment.advance(1)
      expect(await store.promote(10)).toBe(1)
      const [again] = await store.claim({ worker: 'w2', limit: 1, leaseMs: 1000, start: true })
      expect(again?.job).toMatchObject({ id: job.id, state: 'running', attempt: 2 })
    },
  )
})

/** What is seen of jobs from outside while others work on them. */
class Witness {
  readonly #succeeded = new Map<string, string>()
  readonly #attempts = new Map<string, number>()
  readonly broken: string[] = []
  /** At how many looks somebody was at work. */
  busy = 0

  see(jobs: readonly Job[]): void {
    const ids = jobs.map(({ id }) => id)
    if (new Set(ids).size !== ids.length) this.broken.push('a job is there twice')
    if (jobs.some(({ state }) => state === 'running')) this.busy++
    for (const job of jobs) {
      const { id, state, attempt, execution } = job
      if (!STATES.includes(state as State)) this.broken.push(`${id} is ${state}`)
      if ((state === 'running') !== (execution?.status === 'IN_PROGRESS')) {
        this.broken.push(`${id} is ${state}, and its execution ${execution?.status}`)
      }
      const before = this.#attempts.get(id) ?? 0
      if (attempt < before) this.broken.push(`${id} fell from attempt ${before} to ${attempt}`)
      this.#attempts.set(id, attempt)
      const text = JSON.stringify(job)
      const then = this.#succeeded.get(id)
      if (then !== undefined && then !== text) this.broken.push(`${id} had succeeded and changed`)
      if (state === 'succeeded') this.#succeeded.set(id, text)
    }
  }

  get succeeded(): number {
    return this.#succeeded.size
  }
}

describe.each(PLACES)('R0 on $name, while three workers and an operator work', ({ place }) => {
  it('its invariants hold at every look, and in the end', { timeout: 60_000 }, async () => {
    const { store: name } = await place()
    const job = defineJob({
      name: 'work',
      lifecycle: hardened,
      run: async ({ input, attempt }) => {
        await new Promise((turn) => setImmediate(turn))
        if (Number(input) % 7 === 0 && attempt === 1) throw new Terminal('not yet')
        return input
      },
    })
    const open = async () => {
      const pawl = await createPawl({ store: name, jobs: [job] })
      onTestFinished(() => pawl.close())
      return pawl
    }
    const office = await open()
    const workers = await Promise.all([open(), open(), open()])
    for (const pawl of workers) await pawl.work({ concurrency: 3, poll: '50ms' })
    const inputs = Array.from({ length: 600 }, (_, input) => ({ input }))
    const handles = await office.enqueueMany(job, inputs)
    const ann = office.operator({ name: 'ann', reason: 'mended' })
    const witness = new Witness()
    const doctor = office.doctor()
    const isOver = (jobs: readonly Job[]) => jobs.every(({ outcome }) => outcome !== null)
    for (let look = 0; look < 500; look++) {
      const jobs = await allJobs(office.store)
      witness.see(jobs)
      // Invariants are checked while all go on, and no change half way is ever seen.
      const { errors, warnings, findings } = await doctor.check({ full: true })
      expect({ errors, warnings }, JSON.stringify(findings[0])).toEqual({
        errors: 0,
        warnings: 0,
      })
      const parked = jobs.filter(({ state }) => state === 'quarantined').map(({ id }) => id)
      if (parked.length > 0) await ann.redrive({ ids: parked })
      if (isOver(jobs)) break
    }
    const store: Store = office.store
    witness.see(await allJobs(store))
    expect(witness.broken).toEqual([])
    expect(witness.busy).toBeGreaterThan(0)
    expect(witness.succeeded).toBe(handles.length)
    expect(await brokenPromises(store)).toEqual([])
    expect(await doctor.check({ full: true })).toMatchObject({ ok: true, complete: true })
  })
})
