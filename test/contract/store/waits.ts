/** Sleeps and signals: what is kept, who is woken, and what a wait receives (P18). */
import assert from 'node:assert/strict'
import {
  CommandInvalid,
  DeadlinePassed,
  JobEnded,
  JobNotFound,
  LeaseLive,
  StaleFence,
  Unsupported,
} from '../../../src/core/errors.ts'
import type { Job } from '../../../src/core/job/job.ts'
import type { Wait } from '../../../src/core/job/waits.ts'
import { LIFECYCLES } from '../../../src/core/lifecycles/index.ts'
import { defineLifecycle, type Lifecycle } from '../../../src/core/lifecycles/lifecycle.ts'
import { standard } from '../../../src/core/lifecycles/standard.ts'
import { task } from '../../../src/core/lifecycles/task.ts'
import type { Answer, Held, Store } from '../../../src/stores/contract/store.ts'
import type { SignalRequest, WaitAnswer } from '../../../src/stores/contract/waits.ts'
import {
  type Bench,
  type Cases,
  CLIENT,
  done,
  fenceOf,
  LEASE_MS,
  OPERATOR,
  one,
  policyWith,
  refused,
} from './bench.ts'
import { checkStore } from './check.ts'

const HOUR_MS = 3_600_000
const APPROVAL: Wait = { for: 'signal', name: 'approval', n: 1, until: null }
const ID = '00000000-0000-7000-8000-00000000dead'

const signalOf = (fields: Partial<SignalRequest> = {}): SignalRequest => ({
  name: 'approval',
  key: 'k1',
  payload: '{"by":"ann"}',
  ...fields,
})

async function send(
  { store }: { readonly store: Store },
  id: string,
  fields: Partial<SignalRequest> = {},
): Promise<Answer> {
  return one(await store.waits.signal([id], signalOf(fields), CLIENT))
}

const ask = ({ store }: Bench, held: Held, wait: Wait = APPROVAL): Promise<WaitAnswer> =>
  store.waits.wait({ id: held.job.id, fence: fenceOf(held), wait })

/** What a wait received, or how it ended. */
async function read(bench: Bench, held: Held, wait: Wait = APPROVAL): Promise<string> {
  const answer = await ask(bench, held, wait)
  if (answer.kind !== 'over') return answer.kind
  return answer.end.kind === 'received' ? answer.end.payload : answer.end.kind
}

/** A job that waits, and what its holder held. */
async function waiting(bench: Bench, wait: Wait = APPROVAL): Promise<Held> {
  const held = await bench.hold({ policy: policyWith() })
  assert.equal(await read(bench, held, wait), 'suspended')
  return held
}

const stateOf = ({ state, reason, runAt, execution, attempt }: Job) => ({
  ...{ state, reason, runAt, attempt },
  isHeld: execution !== null,
})

