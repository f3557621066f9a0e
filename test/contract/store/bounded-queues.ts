/** Queues that take only so many jobs, or only for so long. */
import assert from 'node:assert/strict'
import { document } from '../../../src/core/lifecycles/document.ts'
import { hardened } from '../../../src/core/lifecycles/hardened.ts'
import { leased } from '../../../src/core/lifecycles/leased.ts'
import { task } from '../../../src/core/lifecycles/task.ts'
import type { Answer, Enqueued } from '../../../src/stores/contract/store.ts'
import { QueueFull } from '../../../src/stores/errors.ts'
import { type Bench, type Cases, done, one, refused } from './bench.ts'

const WAIT_MS = 1000

function full(answer: Enqueued): void {
  refused(answer, QueueFull)
}

function idsOf(answers: readonly Answer[]): string[] {
  return answers.map((answer) => done(answer).job.id).sort()
}

async function wait(bench: Bench): Promise<readonly Answer[]> {
  await bench.advance(WAIT_MS + 1)
  return bench.store.shed(100)
}

/** What a bound on the depth of a queue does. */
const depthCases: Cases = {
  'a queue takes as many jobs as it may have, and refuses the next': async (bench) => {
    await bench.store.limitQueue('a', { maxDepth: 2 })
    const jobs = [await bench.enqueue({ queue: 'a' }), await bench.enqueue({ queue: 'a' })]
    full(await bench.offer({ queue: 'a' }))
    await bench.enqueue({ queue: 'b' })
    assert.equal((await bench.ids()).length, 3)
    assert.equal((await bench.claim({ queues: ['a'] }))[0]?.job.id, jobs[0]?.id)
    await bench.enqueue({ queue: 'a' })
    full(await bench.offer({ queue: 'a' }))
  },

  'of jobs that come together, those for which there is room are accepted': async (bench) => {
    await bench.store.limitQueue('a', { maxDepth: 3 })
    await bench.enqueue({ queue: 'a' })
    const items = ['a', 'b', 'a', 'a', 'a'].map((queue) => bench.item({ queue }))
    const kinds = (await bench.store.enqueue(items)).map(({ kind }) => kind)
    assert.deepEqual(kinds, ['created', 'created', 'created', 'rejected', 'rejected'])
  },

  'callers of one moment do not get more room than there is': async (bench) => {
    await bench.store.limitQueue('a', { maxDepth: 7 })
    const answers = await Promise.all(Array.from({ length: 20 }, () => bench.offer({ queue: 'a' })))
    assert.equal(answers.filter(({ kind }) => kind === 'created').length, 7)
    for (const answer of answers) if (answer.kind !== 'created') full(answer)
  },

  'a key that belongs to a job is answered, also where there is no room': async (bench) => {
    await bench.store.limitQueue('a', { maxDepth: 1 })
    const job = await bench.enqueue({ queue: 'a', key: 'k' })
    const again = await bench.offer({ queue: 'a', key: 'k' })
    assert.equal(again.kind === 'existing' && again.job.id, job.id)
    full(await bench.offer({ queue: 'a', key: 'other' }))
  },

  'a job that is held back or not yet due needs no room': async (bench) => {
    await bench.store.limitQueue('a', { maxDepth: 0 })
    await bench.enqueue({ queue: 'a', hold: true })
    await bench.enqueue({ queue: 'a', runAt: bench.store.now() + 1 })
    full(await bench.offer({ queue: 'a' }))
  },

  'a job of R2 is accepted, and failed for want of resources': async (bench) => {
    await bench.store.limitQueue('a', { maxDepth: 1 })
    const jobs = []
    for (let i = 0; i < 3; i++) jobs.push(await bench.enqueue({ queue: 'a', lifecycle: document }))
    assert.deepEqual(idsOf(await bench.store.shed(100)), [jobs[1]?.id, jobs[2]?.id].sort())
    const failed = await bench.job(jobs[2]?.id ?? '')
    assert.equal(failed.state, 'FAILED')
    assert.equal(failed.reason, 'resource_exhausted')
    assert.equal((await bench.job(jobs[0]?.id ?? '')).state, 'QUEUED')
    assert.deepEqual(await bench.store.shed(100), [])
  },

  'the depth of a queue sheds no job of a lifecycle that is refused at the door': async (bench) => {
    await bench.enqueue({ queue: 'a' })
    await bench.enqueue({ queue: 'a' })
    await bench.store.limitQueue('a', { maxDepth: 1 })
    assert.deepEqual(await bench.store.shed(100), [])
  },
}

