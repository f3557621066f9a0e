/**
 * One run on one store: processes at work, the monkey among them, then healing, the wait until
 * every job has come out, and judgement.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Job } from 'pawl'
import type { Store } from 'pawl/sqlite'
import { SeededRandom } from 'pawl/testing'
import {
  type Acknowledged,
  commitOf,
  type Judged,
  judgeAcknowledged,
  judgeEffects,
  judgeJobs,
  judgeKeys,
  judgeRows,
  judgeSteps,
  readStore,
  type Told,
} from '../sim/checker.ts'
import type { Bed } from './bed.ts'
import { Company, type Role } from './company.ts'
import { writesRow } from './jobs.ts'
import { rampage } from './monkey.ts'
import { postgresBed } from './postgres-bed.ts'
import { type Receiver, startReceiver } from './receiver.ts'
import { EFFECT, type Note, sleep } from './settings.ts'
import { sqliteBed } from './sqlite-bed.ts'

/** The stores that a run can be on. */
export type StoreKind = 'sqlite' | 'postgres'

/** How a run is to be. */
export interface RunOptions {
  readonly store: StoreKind
  readonly seconds: number
  readonly workers: number
  readonly seed: number
  /** Where files and logs go. */
  readonly folder: string
  readonly tell: (line: string) => void
}

/** What a run came to. Faults are counted by their kinds. */
export interface RunResult {
  readonly faults: Readonly<Record<string, number>>
  readonly acknowledged: number
  /** Enqueues that failed with a typed error of an outage. */
  readonly refused: number
  readonly committed: number
  readonly outcomes: Readonly<Record<string, number>>
  /** Attempts whose lease ended, and attempts that were given back. */
  readonly expired: number
  readonly released: number
  readonly effects: number
  readonly deliveries: number
  /** The share of enqueues that succeeded once everything was healed. */
  readonly healedShare: number
  readonly settledAfterMs: number
  readonly violations: readonly Judged[]
}

const HEALED_JOBS = 60
const HEALED_MAX_MS = 60_000
const HEALED_SHARE_MIN = 0.9
const SETTLE_MAX_MS = 120_000

/** Does a run. */
export async function run(options: RunOptions): Promise<RunResult> {
  const folder = join(options.folder, options.store)
  mkdirSync(folder)
  const bed = options.store === 'sqlite' ? await sqliteBed(folder) : await postgresBed()
  const receiver = await startReceiver(options.seed)
  const notes = join(folder, 'notes.ndjson')
  const { seed } = options
  const company = new Company({ store: bed.name, receiver: receiver.url, notes, seed, folder })
  try {
    return await new Run({ ...options, folder }, bed, receiver, company, notes).play()
  } finally {
    await company.close()
    await receiver.close()
    await bed.close()
  }
}

class Run {
  readonly #options: RunOptions
  readonly #bed: Bed
  readonly #receiver: Receiver
  readonly #company: Company
  readonly #notes: string

  constructor(options: RunOptions, bed: Bed, receiver: Receiver, company: Company, notes: string) {
    this.#options = options
    this.#bed = bed
    this.#receiver = receiver
    this.#company = company
    this.#notes = notes
  }