/** What is sent. */
export const signalCases: Cases = {
  'a signal that is sent before the wait is kept, and received at once': async (bench) => {
    const { id, queue } = await bench.enqueue({ queue: 'early' })
    const { fact, job } = done(await send(bench, id))
    assert.deepEqual([fact.trigger, fact.signal], ['signal', { name: 'approval', key: 'k1' }])
    assert.equal(job.state, 'queued')
    const held = one(await bench.claim({ queues: [queue] }))
    const answer = await ask(bench, held)
    assert.equal(answer.kind, 'over')
    assert.deepEqual(answer.kind === 'over' && answer.end, {
      kind: 'received',
      payload: '{"by":"ann"}',
      by: 'client',
    })
    assert.deepEqual(answer.kind === 'over' && answer.fact, await bench.lastFact(id))
    done(await bench.settle({ ...held, job: await bench.job(id) }, { kind: 'commit' }, '1'))
  },

  'a signal to a running attempt does not disturb it': async (bench) => {
    const held = await bench.hold()
    const { job } = done(await send(bench, held.job.id))
    assert.deepEqual(job.execution, held.job.execution)
    assert.equal(await read(bench, held), '{"by":"ann"}')
  },

  'a signal wakes the job that waits for it, in its own transaction': async (bench) => {
    const held = await waiting(bench)
    await bench.advance(1000)
    const { job, fact } = done(await send(bench, held.job.id))
    assert.deepEqual(stateOf(job), {
      ...{ state: 'queued', reason: 'resumed', runAt: bench.store.now(), attempt: 1 },
      isHeld: false,
    })
    assert.deepEqual([fact.from, fact.to], ['waiting', 'queued'])
    assert.deepEqual(await bench.job(job.id), job)
    const again = await bench.reclaim(held)
    assert.equal(await read(bench, again), '{"by":"ann"}')
  },

  'workers are woken when a signal makes a job ready': async (bench) => {
    const held = await waiting(bench)
    let woken = 0
    const stop = bench.store.onWake(() => {
      woken++
    })
    done(await send(bench, held.job.id))
    while (woken === 0) await new Promise<void>((turn) => bench.environment.timers.defer(turn))
    stop()
  },

  'a signal of another name is kept and wakes nothing': async (bench) => {
    const held = await waiting(bench)
    const { job } = done(await send(bench, held.job.id, { name: 'payment' }))
    assert.equal(job.state, 'waiting')
    done(await send(bench, held.job.id))
    const again = await bench.reclaim(held)
    assert.equal(await read(bench, again), '{"by":"ann"}')
    assert.equal(await read(bench, again, { ...APPROVAL, name: 'payment' }), '{"by":"ann"}')
  },

  'a signal wakes only the job that it is sent to': async (bench) => {
    const [a, b] = [await waiting(bench), await waiting(bench)]
    done(await send(bench, a.job.id))
    assert.equal((await bench.job(b.job.id)).state, 'waiting')
    done(await bench.applyCommand(b.job.id, { kind: 'cancel' }))
  },

  'many jobs get one signal in one call, each with its own answer': async (bench) => {
    const [a, b, ended] = [await waiting(bench), await bench.hold(), await waiting(bench)]
    done(await bench.applyCommand(ended.job.id, { kind: 'cancel' }))
    const ids = [a.job.id, b.job.id, ID, ended.job.id, 'not an id', a.job.id]
    const answers = await bench.store.waits.signal(ids, signalOf(), CLIENT)
    done(answers[0])
    done(answers[1])
    refused(answers[2], JobNotFound)
    refused(answers[3], JobEnded)
    refused(answers[4], JobNotFound)
    assert.equal(answers[5]?.kind, 'same')
    assert.deepEqual(await bench.store.waits.signal([], signalOf(), CLIENT), [])
  },

  'a signal with a key that the job has is the same, and its first payload counts': async (
    bench,
  ) => {
    const held = await bench.hold()
    const { job } = done(await send(bench, held.job.id))
    const again = await send(bench, held.job.id, { payload: '2' })
    assert.deepEqual(again, { kind: 'same', job })
    done(await send(bench, held.job.id, { name: 'payment' }))
    assert.equal((await bench.store.facts(held.job.id)).length, 4)
    assert.equal(await read(bench, held), '{"by":"ann"}')
    assert.equal(await read(bench, held, { ...APPROVAL, n: 2 }), 'suspended')
    assert.equal((await send(bench, held.job.id)).kind, 'same')
    done(await bench.applyCommand(held.job.id, { kind: 'cancel' }))
    // A client whose reply was lost asks again, perhaps after the end.
    assert.equal((await send(bench, held.job.id)).kind, 'same')
  },

  'an ended job takes no signal, and a known one is still the same': async (bench) => {
    const held = await bench.hold()
    done(await send(bench, held.job.id))
    done(
      await bench.settle({ ...held, job: await bench.job(held.job.id) }, { kind: 'commit' }, '1'),
    )
    await bench.assertUntouched(held.job.id, async () => {
      refused(await send(bench, held.job.id, { key: 'k2' }), JobEnded)
      assert.equal((await send(bench, held.job.id)).kind, 'same')
    })
    const { signals } = await bench.store.waits.history(held.job.id)
    assert.deepEqual(
      signals.map(({ key, receivedBy }) => [key, receivedBy]),
      [['k1', undefined]],
    )
  },

  'several signals are received in the order in which they were sent': async (bench) => {
    const held = await bench.hold()
    for (const key of ['b', 'a', 'c']) {
      done(await send(bench, held.job.id, { key, payload: JSON.stringify(key) }))
    }
    const all = []
    for (const n of [1, 2, 3]) all.push(await read(bench, held, { ...APPROVAL, n }))
    assert.deepEqual(all, ['"b"', '"a"', '"c"'])
    // Once over, a wait has the same end whenever it is asked again.
    assert.equal(await read(bench, held, { ...APPROVAL, n: 2 }), '"a"')
    assert.equal(await read(bench, held, { ...APPROVAL, n: 4 }), 'suspended')
    done(await bench.applyCommand(held.job.id, { kind: 'cancel' }))
  },

  'many signals of one moment are all kept, each once': async (bench) => {
    const held = await waiting(bench)
    const keys = Array.from({ length: 20 }, (_, i) => `k${i % 10}`)
    const answers = await Promise.all(keys.map((key) => send(bench, held.job.id, { key })))
    const kinds = answers.map(({ kind }) => kind).toSorted()
    assert.deepEqual(kinds, [...Array(10).fill('done'), ...Array(10).fill('same')])
    assert.equal((await bench.store.waits.history(held.job.id)).signals.length, 10)
  },

  'a signal with a payload, a name or a key that cannot be kept is refused': async (bench) => {
    const { job } = await bench.hold()
    await bench.assertUntouched(job.id, async () => {
      const { waits } = bench.store
      const deep = '['.repeat(2000) + ']'.repeat(2000)
      const large = `"${'x'.repeat(20_000_000)}"`
      for (const payload of [large, deep, '"\u0000"', '"\ud800"', 7 as unknown as string]) {
        await assert.rejects(waits.signal([job.id], signalOf({ payload }), CLIENT))
      }
      for (const bad of [
        { name: '' },
        { key: '' },
        { name: 'a\u0000' },
        { key: 'x'.repeat(9999) },
      ]) {
        refused(await send(bench, job.id, bad), CommandInvalid)
      }
    })
  },

  'hostile names, keys and payloads are told apart and come back as they were': async (bench) => {
    const held = await bench.hold()
    const names = ['__proto__', "a'; DROP TABLE pawl_jobs; --", 'a/1/b', 'ü', '%', '💣', '/']
    for (const name of names) {
      done(await send(bench, held.job.id, { name, key: name, payload: JSON.stringify({ name }) }))
    }
    for (const name of names) {
      const wait = { ...APPROVAL, name }
      assert.equal(await read(bench, held, wait), JSON.stringify({ name }))
    }
    const { waits, signals } = await bench.store.waits.history(held.job.id)
    assert.deepEqual([waits.map(({ name }) => name), signals.map(({ key }) => key)], [names, names])
  },

  'a lifecycle without waits takes no signals and does not wait': async (bench) => {
    const held = await bench.hold({ lifecycle: task })
    await bench.assertUntouched(held.job.id, async () => {
      refused(await send(bench, held.job.id), Unsupported)
      refused(await ask(bench, held), Unsupported)
    })
  },
}

