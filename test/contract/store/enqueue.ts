/** Accepting jobs: what is stored, what a taken key does, and that a bad item hurts only itself. */
import assert from 'node:assert/strict'
import {
  CommandInvalid,
  InvalidTransition,
  JobExists,
  LifecycleUnknown,
  Unsupported,
} from '../../../src/core/errors.ts'
import { document } from '../../../src/core/lifecycles/document.ts'
import { leased } from '../../../src/core/lifecycles/leased.ts'
import { standard } from '../../../src/core/lifecycles/standard.ts'
import { KeyTaken, TxInvalid } from '../../../src/stores/errors.ts'
import { type Cases, created, done, one, policyWith, refused } from './bench.ts'

/** What a job is when it was accepted. */
export const enqueueCases: Cases = {
  'an accepted job can be read as it was answered, with its input': async ({ store }) => {
    const [answer] = await store.enqueue([
      {
        lifecycle: standard,
        command: { jobId: '00000000-0000-7000-8000-0000000000aa', type: 'mail', queue: 'main' },
        input: '{"to":"ann"}',
      },
    ])
    const job = created(answer)
    assert.deepEqual(await store.get(job.id), job)
    assert.deepEqual(await store.payloads(job.id), { input: '{"to":"ann"}' })
    assert.equal(job.state, 'queued')
    assert.equal(job.createdAt, store.now())
  },

  'many jobs are accepted at once and answered in order': async (bench) => {
    const items = Array.from({ length: 120 }, (_, i) => bench.item({ type: `type ${i}` }))
    const answers = await bench.store.enqueue(items)
    const types = answers.map((answer) => created(answer).type)
    assert.deepEqual(
      types,
      items.map(({ command }) => command.type),
    )
    assert.equal((await bench.store.counts()).lanes.ready, 120)
  },

  'no items are accepted as none': async ({ store }) => {
    assert.deepEqual(await store.enqueue([]), [])
  },

  'every attribute of a job is kept': async (bench) => {
    const runAt = bench.store.now() + 5000
    const given = {
      priority: -7,
      tags: ['red', 'blue'],
      key: 'invoice 1',
      limitKeys: [{ gate: 'shared/b' }, { gate: 'job/t/a/tenant%201', max: 2 }],
      retryOf: bench.environment.ids.next(),
      timeoutMs: 1000,
      deadlineAt: runAt + 1000,
      policy: policyWith({ crashesMax: 1, recovery: 'operator' }),
      runAt,
    } as const
    const { id } = await bench.enqueue(given)
    const job = await bench.job(id)
    const { limitKeys: _, ...same } = given
    assert.equal(job.limitKey, 'job/t/a/tenant%201=2 shared/b')
    for (const [field, value] of Object.entries(same)) {
      assert.deepEqual(job[field as keyof typeof same], value, field)
    }
    assert.deepEqual((await bench.store.facts(id))[0]?.created?.policy, given.policy)
  },

  'jobs of one call that differ in one attribute keep their own': async (bench) => {
    const now = bench.store.now()
    const variants = [
      { type: 'other' },
      { queue: 'other' },
      { priority: 7 },
      { runAt: now + 60_000 },
      { timeoutMs: 1234 },
      { deadlineAt: now + 99_000 },
      { tags: ['red'] },
      { key: 'k' },
    ]
    // Each variant has a plain job before and after it: what they share must not spread.
    const all = variants.flatMap((variant) => [{}, variant, {}])
    const answers = await bench.store.enqueue(all.map((fields) => bench.item(fields)))
    const plain = { type: 'example', queue: 'main', priority: 0, tags: [], key: null }
    const base = { ...plain, runAt: now, timeoutMs: null, deadlineAt: null }
    for (const [i, answer] of answers.entries()) {
      const job = await bench.job(created(answer).id)
      const kept = Object.keys(base).map((field) => [field, job[field as keyof typeof base]])
      assert.deepEqual(Object.fromEntries(kept), { ...base, ...all[i] })
    }
  },

  'the first fact names its requester and what the requester said': async (bench) => {
    const requester = {
      actor: 'operator',
      operator: 'ann',
      note: 'by hand',
      metadata: { ticket: '7', ['__proto__']: 'x' },
      traceId: 'trace',
      spanId: 'span',
    } as const
    const [answer] = await bench.store.enqueue([bench.item()], { requester })
    const [fact] = await bench.store.facts(created(answer).id)
    const { actor, operator, note, metadata, traceId, spanId } = fact ?? {}
    assert.deepEqual({ actor, operator, note, metadata, traceId, spanId }, requester)
    const { id } = await bench.enqueue()
    assert.equal((await bench.lastFact(id)).actor, 'client')
  },

  'a job that is held back runs only after it was submitted': async (bench) => {
    const { id, state, runAt } = await bench.enqueue({ hold: true })
    assert.deepEqual([state, runAt], ['created', null])
    assert.equal(await bench.store.promote(10), 0)
    assert.deepEqual(await bench.claim(), [])
    done(await bench.applyCommand(id, { kind: 'submit' }))
    assert.equal(one(await bench.claim()).job.id, id)
    refused(await bench.applyCommand(id, { kind: 'submit' }), InvalidTransition)
  },

  'a job that is held back can be scheduled instead': async (bench) => {
    for (const lifecycle of [standard, document]) {
      const { id } = await bench.enqueue({ lifecycle, hold: true })
      const runAt = bench.store.now() + 1000
      done(await bench.applyCommand(id, { kind: 'schedule', runAt }))
      assert.equal((await bench.applyCommand(id, { kind: 'schedule', runAt })).kind, 'same')
      assert.deepEqual(await bench.claim(), [])
      await bench.advance(1000)
      assert.equal(await bench.store.promote(10), 1)
      assert.equal(one(await bench.claim()).job.id, id)
    }
  },

  'a lifecycle that cannot hold back refuses it, and hinders no other item': async (bench) => {
    const items = [
      bench.item(),
      bench.item({ lifecycle: leased, hold: true }),
      bench.item({ lifecycle: leased }),
    ]
    const answers = await bench.store.enqueue(items)
    created(answers[0])
    refused(answers[1], Unsupported)
    created(answers[2])
    assert.equal((await bench.ids()).length, 2)
  },

  'a due time in the past means now': async (bench) => {
    const { runAt, state } = await bench.enqueue({ runAt: bench.store.now() - 1000 })
    assert.deepEqual([runAt, state], [bench.store.now(), 'queued'])
    one(await bench.claim())
  },

  'a malformed item is refused, and hinders no other': async (bench) => {
    const answers = await bench.store.enqueue([
      bench.item({ priority: 1e9 }),
      bench.item({ jobId: 'no uuid' }),
      bench.item({ tags: ['a', 'a'] }),
      bench.item({ type: 'good' }),
    ])
    for (const answer of answers.slice(0, 3)) refused(answer, CommandInvalid)
    assert.deepEqual(await bench.ids(), [created(answers[3]).id])
  },

  'a lifecycle that the store does not know is refused, and hinders no other item': async (
    bench,
  ) => {
    const unheard = { ...standard, name: 'unheard' }
    const answers = await bench.store.enqueue([bench.item({ lifecycle: unheard }), bench.item()])
    refused(answers[0], LifecycleUnknown)
    created(answers[1])
  },

  'an id that exists is refused, and hinders no other item': async (bench) => {
    const { id } = await bench.enqueue()
    const items = [bench.item({ jobId: id, type: 'again' }), bench.item()]
    const answers = await bench.store.enqueue(items)
    refused(answers[0], JobExists)
    created(answers[1])
    assert.equal((await bench.job(id)).type, 'example')
  },

  'an id that occurs twice in one batch is accepted once': async (bench) => {
    const item = bench.item()
    const answers = await bench.store.enqueue([item, item])
    created(answers[0])
    refused(answers[1], JobExists)
  },

  'something that is no transaction cannot be joined, and nothing is written': async (bench) => {
    for (const tx of [{}, null, 'tx', 7]) {
      const joining = bench.store.enqueue([bench.item()], { tx })
      await assert.rejects(joining, TxInvalid)
    }
    assert.deepEqual(await bench.ids(), [])
  },
}

