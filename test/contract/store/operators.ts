/** What clients and operators ask of jobs by id: each job on its own, and who asked is kept. */
import assert from 'node:assert/strict'
import {
  CommandInvalid,
  Committed,
  InvalidTransition,
  JobEnded,
  JobExists,
  JobNotFound,
  StaleFence,
  Unsupported,
} from '../../../src/core/errors.ts'
import { LIFECYCLES } from '../../../src/core/lifecycles/index.ts'
import { leased } from '../../../src/core/lifecycles/leased.ts'
import type { Requester } from '../../../src/stores/contract/store.ts'
import { type Cases, CLIENT, done, fenceOf, LEASE_MS, OPERATOR, one, refused } from './bench.ts'

const DOCTOR: Requester = { actor: 'doctor', operator: 'ann', note: 'rebuilt' }
const NOBODY = '00000000-0000-7000-8000-00000000dead'

/** What is asked of jobs by their ids. */
export const operatorCases: Cases = {
  'unknown ids are answered as such, in order, and hinder no other': async (bench) => {
    const [a, b] = [await bench.enqueue(), await bench.enqueue()]
    const ids = [NOBODY, a.id, '', "' or 1=1 --", b.id]
    const answers = await bench.store.applyCommand(ids, { kind: 'prioritise', priority: 3 }, CLIENT)
    assert.deepEqual(
      answers.map(({ kind }) => kind),
      ['rejected', 'done', 'rejected', 'rejected', 'done'],
    )
    for (const i of [0, 2, 3]) refused(answers[i], JobNotFound)
    assert.equal((await bench.job(b.id)).priority, 3)
    assert.deepEqual(await bench.store.applyCommand([], { kind: 'submit' }, CLIENT), [])
  },

  'the same id twice in one call is answered twice': async (bench) => {
    const { id } = await bench.enqueue()
    const command = { kind: 'prioritise', priority: 3 } as const
    const [first, second] = await bench.store.applyCommand([id, id], command, CLIENT)
    done(first)
    assert.equal(second?.kind, 'same')
  },

  'a job that refuses a command hinders no other': async (bench) => {
    const [plain, other] = [await bench.enqueue(), await bench.enqueue({ lifecycle: leased })]
    const held = await bench.hold()
    await bench.store.commit(held, () => '1')
    const ids = [other.id, held.job.id, plain.id]
    const answers = await bench.store.applyCommand(ids, { kind: 'discard' }, OPERATOR)
    refused(answers[0], Unsupported)
    refused(answers[1], Committed)
    refused(answers[2], InvalidTransition)
  },

  'commands of operators need a name and a note, and keep both': async (bench) => {
    const { id } = await bench.enqueue()
    await bench.assertUntouched(id, async () => {
      refused(await bench.applyCommand(id, { kind: 'park' }, CLIENT), CommandInvalid)
      refused(await bench.applyCommand(id, { kind: 'park' }, { actor: 'operator' }), CommandInvalid)
    })
    const { fact } = done(await bench.applyCommand(id, { kind: 'park' }, OPERATOR))
    assert.deepEqual([fact.operator, fact.note], ['ann', 'looked into it'])
    assert.deepEqual(await bench.lastFact(id), fact)
  },

  'a parked job is redriven with fresh budgets, and its attempts go on': async (bench) => {
    const held = await bench.hold()
    done(await bench.fail(held, 'invalid_input'))
    const { job } = done(await bench.applyCommand(held.job.id, { kind: 'redrive' }, OPERATOR))
    assert.deepEqual([job.state, job.failures, job.attempt], ['queued', 0, 1])
    assert.equal((await bench.reclaim(held)).job.attempt, 2)
  },

  'an ended job that is redriven is no longer counted as ended': async (bench) => {
    const held = await bench.hold()
    done(await bench.fail(held, 'terminal'))
    assert.deepEqual({ ...(await bench.store.counts()).ended }, { failed: 1 })
    done(await bench.applyCommand(held.job.id, { kind: 'redrive' }, OPERATOR))
    assert.deepEqual({ ...(await bench.store.counts()).ended }, {})
    const again = await bench.reclaim(held)
    done(await bench.fail(again, 'terminal'))
    assert.equal((await bench.store.counts()).lanes.ended, 1)
  },

  'a parked job can be discarded for good': async (bench) => {
    const { id } = await bench.enqueue()
    done(await bench.applyCommand(id, { kind: 'park' }, OPERATOR))
    const { job } = done(await bench.applyCommand(id, { kind: 'discard' }, OPERATOR))
    assert.deepEqual([job.outcome, job.reason], ['failed', 'discarded'])
  },

  'force moves a job off its table, and its holder loses it': async (bench) => {
    const held = await bench.hold()
    const { job } = done(
      await bench.applyCommand(held.job.id, { kind: 'force', to: 'failed' }, OPERATOR),
    )
    assert.deepEqual([job.outcome, job.execution], ['failed', null])
    refused(await bench.settle(held, { kind: 'commit' }, '1'), StaleFence)
    const again = { kind: 'force', to: 'queued' } as const
    refused(await bench.applyCommand(held.job.id, again, OPERATOR), JobEnded)
    const { id } = await bench.enqueue()
    for (const to of ['running', 'succeeded', 'nowhere']) {
      refused(await bench.applyCommand(id, { kind: 'force', to }, OPERATOR), InvalidTransition)
    }
  },

  'the doctor moves a job, or only notes that it mended the row': async (bench) => {
    const { id } = await bench.enqueue()
    done(await bench.applyCommand(id, { kind: 'repair' }, DOCTOR))
    const { job } = done(
      await bench.applyCommand(id, { kind: 'repair', to: 'quarantined' }, DOCTOR),
    )
    assert.equal(job.state, 'quarantined')
    refused(await bench.applyCommand(id, { kind: 'repair' }, OPERATOR), CommandInvalid)
  },

  'the doctor notes that it mended the row of a job that has ended': async (bench) => {
    const [failed, succeeded] = [await bench.hold(), await bench.hold()]
    done(await bench.fail(failed, 'terminal'))
    await bench.store.commit(succeeded, () => '1')
    for (const { job } of [failed, succeeded]) {
      const before = await bench.job(job.id)
      const { job: after } = done(await bench.applyCommand(job.id, { kind: 'repair' }, DOCTOR))
      assert.deepEqual([after.state, after.endedAt], [before.state, before.endedAt])
    }
    const counts = await bench.store.counts()
    assert.deepEqual({ ...counts.ended }, { failed: 1, succeeded: 1 })
  },

  'nothing but a note is possible once a job has succeeded': async (bench) => {
    const held = await bench.hold()
    await bench.store.commit(held, () => '1')
    const { id } = held.job
    await bench.assertUntouched(id, async () => {
      const tries = [
        { kind: 'cancel' },
        { kind: 'park' },
        { kind: 'redrive' },
        { kind: 'discard' },
        { kind: 'force', to: 'queued' },
        { kind: 'submit' },
        { kind: 'reschedule', runAt: 0 },
        { kind: 'prioritise', priority: 9 },
      ] as const
      for (const command of tries) {
        assert.equal(
          (await bench.applyCommand(id, command, OPERATOR)).kind,
          'rejected',
          command.kind,
        )
      }
      assert.equal(one(await bench.store.cancel([id], CLIENT)).kind, 'rejected')
    })
  },

  'a job cannot be created a second time by a command': async (bench) => {
    const { id } = await bench.enqueue()
    const create = { kind: 'create', jobId: id, type: 'a', queue: 'b' } as const
    refused(await bench.applyCommand(id, create, CLIENT), JobExists)
  },

  'priority and due time decide when a job is taken, also when they are changed later': async (
    bench,
  ) => {
    const [a, b, c] = [await bench.enqueue(), await bench.enqueue(), await bench.enqueue()]
    done(await bench.applyCommand(c.id, { kind: 'prioritise', priority: -1 }))
    const later = { kind: 'reschedule', runAt: bench.store.now() + 1000 } as const
    done(await bench.applyCommand(a.id, later))
    const taken = await bench.claim({ limit: 9 })
    assert.deepEqual(
      taken.map(({ job }) => job.id),
      [c.id, b.id],
    )
  },
}