/** How waits end. */
export const waitCases: Cases = {
  'a wait without a time-out ends the attempt and keeps the job until the signal': async (
    bench,
  ) => {
    const held = await bench.hold()
    const answer = await ask(bench, held)
    assert.equal(answer.kind, 'suspended')
    const job = await bench.job(held.job.id)
    assert.deepEqual(answer.kind === 'suspended' && answer.job, job)
    assert.deepEqual(stateOf(job), {
      ...{ state: 'waiting', reason: 'signal:approval', runAt: null, attempt: 1 },
      isHeld: false,
    })
    assert.deepEqual([job.failures, job.crashes, job.releases], [0, 0, 0])
    await bench.advance(1000 * HOUR_MS)
    assert.equal(await bench.store.promote(10), 0)
    assert.deepEqual(await bench.store.recover(10), [])
    assert.deepEqual(await bench.claim({ queues: [job.queue] }), [])
    assert.equal((await bench.store.counts()).lanes.idle, 1)
    done(await send(bench, job.id))
    assert.equal(await read(bench, await bench.reclaim(held)), '{"by":"ann"}')
  },

  'a sleep ends at its time, and not a millisecond before': async (bench) => {
    const until = bench.store.now() + 5000
    const pause: Wait = { for: 'sleep', name: 'pause', n: 1, until }
    const held = await waiting(bench, pause)
    assert.equal(await bench.store.nextDue(), until)
    await bench.advance(4999)
    await bench.store.promote(10)
    assert.equal((await bench.job(held.job.id)).state, 'waiting')
    await bench.advance(1)
    await bench.store.promote(10)
    const { state, reason } = await bench.job(held.job.id)
    assert.deepEqual([state, reason], ['queued', 'resumed'])
    const again = await bench.reclaim(held)
    // The end was fixed when the sleep began, whatever is asked for now.
    assert.equal(await read(bench, again, { ...pause, until: until + HOUR_MS }), 'passed')
    assert.equal(await read(bench, again, pause), 'passed')
  },

  'a signal does not end a sleep of its name': async (bench) => {
    const until = bench.store.now() + HOUR_MS
    const held = await waiting(bench, { for: 'sleep', name: 'approval', n: 1, until })
    assert.equal(done(await send(bench, held.job.id)).job.state, 'waiting')
  },

  'a time-out counts if no signal came before the wait was decided': async (bench) => {
    const wait = { ...APPROVAL, until: bench.store.now() + 1000 }
    const held = await waiting(bench, wait)
    await bench.advance(1000)
    await bench.store.promote(10)
    const again = await bench.reclaim(held)
    assert.equal(await read(bench, again, wait), 'passed')
    // It was decided once: the signal is for the next wait.
    done(await send(bench, held.job.id))
    assert.equal(await read(bench, again, wait), 'passed')
    assert.equal(await read(bench, again, { ...APPROVAL, n: 2 }), '{"by":"ann"}')
  },

  'a signal that comes after the time and before the decision counts': async (bench) => {
    const wait = { ...APPROVAL, until: bench.store.now() + 1000 }
    const held = await waiting(bench, wait)
    await bench.advance(2000)
    await bench.store.promote(10)
    done(await send(bench, held.job.id))
    assert.equal(await read(bench, await bench.reclaim(held), wait), '{"by":"ann"}')
  },

  'signals and waits of one moment lose nothing': async (bench) => {
    for (let round = 0; round < 10; round++) {
      const held = await bench.hold()
      const { id } = held.job
      const [, answer] = await Promise.all([send(bench, id), ask(bench, held)])
      if (answer.kind === 'over') continue
      assert.equal(answer.kind, 'suspended')
      assert.equal((await bench.job(id)).state, 'queued')
      assert.equal(await read(bench, await bench.reclaim(held)), '{"by":"ann"}')
    }
  },

  'a wait under a fence that is stale changes nothing': async (bench) => {
    const held = await bench.hold({ policy: policyWith() })
    done(await send(bench, held.job.id))
    await bench.assertUntouched(held.job.id, async () => {
      const request = { id: held.job.id, wait: APPROVAL }
      const fence = fenceOf(held)
      const wrong = [
        { ...fence, attempt: 2 },
        { ...fence, claim: ID },
      ]
      for (const own of wrong) {
        refused(await bench.store.waits.wait({ ...request, fence: own }), StaleFence)
      }
    })
    await bench.advance(LEASE_MS)
    refused(await ask(bench, held), StaleFence)
    await bench.store.recover(10)
    await bench.store.promote(10)
    const again = await bench.reclaim(held)
    refused(await ask(bench, held), StaleFence)
    assert.equal(await read(bench, again), '{"by":"ann"}')
  },

  'a wait whose reply was lost has the same result when it is asked again': async (bench) => {
    const over = await bench.hold()
    done(await send(bench, over.job.id))
    await ask(bench, over)
    await bench.assertUntouched(over.job.id, async () => {
      assert.equal(await read(bench, over), '{"by":"ann"}')
    })
    const suspended = await bench.hold()
    const first = await ask(bench, suspended)
    await bench.assertUntouched(suspended.job.id, async () => {
      assert.deepEqual(await ask(bench, suspended), first)
    })
    done(await send(bench, suspended.job.id))
    await bench.reclaim(suspended)
    assert.equal((await ask(bench, suspended)).kind, 'suspended')
    // Another wait of that attempt is refused: the attempt has ended.
    refused(await ask(bench, suspended, { ...APPROVAL, n: 2 }), StaleFence)
  },

  'a wait of a job that does not exist, and one that says nothing, are refused': async (bench) => {
    const held = await bench.hold()
    const fence = fenceOf(held)
    refused(await bench.store.waits.wait({ id: ID, fence, wait: APPROVAL }), JobNotFound)
    refused(await ask(bench, held, { ...APPROVAL, name: '' }), CommandInvalid)
    refused(await ask(bench, held, { ...APPROVAL, for: 'sleep' }), CommandInvalid)
    assert.deepEqual(await bench.store.waits.history(ID), { waits: [], signals: [] })
  },

  'a wait without a time-out ends at the deadline of its job': async (bench) => {
    const deadlineAt = bench.store.now() + 1000
    const held = await bench.hold({ deadlineAt })
    await ask(bench, held)
    assert.equal((await bench.job(held.job.id)).runAt, deadlineAt)
    const late = await bench.hold({ deadlineAt })
    await bench.advance(1000)
    refused(await ask(bench, late), DeadlinePassed)
  },

  'a job that waits is cancelled at once, and keeps what it did not read': async (bench) => {
    const held = await waiting(bench)
    done(await send(bench, held.job.id, { name: 'payment' }))
    const { job } = done(await bench.applyCommand(held.job.id, { kind: 'cancel' }))
    assert.deepEqual([job.state, job.outcome], ['cancelled', 'cancelled'])
    refused(await send(bench, job.id), JobEnded)
    assert.equal((await bench.store.waits.history(job.id)).signals.length, 1)
  },

  'a redriven job has the waits that were over, and the signals that came meanwhile': async (
    bench,
  ) => {
    const held = await bench.hold()
    const { id } = held.job
    done(await send(bench, id, { payload: '1' }))
    assert.equal(await read(bench, held), '1')
    assert.equal(await read(bench, held, { ...APPROVAL, n: 2 }), 'suspended')
    done(await bench.applyCommand(id, { kind: 'park' }, OPERATOR))
    assert.equal(done(await send(bench, id, { key: 'k2', payload: '2' })).job.state, 'quarantined')
    done(await bench.applyCommand(id, { kind: 'redrive' }, OPERATOR))
    const again = await bench.reclaim(held)
    assert.deepEqual(
      [await read(bench, again), await read(bench, again, { ...APPROVAL, n: 2 })],
      ['1', '2'],
    )
  },

  'a job that waits frees its slot, and takes one again when it is resumed': async (bench) => {
    await bench.store.limits.declare([{ name: 'shared/api', max: 1 }])
    const limitKeys = [{ gate: 'shared/api' }]
    const first = await bench.enqueue({ limitKeys })
    const second = await bench.enqueue({ limitKeys })
    const held = one(await bench.claim({ limit: 5 }))
    assert.equal(held.job.id, first.id)
    assert.equal(await read(bench, held), 'suspended')
    assert.equal((await bench.store.limits.gate('shared/api')).used, 0)
    const next = one(await bench.claim({ limit: 5 }))
    assert.equal(next.job.id, second.id)
    done(await send(bench, first.id))
    assert.deepEqual(await bench.claim({ limit: 5 }), [])
    done(await bench.settle(next, { kind: 'commit' }, '1'))
    const again = one(await bench.claim({ limit: 5 }))
    assert.equal(await read(bench, again), '{"by":"ann"}')
    assert.equal((await bench.store.limits.gate('shared/api')).used, 1)
  },

  'the history says what was waited for, how it ended, and who read what': async (bench) => {
    const at = bench.store.now()
    const held = await bench.hold()
    const { id } = held.job
    done(await send(bench, id, { payload: '1' }))
    await ask(bench, held)
    await ask(bench, held, { for: 'sleep', name: 'pause', n: 1, until: at })
    await ask(bench, held, { ...APPROVAL, n: 2, until: at + HOUR_MS })
    done(await send(bench, id, { name: 'payment', key: 'p', payload: '2' }))
    assert.deepEqual(await bench.store.waits.history(id), {
      waits: [
        { ...APPROVAL, until: at, end: { kind: 'received', payload: '1', by: 'client' } },
        { for: 'sleep', name: 'pause', n: 1, until: at, end: { kind: 'passed' } },
        { ...APPROVAL, n: 2, until: at + HOUR_MS },
      ],
      signals: [
        { seq: 3, at, name: 'approval', key: 'k1', payload: '1', by: 'client', receivedBy: 4 },
        { seq: 7, at, name: 'payment', key: 'p', payload: '2', by: 'client' },
      ],
    })
  },
}

