// Two processes that enqueue jobs of one key at the same time: the first is held before each of its
// statements while the second runs until it has ended or waits for a lock. Also against claims,
// cancellations and the step of workers.
import { standard } from 'pawl/rules'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Admission } from '../../src/core/admission.ts'
import type { Enqueued, Held, Store } from '../../src/stores/contract/store.ts'
import { sharedPostgres } from '../support/postgres/databases.ts'
import { PostgresStage } from './postgres-stage.ts'

let stage: PostgresStage
beforeAll(async () => {
  stage = await PostgresStage.open(sharedPostgres())
})
afterAll(() => stage.close())

const RATE: Admission = { rate: { limit: 2, periodMs: 60_000, key: 'k' } }
const DEBOUNCE: Admission = { debounce: { periodMs: 1000, timeoutMs: 60_000, key: 'k' } }
const single = (mode: 'skip' | 'cancel' | 'latest'): Admission => ({
  singleton: { mode, key: 'k' },
})

async function enqueue(store: Store, admission: Admission, input = '0'): Promise<Enqueued> {
  const command = { jobId: stage.newId(), type: 'example', queue: 'main' }
  const [answer] = await store.enqueue([{ lifecycle: standard, input, command, admission }])
  return answer as Enqueued
}

const claim = (store: Store): Promise<Held[]> =>
  store.claim({ worker: 'w', limit: 1, leaseMs: 30_000, start: true })

/** How the two verbs of a meeting ended, and whether the second waited for the first. */
async function meet<A, B>(
  prepare: () => Promise<unknown>,
  [first, second]: readonly [(store: Store) => Promise<A>, (store: Store) => Promise<B>],
  judge: (ends: readonly [A, B], n: number) => Promise<void>,
): Promise<number> {
  const [one, two] = stage.sides
  await stage.clear()
  await prepare()
  void one.gate.stopAt(Number.POSITIVE_INFINITY)
  await first(one.store)
  const statements = one.gate.sent
  for (let n = 1; n <= statements; n++) {
    await stage.clear()
    await prepare()
    const held = one.gate.stopAt(n)
    const beginning = first(one.store)
    await Promise.race([held, beginning])
    const other = second(two.store)
    await stage.untilEndedOrBlocked(other)
    one.gate.open()
    await judge([await beginning, await other], n)
  }
  return statements
}

/** The jobs of the store that have not ended, with their inputs. */
async function live(): Promise<{ id: string; input: string | undefined; state: string }[]> {
  const { items } = await stage.reader.list({})
  const jobs = items.filter(({ outcome }) => outcome === null)
  return Promise.all(
    jobs.map(async ({ id, state }) => {
      const payloads = await stage.reader.payloads(id)
      return { id, input: payloads?.input, state }
    }),
  )
}

const kinds = (ends: readonly Enqueued[]) => ends.map(({ kind }) => kind).sort()

describe('two enqueues of one key at once', () => {
  it('a rate limit has one place left for both', async () => {
    const statements = await meet(
      () => enqueue(stage.reader, RATE),
      [(store) => enqueue(store, RATE), (store) => enqueue(store, RATE)],
      async (ends) => {
        expect(kinds(ends)).toEqual(['created', 'rejected'])
        expect(await live()).toHaveLength(2)
      },
    )
    expect(statements).toBeGreaterThan(3)
  })

  it('a debounced job is made once, and its input is that of the one who came last', async () => {
    for (const prepare of [async () => {}, () => enqueue(stage.reader, DEBOUNCE, '0')]) {
      await meet(
        prepare,
        [(store) => enqueue(store, DEBOUNCE, '1'), (store) => enqueue(store, DEBOUNCE, '2')],
        async ([one, two]) => {
          const jobs = await live()
          expect(jobs).toHaveLength(1)
          // Whoever replaced the input of the other came last.
          const last = one.kind === 'created' ? ['2'] : two.kind === 'created' ? ['1'] : ['1', '2']
          expect(last).toContain(jobs[0]?.input)
        },
      )
    }
  })

  it('a singleton has one job', async () => {
    await meet(
      async () => {},
      [(store) => enqueue(store, single('skip')), (store) => enqueue(store, single('skip'))],
      async (ends) => {
        expect(kinds(ends)).toEqual(['created', 'existing'])
        expect(await live()).toHaveLength(1)
      },
    )
  })

  it('of a running singleton, one job waits', async () => {
    const prepare = async () => {
      await enqueue(stage.reader, single('latest'))
      await claim(stage.reader)
    }
    await meet(
      prepare,
      [
        (store) => enqueue(store, single('latest'), '1'),
        (store) => enqueue(store, single('latest'), '2'),
      ],
      async (ends) => {
        expect(kinds(ends)).toEqual(['created', 'replaced'])
        expect(await live()).toHaveLength(2)
      },
    )
  })
})

describe('an enqueue and a claim at once', () => {
  it('either replaces the input before the claim, or makes a new job', async () => {
    const prepare = async () => {
      await enqueue(stage.reader, DEBOUNCE, '0')
      stage.pass(1000)
      await stage.reader.promote(10)
    }
    await meet(
      prepare,
      [(store) => enqueue(store, DEBOUNCE, '1'), claim],
      async ([answer, held]) => {
        const jobs = await live()
        const running = held[0]
        if (answer.kind === 'created') {
          expect([running?.input, jobs.length]).toEqual(['0', 2])
        } else {
          expect(answer.kind).toBe('replaced')
          // The claim came first only if it has the new input.
          if (running !== undefined) expect(running.input).toBe('1')
          expect(jobs).toHaveLength(1)
        }
        expect(jobs.some(({ input }) => input === '1')).toBe(true)
      },
    )
  })
})

describe('the step of workers', () => {
  it('and an enqueue leave one job running and one waiting', async () => {
    const prepare = async () => {
      await enqueue(stage.reader, single('latest'), '0')
      const [held] = await claim(stage.reader)
      await enqueue(stage.reader, single('latest'), '1')
      if (held !== undefined) await stage.reader.commit(held, () => '1')
      stage.pass(1000)
    }
    const tend = (store: Store) => store.admissions.tend(10)
    const put = (store: Store) => enqueue(store, single('latest'), '2')
    for (const pair of [
      [tend, put],
      [put, tend],
    ] as const) {
      await meet<unknown, unknown>(prepare, pair, async () => {
        const jobs = await live()
        expect(jobs.map(({ input }) => input)).toEqual(['2'])
        await stage.reader.admissions.tend(10)
        stage.pass(1)
        await stage.reader.promote(10)
        expect(await claim(stage.reader)).toHaveLength(1)
      })
    }
  })
})
