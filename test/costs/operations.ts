// Every operation whose cost is pinned, as calls of a store. Ids, times and inputs are the same in
// each run, so that a store writes the same rows in the same order.
import { standard } from 'pawl/rules'
import type { TestEnvironment } from 'pawl/testing'
import type {
  ClaimRequest,
  EnqueueItem,
  Held,
  Settlement,
  Store,
} from '../../src/stores/contract/store.ts'

const LEASE_MS = 60_000
const MANY = 100
const INPUT = '{"to":"ann@example.org","subject":"Hello","lines":["One","Two","Three"]}'

const request = (limit: number): ClaimRequest => ({
  worker: 'w1',
  queues: ['mail'],
  types: ['send-mail'],
  limit,
  leaseMs: LEASE_MS,
  start: true,
})

/** Runs one operation, and keeps what it cost under a name. */
export type Measure = <T>(name: string, operation: () => Promise<T>) => Promise<T>

/** Plays all operations; each has something to do. */
export async function playOperations(
  store: Store,
  environment: TestEnvironment,
  measure: Measure,
): Promise<void> {
  let ids = 0
  const items = (count: number): EnqueueItem[] =>
    Array.from({ length: count }, () => ({
      lifecycle: standard,
      input: INPUT,
      command: {
        jobId: `00000000-0000-7000-8000-${String(++ids).padStart(12, '0')}`,
        type: 'send-mail',
        queue: 'mail',
      },
    }))

  // The first call of each kind registers the lifecycle and fills caches of the process.
  await store.enqueue(items(3))
  await settleAll(store, await store.claim(request(3)))

  await measure('enqueue one', () => store.enqueue(items(1)))
  await measure(`enqueue ${MANY}`, () => store.enqueue(items(MANY)))
  const [first] = await measure('claim one', () => store.claim(request(1)))
  const held = await measure(`claim ${MANY}`, () => store.claim(request(MANY)))
  const stepping = held.at(-1) as Held
  await measure(`heartbeat of ${MANY}`, () =>
    store.heartbeat(
      held.map((one) => ({ ref: one.ref, fence: fenceOf(one) })),
      LEASE_MS,
    ),
  )
  await measure('succeed one', () => settleAll(store, [first as Held]))
  await measure(`succeed ${MANY - 1}`, () => settleAll(store, held.slice(0, -1)))
  await measure('step', () => store.settle([stepOf(stepping)]))
  await measure('succeed after a step', () => settleAll(store, [stepping]))

  await store.enqueue(items(2 * MANY))
  const next = await store.claim(request(MANY))
  const { claimed } = await measure(`succeed ${MANY} and claim ${MANY}`, () =>
    store.settle(next.map(successOf), request(MANY)),
  )
  const [committing, failing] = claimed as [Held, Held]
  await measure('commit with an effect', () =>
    store.commit(committing, (tx) => {
      tx.effect('mail', '{}')
      return '1'
    }),
  )
  await measure('fail and retry later', () => store.settle([failureOf(failing)]))
  // Only the time: timers that fire would send statements of their own meanwhile.
  environment.clock.advance(LEASE_MS / 2)
  await measure('promote the retry', () => store.promote(10))
}

const fenceOf = ({ job }: Held) => ({ attempt: job.attempt, claim: job.execution?.claim ?? '' })

function successOf(held: Held): Settlement {
  return { held, command: { kind: 'commit', fence: fenceOf(held) }, payload: '1' }
}

function stepOf(held: Held): Settlement {
  const command = { kind: 'step', fence: fenceOf(held), name: 's', n: 1 } as const
  return { held, command, payload: '1' }
}

function failureOf(held: Held): Settlement {
  const failure = { class: 'retryable', kind: 'transient', message: 'Boom' } as const
  return { held, command: { kind: 'fail', fence: fenceOf(held), failure } }
}

async function settleAll(store: Store, held: readonly Held[]): Promise<void> {
  await store.settle(held.map(successOf))
}