/** What a taken key does. */
export const keyCases: Cases = {
  'a taken key is answered with its job, and nothing is written': async (bench) => {
    const first = await bench.enqueue({ key: 'k', input: '1' })
    await bench.assertUntouched(first.id, async () => {
      for (const onConflict of [undefined, 'existing'] as const) {
        const again = await bench.offer({
          key: 'k',
          input: '2',
          ...(onConflict !== undefined && { onConflict }),
        })
        assert.deepEqual(again, { kind: 'existing', job: first })
      }
    })
    assert.deepEqual(await bench.ids(), [first.id])
    assert.deepEqual(await bench.store.payloads(first.id), { input: '1' })
  },

  'a taken key is refused with the id of its job where the caller asks for that': async (bench) => {
    const first = await bench.enqueue({ key: 'k' })
    const error = refused(await bench.offer({ key: 'k', onConflict: 'reject' }), KeyTaken)
    assert.equal(error.details.jobId, first.id)
    assert.deepEqual(await bench.ids(), [first.id])
  },

  'a key counts within its type alone': async (bench) => {
    await bench.enqueue({ type: 'a', key: 'k' })
    await bench.enqueue({ type: 'a', key: 'other' })
    await bench.enqueue({ type: 'b', key: 'k' })
    assert.equal((await bench.ids()).length, 3)
    const found = await bench.store.getByKey('b', 'k')
    assert.equal(found?.type, 'b')
  },

  'a key that occurs twice in one batch gives one job': async (bench) => {
    const answers = await bench.store.enqueue([
      bench.item({ key: 'k' }),
      bench.item({ key: 'k' }),
      bench.item({ key: 'k', onConflict: 'reject' }),
      bench.item({ key: 'other' }),
    ])
    const first = created(answers[0])
    assert.deepEqual(answers[1], { kind: 'existing', job: first })
    refused(answers[2], KeyTaken)
    created(answers[3])
  },

  'the key of a job that has ended stays taken': async (bench) => {
    const held = await bench.hold({ key: 'k' })
    await bench.store.commit(held, () => '1')
    const again = await bench.offer({ key: 'k' })
    assert.equal(again.kind, 'existing')
    assert.equal(again.kind === 'existing' && again.job.outcome, 'succeeded')
  },

  'jobs without a key never conflict': async (bench) => {
    await bench.enqueue()
    await bench.enqueue()
    assert.equal((await bench.ids()).length, 2)
  },

  'two hundred callers that enqueue one key at once get one job': async (bench) => {
    const offers = Array.from({ length: 200 }, () => bench.offer({ key: 'k' }))
    const answers = await Promise.all(offers)
    const first = one(answers.filter(({ kind }) => kind === 'created')) as { job: { id: string } }
    const ids = new Set(answers.map((answer) => 'job' in answer && answer.job.id))
    assert.deepEqual([...ids], [first.job.id])
    assert.deepEqual(await bench.ids(), [first.job.id])
  },
}

