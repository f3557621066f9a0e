// Real processes race each other for what a rate limit, debounce and singletons admit, on both
// databases. Nobody coordinates them but the store.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Job } from 'pawl'
import type { Fact } from 'pawl/rules'
import { expect, it, onTestFinished } from 'vitest'
import { allJobs, brokenPromises, rowsOf } from '../../processes/inspect.ts'
import { thorough } from '../../support/extent.ts'
import { connected } from '../../support/postgres/clients.ts'
import { PLACES, type Place } from './places.ts'

const PROGRAM = fileURLToPath(new URL('admitter.mjs', import.meta.url))
const PROCESSES = 4
const ROUNDS = thorough(20, 60)
const KEYS = 2
const RATE = 5
const KILLS = thorough(4, 40)
/** A process is killed after so many of its rounds. */
const ROUNDS_OF_VICTIM = 3

interface Answer {
  readonly type: string
  readonly key: string
  readonly from: string
  readonly round: number
  readonly id?: string
  readonly created?: boolean
  readonly retryAfterMs?: number
}

class Admitter {
  readonly answers: Answer[] = []
  readonly child: ChildProcess
  #rounds = 0
  #onRound: () => void = () => {}

  constructor(args: object) {
    this.child = fork(PROGRAM, [JSON.stringify(args)], { execArgv: [] })
    onTestFinished(() => void this.child.kill('SIGKILL'))
    this.child.on('message', (said: { readonly answers?: readonly Answer[] }) => {
      this.answers.push(...(said.answers ?? []))
      if (said.answers !== undefined) this.#rounds++
      this.#onRound()
    })
  }

  static async ready(args: object): Promise<Admitter> {
    const admitter = new Admitter(args)
    await once(admitter.child, 'message')
    return admitter
  }

  begin(): void {
    this.child.send('begin')
  }

  async hasDone(rounds: number): Promise<void> {
    while (this.#rounds < rounds) {
      await new Promise<void>((resolve) => {
        this.#onRound = resolve
      })
    }
  }

  async kill(): Promise<void> {
    const gone = once(this.child, 'exit')
    this.child.kill('SIGKILL')
    await gone
  }
}

interface Told {
  readonly job: Job
  readonly facts: readonly Fact[]
}

async function jobsOf({ pawl }: Place, type: string): Promise<Told[]> {
  const jobs = (await allJobs(pawl.store)).filter((job) => job.type === type)
  return Promise.all(jobs.map(async (job) => ({ job, facts: await pawl.store.facts(job.id) })))
}

async function inputOf({ pawl }: Place, id: string): Promise<Answer> {
  return JSON.parse((await pawl.store.payloads(id))?.input ?? 'null') as Answer
}

async function expectSound({ pawl }: Place): Promise<void> {
  const { findings } = await pawl.doctor().check({ full: true })
  expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
  expect(await brokenPromises(pawl.store)).toEqual([])
}

const of = (answers: readonly Answer[], type: string, key: string) =>
  answers.filter((answer) => answer.type === type && answer.key === key)

it.each(PLACES)(
  'on $name processes that enqueue at once are admitted exactly as far as the rules allow',
  { timeout: 120_000 },
  async ({ place }) => {
    const here = await place()
    const racers = await Promise.all(
      Array.from({ length: PROCESSES }, (_, n) =>
        Admitter.ready({ store: here.store, name: `p${n}`, rounds: ROUNDS, keys: KEYS }),
      ),
    )
    for (const racer of racers) racer.begin()
    const ends = await Promise.all(racers.map(({ child }) => once(child, 'exit')))
    expect(ends.map(([code]) => code)).toEqual(racers.map(() => 0))
    const answers = racers.flatMap((racer) => racer.answers)
    const asked = (PROCESSES * ROUNDS) / KEYS
    const single = await jobsOf(here, 'single')
    const newest = await jobsOf(here, 'newest')
    const debounced = await jobsOf(here, 'debounced')
    for (const key of Array.from({ length: KEYS }, (_, n) => `key ${n}`)) {
      const limited = of(answers, 'limited', key)
      expect(limited).toHaveLength(asked)
      expect(limited.filter(({ created }) => created)).toHaveLength(RATE)
      const refused = limited.filter(({ retryAfterMs }) => (retryAfterMs ?? 0) > 0)
      expect(refused).toHaveLength(asked - RATE)
      for (const type of ['single', 'newest']) {
        const own = of(answers, type, key)
        expect(own.filter(({ created }) => created)).toHaveLength(1)
        expect(new Set(own.map(({ id }) => id)).size).toBe(1)
      }
      // The job that waits has the last input of one of the processes.
      const [last] = of(answers, 'newest', key)
      const input = await inputOf(here, last?.id ?? '')
      expect(input.round).toBeGreaterThanOrEqual(ROUNDS - KEYS)
    }
    expect([single.length, newest.length]).toEqual([KEYS, KEYS])
    // Each enqueue after the first one left its fact: none was lost in the race.
    expect(newest.map(({ facts }) => facts.length)).toEqual(newest.map(() => asked))
    const replaced = debounced.flatMap(({ facts }) => facts).filter(isReplacement)
    const accepted = answers.filter(({ type }) => type === 'debounced')
    expect(replaced).toHaveLength(accepted.filter(({ created }) => !created).length)
    expect(debounced).toHaveLength(accepted.filter(({ created }) => created).length)
    await expectSound(here)
  },
)

