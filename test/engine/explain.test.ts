// Why a job is not running: every reason, with the sentence and the command that would change it.
import type { Job, Lifecycle } from 'pawl'
import { LANES, type Lane, leased, standard, type Timing } from 'pawl/rules'
import { testEnvironment } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { createPawl } from '../../src/engine/create-pawl.ts'
import {
  type Circumstances,
  type Explanation,
  explain,
} from '../../src/engine/operators/explain.ts'
import type { EffectInfo, Held, QueueInfo } from '../../src/stores/contract/store.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { type WorkerInfo, workerOf } from '../../src/stores/worker-info.ts'

const NOW = Date.parse('2026-11-16T09:00:00Z')
const ID = '0198a1b2-0000-7000-8000-000000000001'

const JOB: Job = {
  ...{ id: ID, type: 'mail', queue: 'q', lifecycle: 'standard', lifecycleVersion: 1, tags: [] },
  ...{ key: null, limitKey: null, retryOf: null, timeoutMs: null, deadlineAt: null, policy: null },
  ...{ state: 'queued', seq: 1, attempt: 0, failures: 0, crashes: 0, releases: 0, priority: 0 },
  ...{ aheadMs: 0, runAt: NOW - 5000, createdAt: NOW - 5000, startedAt: null, endedAt: null },
  ...{ updatedAt: NOW - 5000, outcome: null, reason: null, error: null, blockedReason: null },
  ...{ stalled: false, execution: null, flow: null, node: null, links: 0 },
}

const worker = (more: Partial<WorkerInfo> = {}): WorkerInfo => ({
  ...{ id: 'w1', state: 'Idle', startedAt: NOW - 60_000, seenAt: NOW - 1000, live: true },
  version: '1.0.0',
  ...{ queues: undefined, types: ['mail'], running: 0, concurrency: 10, stuck: 0 },
  ...{ activity: 'idle', renewal: undefined, renewalAdvice: undefined, silent: [] },
  ...{ schedules: [], zoneData: undefined },
  ...more,
})

const queue = (more: Partial<QueueInfo> = {}): QueueInfo => ({
  name: 'q',
  lanes: { ...(Object.fromEntries(Object.keys(LANES).map((l) => [l, 0])) as Record<Lane, number>) },
  ...more,
})

const effect = (more: Partial<EffectInfo> = {}): EffectInfo => ({
  ...{ key: `${ID}/send/1`, jobId: ID, jobType: 'mail', name: 'send', n: 1, state: 'pending' },
  ...{ tries: 0, runAt: NOW - 1, payload: '1' },
  ...more,
})

const execution = (more: Partial<NonNullable<Job['execution']>> = {}): Job['execution'] => ({
  ...{ status: 'IN_PROGRESS', claim: 'c', worker: 'w1', leaseUntil: NOW + 20_000 },
  ...more,
})

const running: Partial<Job> = { state: 'running', attempt: 2, startedAt: NOW - 3000 }
const error: Job['error'] = { message: 'no route', kind: 'Error', type: 'RETRYABLE' }

type Given = {
  readonly job?: Partial<Job>
  readonly lifecycle?: Lifecycle | null
  readonly queue?: Partial<QueueInfo>
  readonly workers?: readonly WorkerInfo[]
  readonly effects?: readonly EffectInfo[]
  readonly timing?: Timing
  readonly thrown?: Circumstances['thrown']
  readonly faults?: readonly string[]
}

function explained({ job, lifecycle = standard, workers, effects = [], ...given }: Given) {
  const { timing, faults, thrown } = given
  const circumstances: Circumstances = {
    job: { ...JOB, ...job },
    lifecycle: lifecycle ?? undefined,
    queue: queue(given.queue),
    workers: workers ?? [worker()],
    effects,
    now: NOW,
    ...(timing && { timing }),
    ...(thrown && { thrown }),
    ...(faults && { faults }),
  }
  return explain(circumstances)
}

const act = (verb: string) => `pawl job ${verb} ${ID} --reason …`
const WORK = 'pawl work --jobs ./jobs.ts'
const at = (text: string) => `2026-11-16T${text}.000Z`

/** What is so, and how it is explained: kind, sentence, command. */
type Row = readonly [what: string, Given, Explanation['kind'], string, string?]

