// Where two jobs stand when the callers meet over them: every kind of place that a job can be in,
// with the handles that earlier holders still have.
import type { Lifecycle } from '../../src/core/lifecycles/lifecycle.ts'
import type { Held, HeldEffect, Store } from '../../src/stores/contract/store.ts'
import { failureOf, OPERATOR, settlement } from '../contract/store/bench.ts'

/** The lease of every claim. */
export const LEASE_MS = 30_000
/** Longer than any lease and any delay before a retry. */
export const LONG_MS = 600_000
/** The type of every job. */
export const TYPE = 'example'

/** The jobs, and what callers hold of them. */
export interface Scene {
  readonly lifecycle: Lifecycle
  readonly jobs: readonly string[]
  /** The handles of each caller, by its place; the last one serves all further callers. */
  readonly holds: readonly (readonly Held[])[]
  /** Effects that a dispatcher took and may still report on. */
  readonly effects: readonly HeldEffect[]
  /** The keys of effects that are delivered already. */
  readonly delivered: readonly string[]
}

/** Where a scene is made. */
interface Workshop {
  readonly store: Store
  readonly lifecycle: Lifecycle
  readonly jobs: readonly string[]
  pass(ms: number): void
}

type Maker = (shop: Workshop) => Promise<Partial<Scene>>

/** The key by which a job of a scene is enqueued again. */
export function keyOf(index: number): string {
  return `key ${index}`
}

const claim = (store: Store, worker = 'first') =>
  store.claim({ worker, limit: 9, leaseMs: LEASE_MS, start: true })

async function take({ store }: Workshop): Promise<Held[]> {
  return claim(store)
}

async function takeOver(shop: Workshop): Promise<{ late: Held[]; present: Held[] }> {
  const late = await take(shop)
  shop.pass(LEASE_MS)
  await shop.store.recover(9)
  shop.pass(LONG_MS)
  await shop.store.promote(9)
  const present = await claim(shop.store, 'second')
  shop.pass(LEASE_MS / 3)
  return { late, present }
}

async function commitWithEffects(shop: Workshop): Promise<Held[]> {
  const held = await take(shop)
  for (const one of held) {
    await shop.store.commit(one, (tx) => {
      for (const name of ['mail', 'bill']) tx.effect(name, '{}')
      return '"earlier"'
    })
  }
  return held
}

async function fail(shop: Workshop, kind: 'transient' | 'terminal'): Promise<Held[]> {
  const held = await take(shop)
  const command = { kind: 'fail', failure: failureOf(kind) } as const
  await shop.store.settle(held.map((one) => settlement(one, command)))
  return held
}

const MAKERS = {
  /** Nobody has touched them. */
  ready: async () => ({}),
  /** For some time already, so that a heartbeat renews something. */
  held: async (shop) => {
    const holds = [await take(shop)]
    shop.pass(LEASE_MS / 3)
    return { holds }
  },
  /** The lease is over, and nobody has noticed. */
  expired: async (shop) => {
    const holds = [await take(shop)]
    shop.pass(LEASE_MS)
    return { holds }
  },
  /** The first caller was slow, and the second has the jobs now. */
  'taken over': async (shop) => {
    const { late, present } = await takeOver(shop)
    return { holds: [late, present, late] }
  },
  /** The same the other way round, because of two verbs only one order is played. */
  'taken over by the first': async (shop) => {
    const { late, present } = await takeOver(shop)
    return { holds: [present, late, late] }
  },
  /** Cancellation was asked for, and the holder did not live to hear of it. */
  cancelling: async (shop) => {
    const holds = [await take(shop)]
    await shop.store.cancel(shop.jobs, { actor: 'client' })
    shop.pass(LEASE_MS)
    return { holds }
  },
  /** A retry whose time has come. */
  due: async (shop) => {
    const holds = [await fail(shop, 'transient')]
    shop.pass(LONG_MS)
    return { holds }
  },
  delivering: async (shop) => ({ holds: [await commitWithEffects(shop)] }),
  /** The dispatcher that took the effects has delivered half of them, and was slow then. */
  'delivered late': async (shop) => {
    const holds = [await commitWithEffects(shop)]
    const taken = await shop.store.claimEffects({ limit: 9, leaseMs: LEASE_MS })
    const [mails, bills] = ['mail', 'bill'].map((name) => taken.filter((one) => one.name === name))
    const delivered = (mails ?? []).map((effect) => ({ kind: 'delivered', effect }) as const)
    await shop.store.settleEffects(delivered)
    shop.pass(LEASE_MS)
    return { holds, effects: bills ?? [], delivered: delivered.map(({ effect }) => effect.key) }
  },
  parked: async (shop) => {
    const holds = [await take(shop)]
    await shop.store.applyCommand(shop.jobs, { kind: 'park' }, OPERATOR)
    return { holds }
  },
  failed: async (shop) => ({ holds: [await fail(shop, 'terminal')] }),
  succeeded: async (shop) => {
    const held = await take(shop)
    await shop.store.settle(held.map((one) => settlement(one, { kind: 'commit' }, '"earlier"')))
    return { holds: [held] }
  },
} satisfies Record<string, Maker>

/** The name of a scene. */
export type SceneName = keyof typeof MAKERS

/** Every scene. */
export const SCENES = Object.keys(MAKERS) as SceneName[]

/** Brings two new jobs to where a scene has them. */
export async function makeScene(
  name: SceneName,
  lifecycle: Lifecycle,
  store: Store,
  ids: readonly string[],
  pass: (ms: number) => void,
): Promise<Scene> {
  const items = ids.map((jobId, i) => {
    const command = { jobId, type: TYPE, queue: 'main', key: keyOf(i) }
    return { lifecycle, command, input: '{}' }
  })
  await store.enqueue(items)
  const maker: Maker = MAKERS[name]
  const made = await maker({ store, lifecycle, jobs: ids, pass })
  return { lifecycle, jobs: ids, holds: [[]], effects: [], delivered: [], ...made }
}