/** What it takes to cancel a job. */
export const cancelCases: Cases = {
  'a job that nobody holds is cancelled at once': async (bench) => {
    for (const lifecycle of LIFECYCLES) {
      const { id } = await bench.enqueue({ lifecycle })
      const { job } = done(one(await bench.store.cancel([id], CLIENT)))
      assert.ok(job.outcome !== null || lifecycle.roles.get(job.state) === 'parked')
      assert.equal(job.reason, 'cancelled')
    }
    assert.deepEqual(await bench.claim({ limit: 9 }), [])
  },

  'cancelling twice changes nothing the second time': async (bench) => {
    const { id } = await bench.enqueue()
    done(one(await bench.store.cancel([id], CLIENT)))
    await bench.assertUntouched(id, async () => {
      assert.equal(one(await bench.store.cancel([id], CLIENT)).kind, 'same')
    })
  },

  'the holder of a running job is asked, sees it, and can finish all the same': async (bench) => {
    const held = await bench.hold()
    await bench.assertUntouched(held.job.id, async () => {
      for (let i = 0; i < 2; i++) {
        const asked = one(await bench.store.cancel([held.job.id], CLIENT))
        assert.deepEqual(asked, { kind: 'asked', job: held.job })
      }
    })
    const beat = { ref: held.ref, fence: fenceOf(held) }
    const answer = await bench.store.heartbeat([beat], LEASE_MS)
    assert.deepEqual(answer, { lost: [], cancelling: [held.ref] })
    done(await bench.settle(held, { kind: 'commit' }, '1'))
  },

  'the wish is still seen after a step and a start': async (bench) => {
    const held = await bench.hold({}, { start: false })
    await bench.store.cancel([held.job.id], CLIENT)
    done(await bench.settle(held, { kind: 'start' }))
    done(await bench.settle(held, { kind: 'step', name: 'a', n: 1 }, '1'))
    const beat = { ref: held.ref, fence: fenceOf(held) }
    assert.deepEqual((await bench.store.heartbeat([beat], LEASE_MS)).cancelling, [held.ref])
  },

  'unknown, ended and committed jobs are answered each on its own': async (bench) => {
    const [ended, delivering] = [await bench.hold(), await bench.hold()]
    await bench.store.commit(ended, () => '1')
    await bench.store.commit(delivering, (tx) => {
      tx.effect('mail', '1')
      return '1'
    })
    const { id } = await bench.enqueue()
    const ids = [NOBODY, ended.job.id, delivering.job.id, id]
    const answers = await bench.store.cancel(ids, CLIENT)
    refused(answers[0], JobNotFound)
    refused(answers[1], Committed)
    refused(answers[2], Committed)
    done(answers[3])
  },
}
