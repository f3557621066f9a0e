/**
 * Every path of every lifecycle that ships, through the verbs of the store: for each state and each
 * trigger that leads on from it, a job is brought into the state, the verb is called, and the fact
 * must have taken exactly the path of the lifecycle.
 */
import assert from 'node:assert/strict'
import type { Fact } from '../../../src/core/job/facts.ts'
import { LIFECYCLES } from '../../../src/core/lifecycles/index.ts'
import type { JobTrigger, Lifecycle, Role } from '../../../src/core/lifecycles/lifecycle.ts'
import type { JobPolicy } from '../../../src/core/retry.ts'
import type { Held } from '../../../src/stores/contract/store.ts'
import {
  type Bench,
  type Cases,
  done,
  failureOf,
  LEASE_MS,
  OPERATOR,
  one,
  policyWith,
  type Report,
} from './bench.ts'

/** A job in the state from which a trigger is tried. */
interface Placed {
  readonly id: string
  /** Where somebody holds it. */
  readonly held?: Held
}

const LATER_MS = 5000

/** One test for every state and trigger of every lifecycle. */
export const lifecycleCases: Cases = Object.fromEntries(
  LIFECYCLES.flatMap((lifecycle) =>
    [...lifecycle.paths].flatMap(([state, byTrigger]) =>
      [...byTrigger].map(([trigger, path]) => [
        `${lifecycle.name}: ${trigger} leads ${[state, ...path].join(' → ')}`,
        (bench: Bench) => walk(bench, lifecycle, state, trigger, path),
      ]),
    ),
  ),
)

async function walk(
  bench: Bench,
  lifecycle: Lifecycle,
  state: string,
  trigger: JobTrigger,
  path: readonly string[],
): Promise<void> {
  const placed = await place(bench, lifecycle, state, trigger)
  assert.equal((await bench.job(placed.id)).state, state)
  await fire(bench, trigger, placed)
  const fact = await bench.lastFact(placed.id)
  assert.deepEqual(statesOf(fact), [state, ...path])
  assert.equal(fact.trigger, trigger === 'succeed' ? 'commit' : trigger)
  const job = await bench.job(placed.id)
  assert.equal(job.state, path.at(-1))
  assert.equal(job.execution !== null, ['held', 'succeeded'].includes(roleOf(lifecycle, job.state)))
}

function statesOf({ from, via, to }: Fact): (string | null)[] {
  return [from, ...(via ?? []), to]
}

function roleOf(lifecycle: Lifecycle, state: string): Role {
  return lifecycle.roles.get(state) as Role
}

/** Brings a new job into a state, prepared for a trigger. */
async function place(
  bench: Bench,
  lifecycle: Lifecycle,
  state: string,
  trigger: JobTrigger,
): Promise<Placed> {
  const fields = { lifecycle, queue: 'walk', ...policyFor(lifecycle, trigger) }
  const runAt = bench.store.now() + LATER_MS
  const scheduled = lifecycle.targets.get('schedule') === state
  switch (roleOf(lifecycle, state)) {
    case 'idle':
      // A job that was only held back has no due time that could come, or be moved.
      return trigger === 'due' || trigger === 'run-now'
        ? bench.enqueue({ ...fields, runAt })
        : bench.enqueue({ ...fields, hold: true })
    case 'ready':
      return bench.enqueue(fields)
    case 'held':
      return holdFor(bench, lifecycle, trigger, await bench.hold(fields))
    case 'waiting':
      if (lifecycle.targets.get('wait') === state) return wait(bench, await bench.hold(fields))
      if (scheduled) return bench.enqueue({ ...fields, runAt })
      return report(bench, await bench.hold(fields), {
        kind: 'fail',
        failure: { ...failureOf('transient') },
      })
    case 'parked':
      return report(bench, await bench.hold(fields), {
        kind: 'fail',
        failure: failureOf('invalid_input'),
      })
    case 'cancelled':
      return report(bench, await bench.hold(fields), { kind: 'cancel' })
    case 'succeeded':
      return report(bench, await bench.hold(fields), { kind: 'commit' })
    case 'failed':
      return report(bench, await bench.hold(fields), {
        kind: 'fail',
        failure: failureOf('terminal'),
      })
  }
}

