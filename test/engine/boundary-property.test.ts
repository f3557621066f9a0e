// Random handlers under random crashes, on both stores and in virtual time. Whatever steps, throws,
// commits and effects they are made of: the user's table holds the row of each job once, every
// effect that was declared is delivered under its one key, and a step runs again only where its
// result was not stored.
import fc from 'fast-check'
import { createPawl, type Delivery, defineJob, type Job, type Pawl, Retryable, typed } from 'pawl'
import { type TestEnvironment, testEnvironment } from 'pawl/testing'
import { expect, it } from 'vitest'
import type { Store } from '../../src/stores/contract/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { checkStore } from '../contract/store/check.ts'
import { thorough } from '../support/extent.ts'
import { freshSchema, sharedPostgres } from '../support/postgres/databases.ts'
import { MortalProcess } from './mortal-process.ts'

const TICK_MS = 50
const TICKS_MAX = 20_000
const TURNS_MAX = 2000
const LEASE_MS = 2000

/** What one handler does, in order; each part may throw in the first attempts. */
interface Part {
  readonly kind: 'step' | 'pause' | 'throw'
  readonly name: 'a' | 'b'
  /** In so many attempts it throws. */
  readonly throws: number
  readonly ms: number
}

interface Plan {
  readonly parts: readonly Part[]
  /** Without a commit of its own the handler returns, and nothing is booked. */
  readonly commits: boolean
  /** In so many attempts the function of the commit throws, after its row and its effects. */
  readonly throwsInside: number
  readonly throwsAfter: boolean
  readonly effects: number
  /** So many deliveries of each effect fail. */
  readonly fails: number
}

const part: fc.Arbitrary<Part> = fc.record({
  kind: fc.constantFrom('step', 'step', 'step', 'pause', 'throw'),
  name: fc.constantFrom('a', 'b'),
  throws: fc.integer({ min: 0, max: 2 }),
  ms: fc.integer({ min: 0, max: 400 }),
})

const plan: fc.Arbitrary<Plan> = fc.record({
  parts: fc.array(part, { maxLength: 5 }),
  commits: fc.boolean(),
  throwsInside: fc.integer({ min: 0, max: 1 }),
  throwsAfter: fc.boolean(),
  effects: fc.integer({ min: 0, max: 3 }),
  fails: fc.integer({ min: 0, max: 2 }),
})

const history = fc.record({
  plans: fc.array(plan, { minLength: 1, maxLength: 5 }),
  /** After how many ticks the process crashes, each time. */
  crashes: fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 6 }),
})

interface Outside {
  readonly delivered: string[]
  readonly ran: { readonly jobId: string; readonly key: string; readonly attempt: number }[]
}

const any = {
  input: typed<{ n: number }>(),
  retry: { max: 20, delay: '100ms' },
  crashesMax: 20,
} as const

function jobsOf(plans: readonly Plan[], { environment }: MortalProcess, outside: Outside) {
  const { timers } = environment
  const sleep = (ms: number) => new Promise<void>((resolve) => timers.after(ms, resolve))
  const planOf = (n: number) => plans[n] as Plan
  return defineJob({
    ...any,
    name: 'any',
    effects: {
      mail: {
        timeout: '1s',
        retry: { max: 20, delay: '200ms', backoff: 'fixed' },
        async deliver({ payload, key, tries }: Delivery<{ n: number }>) {
          await sleep(100)
          if (tries <= planOf(payload.n).fails) throw new Retryable('not yet')
          outside.delivered.push(key)
          // Time to die between the delivery and its mark.
          await sleep(100)
        },
      },
    },
    async run({ input, jobId, attempt, step, commit }) {
      const { parts, commits, throwsInside, throwsAfter, effects } = planOf(input.n)
      const perform = async ({ kind, throws, ms }: Part) => {
        await sleep(ms)
        if (kind !== 'pause' && attempt <= throws) throw new Retryable('not yet')
      }
      for (const one of parts) {
        if (one.kind !== 'step') await perform(one)
        else {
          await step(one.name, async ({ key }) => {
            outside.ran.push({ jobId, key, attempt })
            await perform(one)
          })
        }
      }
      if (!commits) return
      await commit(async (tx) => {
        await tx.query(`INSERT INTO booked (n) VALUES (${input.n})`)
        for (let i = 0; i < effects; i++) tx.effect('mail', input)
        if (attempt <= throwsInside) throw new Retryable('not yet')
        return null
      })
      await sleep(50)
      if (throwsAfter) throw new Error('too late to matter')
    },
  })
}

const reader = defineJob({
  name: 'reader',
  run: ({ commit }) => commit((tx) => tx.query('SELECT n FROM booked ORDER BY n')),
})
const maker = defineJob({
  name: 'maker',
  run: ({ commit }) =>
    commit(async (tx) => {
      await tx.query('CREATE TABLE booked (n INTEGER NOT NULL)')
    }),
})

/** One history: a process that dies and is replaced, until every job has come out. */
class History {
  readonly #environment: TestEnvironment
  readonly #store: Store
  readonly #base: Store
  readonly #outside: Outside = { delivered: [], ran: [] }
  /** Calls of the store that are on their way. */
  #calls = 0