const ROWS: readonly Row[] = [
  [
    'failed, with the causes of its error',
    {
      job: { outcome: 'failed', state: 'failed', endedAt: NOW - 60_000, reason: 'error', error },
      thrown: {
        name: 'TypeError',
        message: 'no route',
        cause: { name: 'Error', message: 'refused', code: 'ECONNREFUSED' },
      },
    },
    'ended',
    'It failed (error: no route ← Error: refused (ECONNREFUSED)), ' +
      `${at('08:59:00')} (1m ago); a retry runs it again.`,
    act('retry'),
  ],
  [
    'snoozed',
    { job: { state: 'scheduled', runAt: NOW + 60_000, reason: 'snoozed', attempt: 1 } },
    'waiting',
    `Its handler snoozed it until ${at('09:01:00')} (in 1m); that is no failure.`,
    act('retry'),
  ],
  [
    'past its deadline and not claimed yet',
    { job: { deadlineAt: NOW - 60_000 } },
    'ready',
    'It is ready, and 10 of 10 slots are free for it. Its deadline passed ' +
      `${at('08:59:00')} (1m ago): the next recovery of a worker ends it.`,
  ],
  [
    'succeeded',
    { job: { outcome: 'succeeded', state: 'succeeded', endedAt: NOW - 60_000 } },
    'ended',
    `It succeeded, ${at('08:59:00')} (1m ago).`,
  ],
  [
    'ended, with a notice that nobody receives',
    {
      job: { outcome: 'succeeded', state: 'succeeded', endedAt: NOW - 60_000 },
      effects: [effect({ name: 'pawl.notify', runAt: NOW - 60_000, tries: 0 })],
    },
    'ended',
    `It succeeded, ${at('08:59:00')} (1m ago). Its notice is due since ` +
      `${at('08:59:00')} (1m ago), and no process delivers it: pawl work --notify-url URL.`,
  ],
  [
    'succeeded, with the times of its last attempt',
    {
      job: { outcome: 'succeeded', state: 'succeeded', endedAt: NOW - 60_000 },
      timing: { queueMs: 90_000, durationMs: 1200 },
    },
    'ended',
    `It succeeded, ${at('08:59:00')} (1m ago). Its last attempt waited 1m 30s and took 1.2s.`,
  ],
  [
    'failed for good, where it can be redriven',
    { job: { outcome: 'failed', state: 'failed', endedAt: NOW, reason: 'bad', error } },
    'ended',
    `It failed (bad: no route), ${at('09:00:00')} (0ms ago); a retry runs it again.`,
    act('retry'),
  ],
  [
    'failed for good, where nothing leaves the last state',
    { job: { outcome: 'failed', state: 'FAILED', endedAt: NOW, error }, lifecycle: leased },
    'ended',
    `It failed (no route), ${at('09:00:00')} (0ms ago); a retry enqueues a copy of it.`,
    act('retry'),
  ],
  [
    'cancelled',
    { job: { outcome: 'cancelled', state: 'cancelled', endedAt: NOW, reason: 'cancelled' } },
    'ended',
    `It was cancelled (cancelled), ${at('09:00:00')} (0ms ago); a retry enqueues a copy of it.`,
    act('retry'),
  ],
  [
    'committed, and an effect is parked',
    {
      job: { ...running, execution: execution({ status: 'COMMITTED' }) },
      effects: [
        effect(),
        effect({ key: 'it/is "odd"/1', state: 'parked', tries: 5, error: 'gone' }),
      ],
    },
    'delivering',
    'It has committed, and waits for the effect it/is "odd"/1, which is ' +
      'parked after 5 tries: gone.',
    `pawl effect retry --reason … 'it/is "odd"/1'`,
  ],
  [
    'committed, and effects are on their way',
    {
      job: { ...running, execution: execution({ status: 'COMMITTED' }) },
      effects: [effect({ runAt: NOW + 4000, tries: 1, error: 'busy' }), effect()],
    },
    'delivering',
    `It has committed, and waits for the effect ${ID}/send/1 and 1 more to ` +
      `be delivered, next try in 4s, after 1 try: busy.`,
  ],
  [
    'committed, and an effect is due',
    { job: { ...running, execution: execution({ status: 'COMMITTED' }) }, effects: [effect()] },
    'delivering',
    `It has committed, and waits for the effect ${ID}/send/1 to be delivered, due now.`,
  ],
  [
    'committed, and nobody can deliver',
    {
      job: { ...running, execution: execution({ status: 'COMMITTED' }) },
      effects: [effect()],
      workers: [worker({ types: ['other'] }), worker({ live: false })],
    },
    'delivering',
    `It has committed, and waits for the effect ${ID}/send/1 to be ` +
      `delivered, and no worker is alive that knows mail.`,
    WORK,
  ],
  [
    'committed, and all effects are delivered',
    { job: { ...running, execution: execution({ status: 'COMMITTED' }) }, lifecycle: null },
    'delivering',
    'It has committed, and waits for its effects to be noted as delivered.',
  ],
  [
    'of a lifecycle that is not known here',
    { lifecycle: null },
    'lifecycle-unknown',
    'Its lifecycle standard version 1 is not known here; ask a process ' + 'that defines it.',
    `pawl job explain ${ID} --jobs ./jobs.ts`,
  ],
  [
    'stalled',
    { job: { ...running, stalled: true, execution: execution({ leaseUntil: NOW - 60_000 }) } },
    'stalled',
    `The lease of w1 expired ${at('08:59:00')} (1m ago), and recovery waits for approval.`,
    act('approve'),
  ],
  [
    'running',
    { job: { ...running, execution: execution() } },
    'running',
    `w1 is running attempt 2 since ${at('08:59:57')} (3s ago).`,
    act('cancel'),
  ],
  [
    'taken, and not begun',
    { job: { ...running, startedAt: null, execution: execution({ status: 'LEASED' }) } },
    'running',
    'w1 has claimed attempt 2.',
    act('cancel'),
  ],
  [
    'held by a worker that is silent',
    {
      job: { ...running, execution: execution() },
      workers: [worker({ live: false, seenAt: NOW - 16_000 })],
    },
    'running',
    `w1 is running attempt 2 since ${at('08:59:57')} (3s ago); it was ` +
      `last seen 16s ago, and loses it in 20s.`,
    act('cancel'),
  ],
  [
    'held by nobody any more, and somebody will notice',
    { job: { ...running, execution: execution({ leaseUntil: NOW }) } },
    'expired',
    'The lease of w1 expired 0ms ago; a live worker recovers it within seconds.',
  ],
  [
    'held by nobody any more, and nobody will notice',
    { job: { ...running, execution: execution({ leaseUntil: NOW - 1000 }) }, workers: [] },
    'expired',
    'The lease of w1 expired 1s ago, and no worker is alive to recover it.',
    WORK,
  ],
  [
    'parked after its budget was spent',
    { job: { state: 'quarantined', reason: 'retries_exhausted', error } },
    'parked',
    'It is parked for an operator (retries_exhausted: no route).',
    act('redrive'),
  ],
  [
    'parked without a state for it',
    { job: { state: 'PENDING', blockedReason: 'parked', reason: 'parked' }, lifecycle: leased },
    'parked',
    'It is parked for an operator (parked).',
    act('redrive'),
  ],
  [
    'in a state that its lifecycle does not have',
    { job: { state: 'limbo' } },
    'parked',
    'Its state limbo is unknown in lifecycle standard; run the doctor.',
    `${act('force')} --to STATE`,
  ],
  [
    'damaged',
    { job: {}, faults: ['it is in lane idle instead of ready'] },
    'damaged',
    'Its stored row is damaged (it is in lane idle instead of ready), so workers may not find it.',
    'pawl doctor --full --plan',
  ],
  [
    'held back',
    { job: { state: 'created', runAt: null } },
    'held-back',
    'It was enqueued with hold, and has not been submitted yet.',
    act('submit'),
  ],
  [
    'scheduled',
    { job: { state: 'scheduled', runAt: NOW + 300_000 } },
    'waiting',
    `It is not due until ${at('09:05:00')} (in 5m).`,
    act('retry'),
  ],
  [
    'waiting for its next try',
    { job: { state: 'retrying', runAt: NOW + 2000, failures: 2, error } },
    'waiting',
    `It is not due until ${at('09:00:02')} (in 2s), after 2 failures: no route.`,
    act('retry'),
  ],
  [
    'waiting after a crash',
    { job: { state: 'retrying', runAt: NOW + 2000, crashes: 1, error } },
    'waiting',
    `It is not due until ${at('09:00:02')} (in 2s), after 1 crash: no route.`,
    act('retry'),
  ],
  [
    'due, and about to be made ready',
    { job: { state: 'retrying', runAt: NOW - 1000, failures: 1, error } },
    'waiting',
    `It is due since ${at('08:59:59')} (1s ago), and is made ready when a worker next claims.`,
  ],
  [
    'due, and nobody looks',
    { job: { state: 'scheduled', runAt: NOW - 1000 }, workers: [] },
    'no-worker',
    `It is due since ${at('08:59:59')} (1s ago), but no worker is alive.`,
    WORK,
  ],
  [
    'ready in a queue that is paused',
    { queue: { pausedAt: NOW - 60_000, pausedBy: 'ann' }, workers: [] },
    'paused',
    `Its queue q is paused by ann since ${at('08:59:00')} (1m ago).`,
    'pawl queue resume --reason … q',
  ],
  [
    'ready in a queue with an odd name that is paused',
    { queue: { name: "-it's", pausedAt: NOW } },
    'paused',
    `Its queue -it's is paused since ${at('09:00:00')} (0ms ago).`,
    `pawl queue resume --reason … -- '-it'\\''s'`,
  ],
  [
    'ready, and nobody is alive',
    { workers: [worker({ live: false })] },
    'no-worker',
    'It is ready, but no worker is alive.',
    WORK,
  ],
  [
    'ready, and who is alive is about to stop',
    { workers: [worker({ state: 'Draining' }), worker({ state: 'Stopped' })] },
    'no-worker',
    'It is ready, but no worker is alive.',
    WORK,
  ],
  [
    'ready, and nobody takes from its queue',
    { workers: [worker({ queues: ['other'] }), worker({ queues: [] })] },
    'no-worker',
    'It is ready, but none of 2 live workers claims from its queue q.',
    `${WORK} --queue=q`,
  ],
  [
    'ready, and nobody knows its type',
    { workers: [worker({ types: ['report'], queues: ['q'] })] },
    'no-worker',
    'It is ready, but none of 1 worker of its queue knows the type mail.',
    WORK,
  ],
  [
    'ready, and all slots are taken',
    { workers: [worker({ running: 10, stuck: 2 }), worker({ running: 5, concurrency: 5 })] },
    'busy',
    'It is ready, but all 15 slots of 2 workers for it are occupied, 2 of ' +
      'them by handlers that ignore their signal.',
    `${WORK} --concurrency 20`,
  ],
  [
    'ready, and free slots are not for it',
    { workers: [worker({ running: 10 }), worker({ types: ['other'] })] },
    'busy',
    'It is ready, but all 10 slots of 1 worker for it are occupied.',
    `${WORK} --concurrency 20`,
  ],
  [
    'ready in a queue that is bounded',
    { queue: { maxWaitMs: 60_000 }, workers: [] },
    'no-worker',
    'It is ready, but no worker is alive; ready jobs of its queue ' +
      'end after 1m, this one in 55s.',
    WORK,
  ],
  [
    'ready, and next',
    { queue: { lanes: { ...queue().lanes, ready: 3 } }, workers: [worker({ running: 4 })] },
    'ready',
    'It is ready among 2 others of its queue, and 6 of 10 slots are free for it.',
  ],
  [
    'ready, and a worker that tells nothing of its types may take it',
    { workers: [worker({ types: undefined })] },
    'ready',
    'It is ready, and 10 of 10 slots are free for it.',
  ],
]