/** Giving up needs budgets that are spent; where retries are fixed they must be used up. */
function policyFor(lifecycle: Lifecycle, trigger: JobTrigger): { policy?: JobPolicy } {
  if (trigger !== 'give-up') return {}
  return { policy: { ...policyWith({ crashesMax: 0 }), retry: lifecycle.policy.retry } }
}

async function holdFor(
  bench: Bench,
  lifecycle: Lifecycle,
  trigger: JobTrigger,
  first: Held,
): Promise<Placed> {
  let held = first
  if (trigger === 'give-up' && lifecycle.crash.spends === 'failure') {
    for (let i = 0; i < lifecycle.policy.retry.max; i++) {
      done(await bench.fail(held))
      await bench.advance(lifecycle.policy.retry.delayMs)
      await bench.store.promote(10)
      held = await bench.reclaim(held)
    }
  }
  return { id: held.job.id, held }
}

async function report(bench: Bench, held: Held, what: Report): Promise<Placed> {
  done(await bench.settle(held, what))
  return { id: held.job.id }
}

const REPORTS: Readonly<Partial<Record<JobTrigger, Report>>> = {
  retry: { kind: 'fail', failure: failureOf('transient') },
  fail: { kind: 'fail', failure: failureOf('terminal') },
  reject: { kind: 'fail', failure: failureOf('invalid_input') },
  release: { kind: 'release' },
  suspend: { kind: 'suspend', runAt: 4_000_000_000_000 },
}

/** Calls the verb by which a trigger comes about. */
async function fire(bench: Bench, trigger: JobTrigger, { id, held }: Placed): Promise<void> {
  const later = bench.store.now() + LATER_MS
  const known = REPORTS[trigger]
  if (held !== undefined && known !== undefined) {
    done(await bench.settle(held, known))
    return
  }
  switch (trigger) {
    case 'succeed':
      assert.ok(held)
      assert.equal((await bench.store.commit(held, () => '1')).kind, 'done')
      return
    case 'expire':
    case 'give-up':
      await bench.advance(LEASE_MS)
      done(one(await bench.store.recover(10)))
      return
    case 'due':
      await bench.advance(LATER_MS)
      assert.equal(await bench.store.promote(10), 1)
      return
    case 'wait':
      assert.ok(held)
      await wait(bench, held)
      return
    case 'signal': {
      const signal = { name: 'go', key: 'k1', payload: '1' }
      done(one(await bench.store.waits.signal([id], signal, { actor: 'client' })))
      return
    }
    case 'claim':
      one(await bench.claim({ queues: ['walk'] }))
      return
    case 'cancel':
      done(held ? await bench.settle(held, { kind: 'cancel' }) : await cancel(bench, id))
      return
    case 'schedule':
    case 'reschedule':
      done(await bench.applyCommand(id, { kind: trigger, runAt: later }))
      return
    case 'run-now':
      done(await bench.applyCommand(id, { kind: 'reschedule', runAt: bench.store.now() }))
      return
    default:
      done(await bench.applyCommand(id, { kind: trigger as 'submit' }, OPERATOR))
  }
}

/** Lets a held job wait for a signal. */
async function wait(bench: Bench, { job }: Held): Promise<Placed> {
  const fence = { attempt: job.attempt, claim: job.execution?.claim ?? '' }
  const until = bench.store.now() + LATER_MS
  const asked = { for: 'signal', name: 'go', n: 1, until } as const
  const answer = await bench.store.waits.wait({ id: job.id, fence, wait: asked })
  assert.equal(answer.kind, 'suspended')
  return { id: job.id }
}

async function cancel(bench: Bench, id: string) {
  return one(await bench.store.cancel([id], { actor: 'client' }))
}
