// The function of a commit holds the file for as long as a third of its lease. Several in a row
// must not cost others their leases, whose heartbeats wait for the file as well.
import { standard } from 'pawl/rules'
import { testEnvironment } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import type { Beat, Held, Store } from '../../src/stores/contract/store.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'

const LEASE_MS = 3000
const BOUND_MS = LEASE_MS / 3

/** Two stores on one file, each with a job in its hands, and what happened in which order. */
async function setUp() {
  const environment = testEnvironment()
  const path = `file:/precedence-${crypto.randomUUID()}?vfs=memdb`
  const one = await openSqliteStore({ path, environment })
  const other = await openSqliteStore({ path, environment })
  for (let n = 0; n < 4; n++) {
    const command = { jobId: environment.ids.next(), type: 'example', queue: 'main' }
    await one.enqueue([{ lifecycle: standard, input: '1', command }])
  }
  const seen: string[] = []
  const claim = async (store: Store) => {
    const [held] = await store.claim({ worker: 'w', limit: 1, leaseMs: LEASE_MS, start: true })
    return held as Held
  }
  return {
    environment,
    one,
    other,
    seen,
    claim,
    commit: (store: Store, held: Held) =>
      store.commit(held, () => {
        seen.push(`function at ${environment.clock.now()}`)
        return 'null'
      }),
    async heartbeat(store: Store, held: Held) {
      const { lost } = await store.heartbeat([beatOf(held)], LEASE_MS)
      seen.push(`${lost.length} lost`)
    },
    /** Until everything waits for time to pass, or is done. */
    async rest() {
      for (let turn = 0; turn < 20; turn++) await new Promise((next) => setImmediate(next))
    },
    async [Symbol.asyncDispose]() {
      await one.close()
      await other.close()
    },
  }
}

function beatOf({ ref, job }: Held): Beat {
  return { ref, fence: { attempt: job.attempt, claim: job.execution?.claim ?? '' } }
}

describe('the function of a commit', () => {
  it.each(['one', 'other'] as const)(
    'lets heartbeats of %s store in first, where a lease would end before it must',
    async (who) => {
      await using world = await setUp()
      const { environment, one, seen } = world
      const [mine, theirs] = [await world.claim(one), await world.claim(world[who])]
      environment.advance(LEASE_MS - BOUND_MS)
      const committed = world.commit(one, mine)
      const renewed = world.heartbeat(world[who], theirs)
      await world.rest()
      const now = environment.clock.now()
      expect(seen).toEqual(['0 lost'])
      environment.advance(50)
      await Promise.all([committed, renewed])
      expect(seen).toEqual(['0 lost', `function at ${now + 50}`])
    },
  )

  it('waits for nobody while all leases outlast it', async () => {
    await using world = await setUp()
    const { environment, one, seen } = world
    const [mine] = [await world.claim(one), await world.claim(world.other)]
    environment.advance(LEASE_MS - BOUND_MS - 101)
    await world.commit(one, mine)
    expect(seen).toEqual([`function at ${environment.clock.now()}`])
  })

  it('waits once for a holder that does not come, together with others of its store', async () => {
    await using world = await setUp()
    const { environment, one, seen } = world
    await world.claim(world.other)
    environment.advance(LEASE_MS - BOUND_MS)
    const held = [await world.claim(one), await world.claim(one), await world.claim(one)]
    const [first, second, third] = held as [Held, Held, Held]
    const both = Promise.all([world.commit(one, first), world.commit(one, second)])
    await world.rest()
    expect(seen).toEqual([])
    environment.advance(50)
    await both
    await world.commit(one, third)
    const now = environment.clock.now()
    expect(seen).toEqual(Array(3).fill(`function at ${now}`))
  })

  it('does not wait where its own lease would end meanwhile', async () => {
    await using world = await setUp()
    const { environment, one, seen } = world
    const [mine] = [await world.claim(one), await world.claim(world.other)]
    environment.advance(LEASE_MS - 100)
    await world.commit(one, mine)
    expect(seen).toEqual([`function at ${environment.clock.now()}`])
  })

  it('is not delayed without end by leases shorter than itself', async () => {
    await using world = await setUp()
    const { environment, one, other, seen } = world
    const [mine, theirs] = [await world.claim(one), await world.claim(other)]
    const committed = world.commit(one, mine)
    for (let round = 0; round < 5; round++) {
      await other.heartbeat([beatOf(theirs)], BOUND_MS)
      await world.rest()
      environment.advance(101)
    }
    await committed
    expect(seen).toHaveLength(1)
  })
})