/** The default lifecycle as it was before it had waits. */
const standard1: Lifecycle = defineLifecycle({
  name: 'standard',
  version: 1,
  initial: 'created',
  states: Object.fromEntries(
    [...standard.roles]
      .filter(([state]) => state !== 'waiting')
      .map(([state, role]) => [state, { role, meaning: `It is ${role}.` }]),
  ),
  edges: standard.machine.edges
    .filter(({ from, to }) => from !== 'waiting' && to !== 'waiting')
    .map(({ from, to, on, operator }) => ({
      from,
      to,
      on,
      ...(operator && { operator }),
    })) as never,
})

/** Jobs of the version of the default lifecycle that had no waits. */
export const earlierWaitCases: Cases = {
  'a job of version 1 is migrated by its first signal, and may wait': async (bench) => {
    assert.ok(bench.reopen, 'this case needs a store that can be opened twice')
    const others = LIFECYCLES.filter(({ name }) => name !== 'standard')
    const old = await bench.reopen([standard1, ...others])
    try {
      const item = bench.item({ lifecycle: standard1 })
      const running = bench.item({ lifecycle: standard1, queue: 'side' })
      await old.enqueue([item, running])
      const request = { worker: 'old', limit: 1, leaseMs: LEASE_MS, start: true }
      one(await old.claim({ ...request, queues: ['side'] }))
      const { jobId } = item.command
      const { job } = done(await send(bench, jobId))
      assert.deepEqual([job.lifecycleVersion, job.state], [2, 'queued'])
      const held = one(await bench.claim({ queues: ['main'] }))
      assert.equal(await read(bench, held), '{"by":"ann"}')
      // The worker of the earlier release goes on undisturbed; it could not receive the signal.
      refused(await send(bench, running.command.jobId), LeaseLive)
      refused(one(await old.waits.signal([running.command.jobId], signalOf(), CLIENT)), Unsupported)
      await checkStore(bench.store)
    } finally {
      await old.close()
    }
  },
}