  async play(): Promise<RunResult> {
    const { workers, seconds, seed } = this.#options
    const random = new SeededRandom(seed)
    const chance = () => random.next()
    const staff = { worker: workers, client: 1, operator: 1 } as const
    await Promise.all(
      Object.entries(staff).map(([role, count]) => this.#company.staff(role as Role, count)),
    )
    const faults = await rampage(
      {
        company: this.#company,
        workers,
        chance,
        heal: () => this.#bed.heal(),
        held: () => this.#withStore(heldIn),
        onFault: (kind) => this.#log(kind),
      },
      this.#bed.faults(this.#company, chance),
      seconds,
    )
    const healedNotes = await this.#heal()
    const settledAfterMs = await this.#settle()
    await Promise.all(this.#company.at('worker').map((worker) => this.#company.stop(worker)))
    this.#log('judging')
    return this.#judge({ faults, healedNotes, settledAfterMs })
  }

  /** No more faults: everybody who has to be there is, and a new client tries its luck. */
  async #heal(): Promise<string> {
    this.#log('healing')
    await this.#bed.heal()
    for (const role of ['client', 'operator'] as const) {
      for (const member of this.#company.at(role)) await member.kill()
    }
    await this.#company.staff('worker', this.#options.workers)
    await this.#withStore(async (store) => {
      for (const { name, pausedAt } of await store.listQueues()) {
        if (pausedAt !== undefined) await store.resumeQueue(name, { actor: 'client' })
      }
    })
    const notes = join(this.#options.folder, 'healed.ndjson')
    const client = this.#company.hire('client', { notes, count: HEALED_JOBS })
    await client.ends(HEALED_MAX_MS).catch((error) => this.#company.broken.push(String(error)))
    return notes
  }

  /** Waits until no job is open; one that still is has broken P15. Returns how long it took. */
  async #settle(): Promise<number> {
    const start = performance.now()
    const spent = () => Math.round(performance.now() - start)
    return this.#withStore(async (store) => {
      for (;;) {
        const { waiting, ready, held, delivering } = (await store.counts()).lanes
        if (waiting + ready + held + delivering === 0 || spent() > SETTLE_MAX_MS) return spent()
        await sleep(100)
      }
    })
  }

  async #judge(parts: {
    readonly faults: Readonly<Record<string, number>>
    readonly healedNotes: string
    readonly settledAfterMs: number
  }): Promise<RunResult> {
    const { faults, settledAfterMs } = parts
    const healed = readNotes(parts.healedNotes)
    const all = [...readNotes(this.#notes), ...healed]
    const acknowledged = all.filter((note) => note.kind === 'acknowledged')
    const healedShare = healed.filter(isAcknowledged).length / HEALED_JOBS
    const { told, now } = await this.#withStore(async (store) => ({
      told: await readStore(store),
      now: store.now(),
    }))
    const facts = told.flatMap((one) => one.facts)
    const count = (trigger: string) => facts.filter((fact) => fact.trigger === trigger).length
    const effects = told.reduce((sum, one) => sum + (commitOf(one.facts)?.effects ?? 0), 0)
    const deliveries = [...this.#receiver.deliveries.values()].reduce((sum, n) => sum + n, 0)
    const violations = [
      ...(await this.#judgeWorld(told, all, now)),
      ...vacuous({ ...faults, expire: count('expire'), release: count('release') }),
      ...(healedShare < HEALED_SHARE_MIN
        ? [broken('P15', `only ${healedShare} of the enqueues after healing succeeded`)]
        : []),
    ]
    return {
      faults,
      acknowledged: new Set(acknowledged.map(({ id }) => id)).size,
      refused: all.filter(({ kind }) => kind === 'refused').length,
      committed: told.filter((one) => commitOf(one.facts) !== undefined).length,
      outcomes: outcomesOf(told),
      expired: count('expire'),
      released: count('release'),
      effects,
      deliveries,
      healedShare,
      settledAfterMs,
      violations,
    }
  }

  async #judgeWorld(told: readonly Told[], notes: readonly Note[], now: number) {
    const acknowledged: Acknowledged[] = notes.filter(isAcknowledged)
    const asked = new Set(notes.filter(({ kind }) => kind === 'asked').map(({ id }) => id))
    const delivered = new Set(this.#receiver.deliveries.keys())
    return [
      ...judgeJobs(told, now),
      ...judgeAcknowledged(told, acknowledged, asked),
      ...judgeKeys(acknowledged),
      ...judgeRows(told, await this.#bed.rows(), ({ type }) => writesRow(type)),
      ...judgeEffects(told, delivered, EFFECT),
      ...judgeSteps(told, this.#receiver.steps),
      ...this.#company.broken.map((what) => broken('P16', what)),
      ...(await this.#bed.damage()).map((what) => broken('integrity', what)),
    ]
  }

  async #withStore<T>(use: (store: Store) => Promise<T>): Promise<T> {
    const store = await this.#bed.open()
    try {
      return await use(store)
    } finally {
      await store.close()
    }
  }

  #log(what: string): void {
    const { folder, store, tell } = this.#options
    appendFileSync(join(folder, 'monkey.log'), `${new Date().toISOString()} ${what}\n`)
    tell(`${store}: ${what}`)
  }
}

function outcomesOf(told: readonly Told[]): Record<string, number> {
  const outcomes: Record<string, number> = {}
  for (const { job } of told) {
    const outcome = job.outcome ?? job.state
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
  }
  return outcomes
}

/** A run in which something never happened proves nothing of it. */
function vacuous(counts: Readonly<Record<string, number>>): Judged[] {
  const never = Object.entries(counts).filter(([, count]) => count === 0)
  return never.map(([kind]) => broken('vacuity', `there was no ${kind}`))
}

const isAcknowledged = (note: Note) => note.kind === 'acknowledged'

function broken(promise: string, what: string): Judged {
  return { promise, job: '', what, facts: [] }
}

async function heldIn(store: Store): Promise<Job[]> {
  return [...(await store.list({ lane: 'held' }, { limit: 1000 })).items]
}

/** The notes of clients; a line that its writer did not finish before it died was not said. */
function readNotes(path: string): Note[] {
  if (!existsSync(path)) return []
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter(isWhole)
    .map((line) => JSON.parse(line))
}

const isWhole = (line: string) => line.startsWith('{') && line.endsWith('}')
