// Arrivals of two processes at once: one of them is met by the other at every statement of its end
// and of its wake. No arrival is lost, and no waiter is released twice (P19).
import { standard } from 'pawl/rules'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { FlowItem } from '../../src/stores/contract/flows.ts'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { nodeId } from '../../src/stores/derived-ids.ts'
import { OPERATOR } from '../contract/store/bench.ts'
import { sharedPostgres } from '../support/postgres/databases.ts'
import { PostgresStage } from './postgres-stage.ts'

let stage: PostgresStage
beforeAll(async () => {
  stage = await PostgresStage.open(sharedPostgres())
})
afterAll(() => stage.close())

const item = (queue: string): FlowItem => ({
  lifecycle: standard,
  input: '{}',
  command: { type: queue, queue },
})

const fenceOf = ({ job }: Held) => ({ attempt: job.attempt, claim: job.execution?.claim ?? '' })

async function take(store: Store, queue: string): Promise<Held> {
  const request = { worker: 'w', queues: [queue], limit: 1, leaseMs: 60_000, start: true }
  const [held] = await store.claim(request)
  return held as Held
}

/** A flow whose node 2 waits for nodes 0 and 1, which are held. */
async function held(): Promise<{ readonly id: string; readonly both: readonly [Held, Held] }> {
  await stage.clear()
  const [{ store }] = stage.sides
  const id = stage.newId()
  const group = { name: 'all', of: [[0, 1]] as const, need: 'success', list: true } as const
  const nodes = [{ item: item('a') }, { item: item('b') }, { item: item('c'), after: [group] }]
  await store.flows.create({ id, kind: 'flow', nodes })
  return { id, both: [await take(store, 'a'), await take(store, 'b')] }
}

async function succeed(store: Store, one: Held): Promise<void> {
  await store.settle([{ held: one, command: { kind: 'commit', fence: fenceOf(one) } }])
  await store.flows.wake(100)
}

async function fail(store: Store, one: Held): Promise<void> {
  const failure = { class: 'terminal', kind: 'validation', message: 'no' } as const
  await store.settle([{ held: one, command: { kind: 'fail', fence: fenceOf(one), failure } }])
  await store.flows.wake(100)
}

type Scene = Awaited<ReturnType<typeof held>>
type Act = (store: Store, scene: Scene) => Promise<unknown>

/** Meets the first act at each of its statements with the second. */
async function meet(
  prepare: () => Promise<Scene>,
  first: Act,
  second: Act,
  judge: (scene: Scene, n: number) => Promise<void>,
): Promise<number> {
  const [slow, quick] = stage.sides
  const alone = await prepare()
  void slow.gate.stopAt(Number.POSITIVE_INFINITY)
  await first(slow.store, alone)
  const statements = slow.gate.sent
  for (let n = 1; n <= statements; n++) {
    const scene = await prepare()
    const stopped = slow.gate.stopAt(n)
    const acting = first(slow.store, scene)
    await stopped
    const other = second(quick.store, scene)
    await stage.untilEndedOrBlocked(other)
    slow.gate.open()
    await Promise.all([acting, other])
    await judge(scene, n)
  }
  return statements
}

const released = async ({ id }: Scene) => {
  const facts = await stage.reader.facts(nodeId(id, 2))
  return facts.filter(({ trigger, to }) => trigger === 'arrive' && to === 'queued').length
}

describe('the waiter of two jobs', () => {
  it('is released once by two last arrivals', async () => {
    const statements = await meet(
      held,
      (store, { both }) => succeed(store, both[0]),
      (store, { both }) => succeed(store, both[1]),
      async (scene, n) => {
        expect([n, await released(scene)]).toEqual([n, 1])
        expect(await stage.reader.flows.faults(10)).toEqual([])
      },
    )
    expect(statements).toBeGreaterThan(4)
  })

  it('is cancelled or released, and never both', async () => {
    const prepare = async () => {
      const scene = await held()
      const [{ store }] = stage.sides
      await succeed(store, scene.both[0])
      return scene
    }
    await meet(
      prepare,
      (store, { both }) => succeed(store, both[1]),
      (store, { id }) => store.cancel([nodeId(id, 2)], { actor: 'client' }),
      async (scene) => {
        const job = await stage.reader.get(nodeId(scene.id, 2))
        expect(job?.state).toBe('cancelled')
        expect(await released(scene)).toBeLessThan(2)
        expect(await stage.reader.flows.wake(10)).toBe(0)
      },
    )
  })

  it('is released if a failed job is redriven while the other arrives', async () => {
    const prepare = async () => {
      const scene = await held()
      const [{ store }] = stage.sides
      await fail(store, scene.both[0])
      return scene
    }
    await meet(
      prepare,
      (store, { both }) => succeed(store, both[1]),
      async (store, { id }) => {
        await store.applyCommand([nodeId(id, 0)], { kind: 'redrive' }, OPERATOR)
        await store.flows.wake(100)
      },
      async (scene) => {
        const [{ store }] = stage.sides
        await store.flows.wake(100)
        expect(await released(scene)).toBe(0)
        expect((await stage.reader.get(nodeId(scene.id, 2)))?.blockedReason).toBeNull()
        await succeed(store, await take(store, 'a'))
        expect(await released(scene)).toBe(1)
      },
    )
  })

  it('is released by another process if one dies before its wake', async () => {
    const { id, both } = await held()
    const [one, other] = stage.sides
    for (const own of both) {
      const command = { kind: 'commit', fence: fenceOf(own) } as const
      await one.store.settle([{ held: own, command }])
    }
    expect(await released({ id, both })).toBe(0)
    expect(await other.store.flows.wake(100)).toBe(2)
    expect(await released({ id, both })).toBe(1)
  })
})