const isReplacement = ({ trigger }: Fact) => trigger === 'replace'

it.each(PLACES)(
  'on $name processes that are killed while they enqueue and work break no rule of admission',
  { timeout: 60_000 + KILLS * 20_000 },
  async ({ place }) => {
    const here = await place()
    const orderWritten = await followWrites(here)
    let [started, killed] = [0, 0]
    const start = async () => {
      const name = `p${++started}`
      const admitter = await Admitter.ready({ store: here.store, name, keys: KEYS, works: true })
      admitter.begin()
      return admitter
    }
    const all = await Promise.all(Array.from({ length: PROCESSES }, start))
    const living = [...all]
    for (; killed < KILLS; killed++) {
      const victim = living[killed % PROCESSES] as Admitter
      await victim.hasDone(ROUNDS_OF_VICTIM)
      await victim.kill()
      const next = await start()
      all.push(next)
      living[killed % PROCESSES] = next
    }
    await Promise.all(living.map((admitter) => admitter.kill()))
    const answers = all.flatMap((admitter) => admitter.answers)
    const order = await orderWritten()
    const [limited, single, newest] = [
      await jobsOf(here, 'limited'),
      await jobsOf(here, 'single'),
      await jobsOf(here, 'newest'),
    ]
    for (const key of Array.from({ length: KEYS }, (_, n) => `key ${n}`)) {
      const keyed = async (told: readonly Told[]) => {
        const inputs = await Promise.all(told.map(({ job }) => inputOf(here, job.id)))
        return told.filter((_, i) => inputs[i]?.key === key)
      }
      expect(await keyed(limited)).toHaveLength(RATE)
      expect(aliveAtOnce(await keyed(single), order)).toBe(1)
      expect(aliveAtOnce(await keyed(newest), order)).toBeLessThanOrEqual(2)
    }
    const there = new Set((await allJobs(here.pawl.store)).map(({ id }) => id))
    expect(answers.filter(({ id }) => id !== undefined && !there.has(id))).toEqual([])
    // It would prove nothing if every job was the first and last of its key.
    expect(single.length).toBeGreaterThan(KEYS)
    await expectSound(here)
  },
)

/** The number of each fact in the order in which facts were written, by job and number. */
type Order = ReadonlyMap<string, number>
type Written = { readonly id: string; readonly seq: number }
const ORDER_OF_FILE = `
  SELECT j.id, l.seq FROM pawl_ledger l JOIN pawl_jobs j ON j.rid = l.job ORDER BY l.pos`
const NOTE_WRITES = `
  CREATE TABLE written (n bigserial, id uuid, seq int);
  CREATE FUNCTION note_write() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO public.written (id, seq) VALUES (NEW.job, NEW.seq); RETURN NULL; END $$;
  CREATE TRIGGER note_write AFTER INSERT ON pawl.ledger
    FOR EACH ROW EXECUTE FUNCTION note_write();`

/**
 * Follows the order of writes from now on; call it in the end for the order. On PostgreSQL neither
 * times nor numbers of transactions tell, because a transaction that waits for another one began
 * before that one ended.
 */
async function followWrites({ store }: Place): Promise<() => Promise<Order>> {
  const orderOf = (rows: readonly Written[]) =>
    new Map(rows.map(({ id, seq }, i) => [`${id} ${seq}`, i]))
  const path = store.startsWith('sqlite:') ? store.slice('sqlite:'.length) : undefined
  if (path !== undefined) return async () => orderOf(rowsOf<Written>(path, ORDER_OF_FILE))
  const client = await connected(store)
  await client.query(NOTE_WRITES)
  return async () => {
    await client.query('DROP TRIGGER note_write ON pawl.ledger')
    return orderOf((await client.query<Written>('SELECT id, seq FROM written ORDER BY n')).rows)
  }
}

/** How many of the jobs were alive at the same time, at most. */
function aliveAtOnce(told: readonly Told[], order: Order): number {
  const placeOf = (fact: Fact | undefined) =>
    order.get(`${fact?.jobId} ${fact?.seq}`) ?? Number.POSITIVE_INFINITY
  const lives = told.map(({ facts }) => ({
    from: placeOf(facts[0]),
    to: placeOf(facts.find(({ outcome }) => outcome !== undefined)),
  }))
  const alive = ({ from }: { readonly from: number }) =>
    lives.filter((other) => other.from <= from && other.to > from).length
  return Math.max(0, ...lives.map(alive))
}