/** What replacing does: a job that was never started gets another input. */
export const replaceCases: Cases = {
  'a job that was never started gets the new input, and stays the same job': async (bench) => {
    const first = await bench.enqueue({ key: 'k', input: '1', tags: ['a'] })
    for (const input of ['2', '3']) {
      const answer = await bench.offer({ key: 'k', input, onConflict: 'replace' })
      assert.ok(answer.kind === 'replaced')
      assert.deepEqual(answer.job, await bench.job(first.id))
      assert.deepEqual(await bench.store.payloads(first.id), { input })
    }
    assert.deepEqual(await bench.ids(), [first.id])
    assert.equal(one(await bench.claim()).input, '3')
  },

  'a key that is free is simply taken': async (bench) => {
    created(await bench.offer({ key: 'k', onConflict: 'replace' }))
  },

  'a new due time and a new priority come with the new input': async (bench) => {
    const { id } = await bench.enqueue({ key: 'k' })
    const runAt = bench.store.now() + 1000
    await bench.offer({ key: 'k', input: '2', runAt, priority: 5, onConflict: 'replace' })
    const job = await bench.job(id)
    assert.deepEqual([job.runAt, job.priority], [runAt, 5])
    assert.deepEqual(await bench.claim(), [])
  },

  'a job that was started or has ended is not replaced': async (bench) => {
    const [held, ended] = [await bench.hold({ key: 'held' }), await bench.enqueue({ key: 'over' })]
    done(one(await bench.store.cancel([ended.id], { actor: 'client' })))
    const released = await bench.hold({ key: 'released' })
    done(await bench.settle(released, { kind: 'release' }))
    for (const [id, key] of [
      [held.job.id, 'held'],
      [ended.id, 'over'],
      [released.job.id, 'released'],
    ] as const) {
      const payloads = await bench.store.payloads(id)
      await bench.assertUntouched(id, async () => {
        const answer = await bench.offer({ key, input: '2', onConflict: 'replace' })
        assert.ok(answer.kind === 'rejected' || answer.kind === 'existing')
      })
      assert.deepEqual(await bench.store.payloads(id), payloads)
    }
  },

  'a replacement that is refused changes nothing': async (bench) => {
    const { id } = await bench.enqueue({ key: 'k', input: '1', hold: true })
    await bench.assertUntouched(id, async () => {
      const runAt = bench.store.now() + 1000
      const answer = await bench.offer({ key: 'k', input: '2', runAt, onConflict: 'replace' })
      // Whoever accepts it must have done all of it; this job has no due time that could be moved.
      assert.equal(answer.kind, 'rejected')
    })
    assert.deepEqual(await bench.store.payloads(id), { input: '1' })
  },

  'a command to replace that brings no input leaves the one that there is': async (bench) => {
    const { id } = await bench.enqueue({ input: '1' })
    await bench.applyCommand(id, { kind: 'replace' })
    assert.deepEqual(await bench.store.payloads(id), { input: '1' })
    assert.equal(one(await bench.claim()).input, '1')
  },
}
