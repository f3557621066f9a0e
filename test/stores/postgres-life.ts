// A scripted life of a store, in which every hot statement of its verbs is sent at least once.
import type { Lifecycle } from 'pawl'
import { hardened, standard } from 'pawl/rules'
import type { ManualClock } from 'pawl/testing'
import type {
  ClaimRequest,
  EnqueueItem,
  Held,
  Settlement,
  Store,
} from '../../src/stores/contract/store.ts'
import { playFlows } from './flow-life.ts'

const LEASE_MS = 1000
const OPERATOR = { actor: 'operator', operator: 'ann', note: 'because' } as const

const request: ClaimRequest = {
  worker: 'w1',
  queues: ['q'],
  types: ['mail'],
  limit: 3,
  leaseMs: LEASE_MS,
  start: true,
}

let ids = 0

function newJob(more: object = {}, lifecycle: Lifecycle = standard): EnqueueItem {
  const jobId = `00000000-0000-7000-8000-${String(++ids).padStart(12, '0')}`
  return { lifecycle, input: '{}', command: { jobId, type: 'mail', queue: 'q', ...more } }
}

const fenceOf = ({ job }: Held) => ({ attempt: job.attempt, claim: job.execution?.claim ?? '' })

function success(held: Held): Settlement {
  return { held, command: { kind: 'commit', fence: fenceOf(held) }, payload: '1' }
}

/** Every verb in an order in which each has something to do; time is moved by the clock. */
export async function playLife(
  store: Store,
  clock: ManualClock,
  loseNextAnswer: () => void,
): Promise<void> {
  await enqueueAll(store, clock)
  const [first, second, third] = (await store.claim(request)) as [Held, Held, Held]
  await store.heartbeat([{ ref: first.ref, fence: fenceOf(first) }], LEASE_MS)
  const step = { kind: 'step', fence: fenceOf(first), name: 's', n: 1 } as const
  await store.settle([{ held: first, command: step, payload: '1' }])
  // Once more by one who has not heard of it.
  await store.settle([{ held: first, command: step, payload: '1', progress: '1' }])
  await store.steps(first.ref)
  await store.waits.history(first.job.id)
  await playFlows(store, newJob().command.jobId, first.job.id)
  await store.traces([first.job.id], 'create')
  await store.traces([first.job.id], 'commit')
  await settleAll(store, loseNextAnswer)
  await commitWithEffect(store, second, loseNextAnswer)
  await store.cancel([third.job.id], { actor: 'client' })
  clock.advance(LEASE_MS + 10)
  await store.promote(10)
  await store.recover(10)
  await operate(store)
  await read(store, first.job.id)
  await store.seals.make()
  await store.prune({ endedBefore: clock.now() + 1, limit: 10 })
  const ended = { outcome: 'succeeded', endedBefore: clock.now() + 1, limit: 10 } as const
  await store.retention.sweep({ ...ended, keysMs: 1000 })
  await store.retention.freeKeys(10)
  await store.admissions.tend(10)
  await store.enqueue([{ ...newJob(), admission: { singleton: { mode: 'skip', key: 'k' } } }])
}

async function enqueueAll(store: Store, clock: ManualClock): Promise<void> {
  await store.enqueue(Array.from({ length: 30 }, () => newJob()))
  await store.enqueue([newJob({ key: 'k', tags: ['t'] })])
  await store.enqueue([{ ...newJob({ key: 'k' }), onConflict: 'replace' }])
  const runAt = clock.now() + 10
  await store.enqueue([newJob({ runAt }), newJob({ runAt }, hardened)])
  const deadlineAt = clock.now() + LEASE_MS
  await store.enqueue([newJob({ deadlineAt, runAt: deadlineAt + 1_000_000 })])
}

/** Successes alone, with a claim from one queue, from several and from any. */
async function settleAll(store: Store, loseNextAnswer: () => void): Promise<void> {
  loseNextAnswer()
  const held = await store.claim(request)
  await store.settle(held.map(success))
  const several = { ...request, queues: ['p', 'q'] }
  const { queues: _, ...any } = request
  let taken: readonly Held[] = await store.claim(several)
  for (const next of [request, several, any]) {
    taken = (await store.settle(taken.map(success), next)).claimed
  }
  await store.claim(any)
}

async function commitWithEffect(
  store: Store,
  held: Held,
  loseNextAnswer: () => void,
): Promise<void> {
  await store.commit(
    held,
    (tx) => {
      tx.effect('mail', '{}')
      return '1'
    },
    () => ({ progress: '2' }),
  )
  await store.commit(held, () => '2')
  loseNextAnswer()
  const effects = await store.claimEffects({ limit: 5, leaseMs: LEASE_MS, types: ['mail'] })
  await store.retryEffects([`${held.job.id}/mail/1`], OPERATOR)
  for (const filter of [{}, { state: 'parked' }, { jobId: held.job.id }] as const) {
    await store.listEffects(filter)
  }
  await store.settleEffects(effects.map((effect) => ({ kind: 'delivered', effect })))
}

async function operate(store: Store): Promise<void> {
  const job = newJob()
  await store.enqueue([job])
  const { jobId } = job.command
  await store.applyCommand([jobId], { kind: 'park' }, OPERATOR)
  await store.applyCommand([jobId], { kind: 'redrive' }, OPERATOR)
  await store.pauseQueue('p', OPERATOR)
  await store.resumeQueue('p', OPERATOR)
  await store.limitQueue('p', { maxDepth: 1, maxWaitMs: 0 })
  await store.enqueue([newJob({ queue: 'p' }), newJob({ queue: 'p' })])
  await store.shed(10)
  await store.limitQueue('p', { maxDepth: null, maxWaitMs: null })
  await store.reportWorker({ id: 'w1', state: 'idle', info: '{}' })
  await store.listWorkers()
  await store.removeWorker('w1')
}

async function read(store: Store, id: string): Promise<void> {
  await store.get(id)
  await store.getByKey('mail', 'k')
  await store.facts(id)
  await store.payloads(id)
  await store.list({ state: 'queued', tag: 't', queue: 'q', error: 'e' })
  await store.counts()
  await store.tail(undefined, 10)
  for (const order of ['oldest', 'newest'] as const) {
    await store.audit({ worker: 'w1', operator: 'ann', toState: 'running' }, { order })
    await store.audit({ jobId: id }, { order, payloads: true })
  }
}