describe('a job is explained that is', () => {
  it.each(ROWS.map((row) => [row[0], row] as const))('%s', (_what, row) => {
    const [, given, kind, says, command] = row
    expect(explained(given)).toEqual({ kind, says, ...(command !== undefined && { command }) })
  })
})

describe('what a worker reports about itself', () => {
  const row = { id: 'w', state: 'Idle', startedAt: 0, seenAt: NOW }
  it('is believed for fifteen seconds', () => {
    expect(workerOf({ ...row, info: '{}' }, NOW + 15_000).live).toBe(true)
    expect(workerOf({ ...row, info: '{}' }, NOW + 15_001).live).toBe(false)
  })

  it.each(['', 'null', '7', '{"types":7,"queues":"q"}', '{"types":[7,"mail"]}'])(
    'may be %j, of another release',
    (info) => {
      const told = workerOf({ ...row, info }, NOW)
      expect(told).toMatchObject({ running: 0, concurrency: 0, queues: undefined })
      expect(told.types ?? ['mail']).toEqual(['mail'])
    },
  )
})

describe('pawl.explain', () => {
  it('reads what it needs, and says so while the job goes its way', async () => {
    const environment = testEnvironment()
    await using store = await openSqliteStore({ path: ':memory:', environment })
    const pawl = await createPawl({ store, environment })
    const input = { lifecycle: standard, input: '1' }
    await store.enqueue([{ ...input, command: { jobId: ID, type: 'mail', queue: 'q' } }])
    const kind = async () => (await pawl.explain(ID)).kind
    expect(await kind()).toBe('no-worker')
    await store.pauseQueue('q', { actor: 'operator', operator: 'ann', note: 'x' })
    expect(await pawl.explain(ID)).toMatchObject({
      says: expect.stringContaining('paused by ann'),
      command: 'pawl queue resume --reason … q',
    })
    await store.resumeQueue('q', { actor: 'client' })
    const info = JSON.stringify({ concurrency: 1, types: ['mail'], running: 1, stuck: 0 })
    await store.reportWorker({ id: 'w', state: 'Processing', info })
    expect(await kind()).toBe('busy')
    const claim = { worker: 'w', limit: 1, leaseMs: 1000, start: true }
    const [held] = (await store.claim(claim)) as [Held]
    expect(await kind()).toBe('running')
    await store.commit(held, (tx) => {
      tx.effect('send', '1')
      return '1'
    })
    expect((await pawl.explain(ID)).says).toContain(`${ID}/send/1`)
    const [sent] = await store.claimEffects({ limit: 1, leaseMs: 1000 })
    if (sent !== undefined) await store.settleEffects([{ kind: 'delivered', effect: sent }])
    expect(await kind()).toBe('ended')
    await expect(pawl.explain('nobody')).rejects.toThrow(/nobody/)
  })
})