/** What a bound on the wait in a queue does. */
const waitCases: Cases = {
  'a job that waits for too long is ended, whatever its lifecycle': async (bench) => {
    await bench.store.limitQueue('a', { maxWaitMs: WAIT_MS })
    const ids: string[] = []
    for (const lifecycle of [hardened, leased, task, document]) {
      ids.push((await bench.enqueue({ queue: 'a', lifecycle })).id)
    }
    ids.push((await bench.enqueue({ queue: 'a' })).id)
    await bench.advance(WAIT_MS)
    assert.deepEqual(await bench.store.shed(100), [])
    assert.deepEqual(idsOf(await wait(bench)), ids.toSorted())
    const states = await Promise.all(ids.map(async (id) => (await bench.job(id)).state))
    assert.deepEqual(states, ['quarantined', 'FAILED', 'error', 'FAILED', 'cancelled'])
    assert.deepEqual((await bench.lastFact(ids[4] ?? '')).metadata, { shed: 'maxWait', queue: 'a' })
  },

  'the oldest of every priority is found, and nothing of other queues': async (bench) => {
    await bench.store.limitQueue('a', { maxWaitMs: WAIT_MS })
    const late = []
    for (const priority of [5, -5, 0]) late.push(await bench.enqueue({ queue: 'a', priority }))
    await bench.enqueue({ queue: 'b' })
    await bench.advance(WAIT_MS)
    for (const priority of [5, -5, 0]) await bench.enqueue({ queue: 'a', priority })
    await bench.advance(1)
    assert.deepEqual(idsOf(await bench.store.shed(100)), late.map(({ id }) => id).sort())
  },

  'a job that is ahead is not ended for a wait that it has not had': async (bench) => {
    await bench.store.limitQueue('a', { maxWaitMs: WAIT_MS })
    const late = await bench.enqueue({ queue: 'a', aheadMs: 10 * WAIT_MS })
    await bench.advance(WAIT_MS)
    await bench.enqueue({ queue: 'a', aheadMs: 10 * WAIT_MS })
    await bench.advance(1)
    assert.deepEqual(idsOf(await bench.store.shed(100)), [late.id])
  },

  'what runs, or waits for its time, is not ended for its wait': async (bench) => {
    await bench.store.limitQueue('a', { maxWaitMs: WAIT_MS })
    await bench.hold({ queue: 'a' }, { leaseMs: 10 * WAIT_MS })
    await bench.enqueue({ queue: 'a', runAt: bench.store.now() + 10 * WAIT_MS })
    await bench.enqueue({ queue: 'a', hold: true })
    assert.deepEqual(await wait(bench), [])
  },

  'no more jobs are ended at once than was asked for': async (bench) => {
    await bench.store.limitQueue('a', { maxWaitMs: WAIT_MS, maxDepth: 1 })
    for (let i = 0; i < 5; i++) await bench.enqueue({ queue: 'a', lifecycle: document })
    await bench.advance(WAIT_MS + 1)
    for (const left of [2, 2, 1, 0]) assert.equal((await bench.store.shed(2)).length, left)
  },
}

/** One job of the queue runs, and as many others as given are blocked by its limit. */
async function blockedIn(bench: Bench, queue: string, count: number): Promise<string[]> {
  await bench.store.limits.declare([{ name: 'shared/api', max: 1 }])
  const limitKeys = [{ gate: 'shared/api' }]
  const jobs = []
  for (let i = 0; i <= count; i++) jobs.push(await bench.enqueue({ queue, limitKeys }))
  one(await bench.claim({ queues: [queue], limit: 10, leaseMs: 10 * WAIT_MS }))
  assert.equal((await bench.store.counts()).lanes.blocked, count)
  return jobs.slice(1).map(({ id }) => id)
}

/** Jobs that a limit blocks count like ready ones: a bound must hold for them, too. */
const blockedCases: Cases = {
  'jobs that a limit blocks take room': async (bench) => {
    await blockedIn(bench, 'a', 2)
    await bench.store.limitQueue('a', { maxDepth: 3 })
    await bench.enqueue({ queue: 'a' })
    full(await bench.offer({ queue: 'a' }))
  },

  'jobs that a limit blocks are ended for their wait': async (bench) => {
    const blocked = await blockedIn(bench, 'a', 2)
    await bench.store.limitQueue('a', { maxWaitMs: WAIT_MS })
    assert.deepEqual(idsOf(await wait(bench)), blocked.toSorted())
    assert.equal((await bench.store.counts()).lanes.blocked, 0)
  },

  'jobs that a limit blocks are ended at their deadline': async (bench) => {
    await bench.store.limits.declare([{ name: 'shared/api', max: 0 }])
    const deadlineAt = bench.store.now() + WAIT_MS
    const { id } = await bench.enqueue({ limitKeys: [{ gate: 'shared/api' }], deadlineAt })
    assert.deepEqual(await bench.claim(), [])
    assert.deepEqual(idsOf(await wait(bench)), [id])
    assert.equal((await bench.job(id)).error?.kind, 'deadline')
  },
}

/** What bounds on queues do. */
export const boundedQueueCases: Cases = {
  ...depthCases,
  ...waitCases,
  ...blockedCases,

  'a bound can be changed and lifted, each without the other': async (bench) => {
    await bench.store.limitQueue('a', { maxDepth: 1, maxWaitMs: WAIT_MS })
    await bench.store.limitQueue('a', { maxDepth: 2 })
    await bench.enqueue({ queue: 'a' })
    await bench.enqueue({ queue: 'a' })
    full(await bench.offer({ queue: 'a' }))
    assert.equal((await wait(bench)).length, 2)
    await bench.store.limitQueue('a', { maxWaitMs: null })
    await bench.enqueue({ queue: 'a' })
    assert.deepEqual(await wait(bench), [])
    await bench.store.limitQueue('a', { maxDepth: null })
    for (let i = 0; i < 3; i++) await bench.enqueue({ queue: 'a' })
  },

  'a bound leaves a queue paused that is paused': async (bench) => {
    await bench.store.pauseQueue('a', { actor: 'client' })
    await bench.store.limitQueue('a', { maxDepth: 1 })
    await bench.enqueue({ queue: 'a' })
    assert.deepEqual(await bench.claim({ queues: ['a'] }), [])
    await bench.store.resumeQueue('a', { actor: 'client' })
    full(await bench.offer({ queue: 'a' }))
    one(await bench.claim({ queues: ['a'] }))
  },
}