  constructor(environment: TestEnvironment, store: Store) {
    this.#environment = environment
    this.#base = store
    this.#store = new Proxy(store, {
      get: (target, name) => {
        const value = target[name as keyof Store] as unknown
        if (typeof value !== 'function') return value
        const verb = value.bind(target) as (...values: unknown[]) => unknown
        if (name === 'now' || name === 'onWake') return verb
        return async (...values: unknown[]) => {
          this.#calls++
          try {
            return await verb(...values)
          } finally {
            this.#calls--
          }
        }
      },
    })
  }

  async play(plans: readonly Plan[], crashes: readonly number[]): Promise<void> {
    const client = await this.#hire(plans)
    await this.#drain(await client.pawl.enqueue(maker, null))
    const handles = await client.pawl.enqueueMany(
      defineJob({ ...any, name: 'any' }),
      plans.map((_, n) => ({ input: { n } })),
    )
    let worker = client
    for (const ticks of crashes) {
      for (let i = 0; i < ticks; i++) await this.#tick()
      worker.process.crash()
      worker = await this.#hire(plans)
    }
    const jobs: Job[] = []
    for (const handle of handles) jobs.push(await this.#drain(handle))
    const reading = await worker.pawl.enqueue(reader, null)
    await this.#drain(reading)
    const texts = await this.#base.payloads(reading.id)
    worker.process.crash()
    const rows = (JSON.parse(texts?.result ?? '[]') as { n: number }[]).map(({ n }) => n)
    const booked = plans.flatMap(({ commits }, n) => (commits ? [n] : []))
    expect(rows).toEqual(booked)
    for (const [n, job] of jobs.entries()) await this.#judge(plans[n] as Plan, job)
    await checkStore(this.#base)
  }

  async #hire(plans: readonly Plan[]): Promise<{ process: MortalProcess; pawl: Pawl }> {
    const process = new MortalProcess(this.#environment, this.#store)
    const { store, environment } = process
    const jobs = [jobsOf(plans, process, this.#outside), maker, reader]
    const pawl = await createPawl({ store, environment, jobs })
    await pawl.work({ concurrency: 3, lease: LEASE_MS, recover: '200ms', poll: '500ms' })
    return { process, pawl }
  }

  async #judge({ commits, effects }: Plan, job: Job): Promise<void> {
    expect(job.outcome).toBe('succeeded')
    const count = commits ? effects : 0
    const wanted = Array.from({ length: count }, (_, i) => `${job.id}/mail/${i + 1}`)
    const sent = this.#outside.delivered.filter((key) => key.startsWith(job.id))
    expect([...new Set(sent)].sort()).toEqual(wanted)
    const { items } = await this.#base.listEffects({ jobId: job.id })
    expect(items.map(({ state }) => state)).toEqual(wanted.map(() => 'delivered'))
    let attempt = 0
    for (const { trigger, step } of await this.#base.facts(job.id)) {
      if (trigger === 'claim') attempt++
      if (step === undefined) continue
      const key = `${job.id}/step/${step.name}/${step.n}`
      const runs = this.#outside.ran.filter((run) => run.jobId === job.id && run.key === key)
      expect(Math.max(...runs.map((run) => run.attempt))).toBe(attempt)
    }
  }

  /** Lets time pass until a job has ended. */
  async #drain({ id }: { readonly id: string }): Promise<Job> {
    for (let tick = 0; tick < TICKS_MAX; tick++) {
      const job = await this.#base.get(id)
      if (job?.outcome === 'succeeded') return job
      expect(job?.state).not.toBe('quarantined')
      await this.#tick()
    }
    throw new Error(`job ${id} never came out`)
  }

  /** Lets happen what needs no time, then moves the time on. */
  async #tick(): Promise<void> {
    for (let turn = 0; turn < 6 || (this.#calls > 0 && turn < TURNS_MAX); turn++) {
      await new Promise<void>((resolve) => setImmediate(resolve))
    }
    this.#environment.advance(TICK_MS)
  }
}

const STORES = [
  {
    name: 'SQLite',
    runs: thorough(20, 100),
    open: (environment: TestEnvironment) => openSqliteStore({ path: ':memory:', environment }),
  },
  {
    name: 'PostgreSQL',
    runs: thorough(5, 24),
    open: (environment: TestEnvironment) => {
      const url = sharedPostgres()
      const schema = freshSchema(url)
      const config = { connectionString: url, options: `-c search_path=${schema}` }
      const clock = 'environment'
      return openPostgresStore({ config, schema, environment, clock, connections: 3 })
    },
  },
] as const

it.each(STORES)(
  'on $name rows come once, effects under one key, and stored steps not again',
  { timeout: 240_000 },
  async ({ runs, open }) => {
    const property = fc.asyncProperty(history, async ({ plans, crashes }) => {
      const environment = testEnvironment()
      const store = await open(environment)
      try {
        await new History(environment, store).play(plans, crashes)
      } finally {
        await store.close()
      }
    })
    await fc.assert(property, { numRuns: runs, endOnFailure: true })
  },
)
