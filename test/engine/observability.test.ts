// What a program sees of the engine: events, log lines and measurements, and that whoever looks on
// cannot do harm.
import { StaleFence } from 'pawl'
import { hardened, InvalidTransition } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { defineJob } from '../../src/engine/define-job.ts'
import type { PawlEvent } from '../../src/engine/watching/events.ts'
import { METRICS } from '../../src/engine/watching/metrics.ts'
import { EngineBench } from './bench.ts'
import { KeptMetrics, keptLog } from './logbook.ts'

const ANN = { actor: 'operator', operator: 'ann', note: 'to see what happens' } as const
const echo = defineJob({ name: 'echo', queue: 'mail', run: ({ input }) => input })

async function openWatched(jobs: Parameters<typeof EngineBench.open>[0] = [echo]) {
  const events: PawlEvent[] = []
  const metrics = new KeptMetrics()
  const { lines, logger } = keptLog()
  const onEvent = (event: PawlEvent) => void events.push(event)
  const bench = await EngineBench.open(jobs, undefined, { logger, metrics, onEvent })
  return { bench, events, metrics, lines }
}

describe('a refused transition', () => {
  it('is logged as an error with job, from and to, told, and counted', async () => {
    const { bench, events, metrics, lines } = await openWatched()
    const { id } = await bench.pawl.enqueue(echo, 1, { hold: true })
    const [answer] = await bench.pawl.store.applyCommand([id], { kind: 'redrive' }, ANN)
    expect(answer).toMatchObject({ kind: 'rejected', error: expect.any(InvalidTransition) })
    const [from, to] = ['created', 'queued']
    expect(lines.filter(({ level }) => level === 'error')).toEqual([
      {
        level: 'error',
        msg: 'Invalid transition: created → queued: only submit takes this edge, not redrive',
        fields: expect.objectContaining({ job_id: id, from, to, code: 'E_TRANSITION_INVALID' }),
      },
    ])
    expect(events.filter(({ type }) => type === 'refused')).toMatchObject([
      { jobId: id, command: 'redrive', worker: null, from, to },
    ])
    const labels = { machine: 'standard', from, to, code: 'E_TRANSITION_INVALID' }
    expect(metrics.of('pawl_transitions_rejected_total')).toEqual([
      { how: 'count', labels, value: 1 },
    ])
  })

  it('to the state in which the job is already is logged for debugging only', async () => {
    const { bench, events, metrics, lines } = await openWatched()
    const { id } = await bench.pawl.enqueue(echo, 1)
    const [answer] = await bench.pawl.store.applyCommand(
      [id],
      { kind: 'submit' },
      { actor: 'client' },
    )
    expect(answer?.kind).toBe('same')
    expect(lines).toMatchObject([
      { level: 'debug', msg: 'created → queued' },
      { level: 'debug', msg: 'Same state: queued' },
    ])
    expect(events.at(-1)).toMatchObject({ type: 'same', command: 'submit', job: { id } })
    expect(metrics.of('pawl_transitions_rejected_total')).toEqual([])
  })

  it('of a worker that came too late names the worker and what it wanted', async () => {
    let end: () => void = () => {}
    const slow = defineJob({
      name: 'slow',
      run: () =>
        new Promise<void>((resolve) => {
          end = resolve
        }),
    })
    const { bench, events, metrics, lines } = await openWatched([slow])
    await bench.work({ id: 'late' })
    const { id } = await bench.pawl.enqueue(slow, null)
    await bench.until(async () => (await bench.state(id)) === 'running')
    await bench.store.applyCommand([id], { kind: 'park' }, ANN)
    end()
    await bench.until(() => events.some(({ type }) => type === 'lost'))
    expect(events.find(({ type }) => type === 'refused')).toMatchObject({
      worker: 'late',
      jobId: id,
      command: 'commit',
      from: 'running',
      error: expect.any(StaleFence),
    })
    expect(lines.find(({ fields }) => fields.event === 'transition.refused')).toMatchObject({
      level: 'warn',
      fields: { job_id: id, worker_id: 'late', code: 'E_STALE_FENCE' },
    })
    const outcomes = metrics.of('pawl_executions_total').map(({ labels }) => labels.outcome)
    expect(outcomes).toEqual(['duplicate'])
  })
})

describe('a stalled job', () => {
  const gone = { worker: 'gone', limit: 1, leaseMs: 30_000, start: true }

  it('that is taken back is logged as a warning with attempt, worker and age', async () => {
    const { bench, events, metrics, lines } = await openWatched()
    const { id } = await bench.pawl.enqueue(echo, 1)
    await bench.store.claim(gone)
    await bench.work({ id: 'finder' })
    await bench.until(() => events.some(({ type }) => type === 'expired'))
    expect(events.find(({ type }) => type === 'expired')).toMatchObject({
      worker: 'finder',
      attempt: 1,
      holder: 'gone',
      isStalled: false,
      job: { id, state: 'retrying', crashes: 1 },
    })
    const line = lines.find(({ fields }) => fields.event === 'job.recovered')
    expect(line).toMatchObject({
      level: 'warn',
      fields: { job_id: id, attempt: 1, worker_id: 'gone', found_by: 'finder' },
    })
    expect(line?.fields.age_ms).toBeGreaterThanOrEqual(30_000)
    expect(line?.fields.expired_ms).toBeLessThanOrEqual(2000)
    expect(metrics.of('pawl_leases_expired_total')).toEqual([
      { how: 'count', labels: { queue: 'mail' }, value: 1 },
    ])
  })

  it('that needs an operator is reported as flagged, once', async () => {
    const careful = defineJob({ name: 'careful', recovery: 'operator', run: () => 1 })
    const { bench, events, lines } = await openWatched([careful])
    const { id } = await bench.pawl.enqueue(careful, 1)
    await bench.store.claim(gone)
    await bench.work()
    await bench.pass(60_000, 100)
    expect(events.filter(({ type }) => type === 'expired')).toMatchObject([
      { isStalled: true, attempt: 1, holder: 'gone', job: { id, state: 'running' } },
    ])
    expect(lines.filter(({ fields }) => fields.event === 'job.stalled')).toMatchObject([
      { level: 'warn', fields: { job_id: id, attempt: 1, worker_id: 'gone' } },
    ])
  })
})

describe('measurements', () => {
  it('count jobs and their executions by outcome, and how long both waited and took', async () => {
    const ends: (() => void)[] = []
    const mixed = defineJob({
      name: 'mixed',
      queue: 'mail',
      retry: { max: 0 },
      input: { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } },
      run: async ({ input }) => {
        await new Promise<void>((resolve) => ends.push(resolve))
        if (input === 'bad') throw new Error('bad')
      },
    })
    const { bench, metrics } = await openWatched([mixed])
    const good = await bench.pawl.enqueue(mixed, 'good')
    const bad = await bench.pawl.enqueue(mixed, 'bad')
    await bench.pass(3000)
    await bench.work({ id: 'w', concurrency: 2 })
    await bench.until(() => ends.length === 2)
    await bench.pass(2000)
    for (const end of ends) end()
    await bench.finish(Promise.all([good.result(), bad.result()]))
    const labels = { queue: 'mail', kind: 'mixed' }
    expect(metrics.of('pawl_jobs_enqueued_total')).toEqual([
      { how: 'count', labels, value: 1 },
      { how: 'count', labels, value: 1 },
    ])
    const counted = metrics.of('pawl_executions_total').map((one) => one.labels)
    expect(counted).toEqual([
      { ...labels, outcome: 'done' },
      { ...labels, outcome: 'aborted' },
    ])
    for (const { value } of metrics.of('pawl_execution_duration_seconds')) {
      expect(value).toBeGreaterThanOrEqual(2)
      expect(value).toBeLessThan(2.2)
    }
    expect(metrics.of('pawl_queue_latency_seconds')).toHaveLength(2)
    for (const { value } of metrics.of('pawl_queue_latency_seconds')) {
      expect(value).toBeGreaterThanOrEqual(3)
      expect(value).toBeLessThan(3.2)
    }
  })

  it('count each edge that a job takes, and how long it was in the state before', async () => {
    let end: () => void = () => {}
    const shaky = defineJob({
      name: 'shaky',
      lifecycle: hardened,
      run: async ({ attempt, commit }) => {
        if (attempt === 2) return commit(() => 'done')
        await new Promise<void>((resolve) => {
          end = resolve
        })
        throw new Error('not yet')
      },
    })
    const { bench, metrics } = await openWatched([shaky])
    await bench.work()
    const job = await bench.pawl.enqueue(shaky, null)
    await bench.until(async () => (await bench.state(job.id)) === 'running')
    await bench.pass(4000)
    end()
    await bench.finish(job.result())
    const other = await bench.pawl.enqueue(shaky, null, { delay: '1h' })
    await bench.pawl.store.cancel([other.id], ANN)
    const edges = metrics.of('pawl_transitions_total').map(({ labels }) => {
      return `${labels.machine}: ${labels.from} → ${labels.to}`
    })
    expect(edges).toEqual([
      'hardened: pending → running',
      'hardened: running → failed',
      'hardened: failed → pending',
      'hardened: pending → running',
      'hardened: running → succeeded',
      // A job that can be given up only by way of others takes those edges as well.
      'hardened: pending → running',
      'hardened: running → failed',
      'hardened: failed → quarantined',
    ])
    const stays = metrics.of('pawl_transition_stay_seconds')
    const machine = 'hardened'
    expect(stays).toMatchObject([
      { how: 'observe', labels: { machine, from: 'pending', to: 'running' } },
      { how: 'observe', labels: { machine, from: 'running', to: 'failed' } },
      { how: 'observe', labels: { machine, from: 'failed', to: 'pending' } },
      { how: 'observe', labels: { machine, from: 'pending', to: 'running' } },
      { how: 'observe', labels: { machine, from: 'running', to: 'succeeded' } },
      { how: 'observe', labels: { machine, from: 'pending', to: 'running' } },
    ])
    expect(stays[1]?.value).toBeGreaterThanOrEqual(4)
    expect(stays[1]?.value).toBeLessThan(4.2)
    // The delay of the retry.
    expect(stays[2]?.value).toBeGreaterThan(0.4)
    expect(stays[4]?.value).toBeLessThan(0.1)
  })

  it('count the edge of a job whose last effect was delivered', async () => {
    const mailed = defineJob({
      name: 'mailed',
      effects: { mail: () => {} },
      run: ({ commit }) => commit((tx) => tx.effect('mail', 1)),
    })
    const { bench, metrics } = await openWatched([mailed])
    await bench.work()
    const { id } = await bench.pawl.enqueue(mailed, null)
    await bench.until(async () => (await bench.state(id)) === 'succeeded')
    const edges = metrics.of('pawl_transitions_total').map(({ labels }) => labels.to)
    expect(edges).toEqual(['queued', 'running', 'succeeded'])
  })

  it('count and log what operators do and are refused, as events do', async () => {
    const { bench, events, metrics, lines } = await openWatched()
    const ada = bench.pawl.operator({ name: 'ada', reason: 'INC-7' })
    const { id } = await bench.pawl.enqueue(echo, 1)
    await ada.quarantine(id)
    await expect(ada.force(id, 'succeeded')).rejects.toThrow(InvalidTransition)
    await ada.redrive({ filter: { state: 'quarantined' } })
    await expect(ada.redrive(id, { dryRun: true })).resolves.toMatchObject({ same: 1 })
    await expect(ada.copy(id)).rejects.toMatchObject({ code: 'E_JOB_NOT_ENDED' })
    await expect(ada.cancel('nobody')).rejects.toMatchObject({ code: 'E_JOB_NOT_FOUND' })
    const moved = events.filter((event) => event.type === 'moved')
    expect(moved.map(({ path, operator }) => [path.join(' → '), operator])).toEqual([
      ['created → queued', undefined],
      ['queued → quarantined', 'ada'],
      ['quarantined → queued', 'ada'],
    ])
    const refused = events.filter((event) => event.type === 'refused')
    expect(refused.map(({ command, error }) => [command, error.code])).toEqual([
      ['force', 'E_TRANSITION_INVALID'],
      ['copy', 'E_JOB_NOT_ENDED'],
      ['cancel', 'E_JOB_NOT_FOUND'],
    ])
    expect(metrics.of('pawl_transitions_total').map(({ labels }) => labels.to)).toEqual([
      ...['queued', 'quarantined', 'queued'],
    ])
    expect(metrics.of('pawl_transitions_rejected_total')).toHaveLength(3)
    expect(lines.filter(({ level }) => level === 'info').map(({ msg }) => msg)).toEqual([
      ...['queued → quarantined', 'quarantined → queued'],
    ])
    const loud = lines.filter(({ level }) => level === 'error' || level === 'warn')
    expect(loud.map(({ level, msg }) => [level, msg.slice(0, 31)])).toEqual([
      ['error', 'Invalid transition: quarantined'],
      ['warn', `Job ${id.slice(0, 27)}`],
      ['warn', 'Job nobody was not found'],
    ])
  })

  it('count what recovery takes back, by the worker that found it', async () => {
    const { bench, metrics } = await openWatched()
    await bench.pawl.enqueue(echo, 1)
    await bench.store.claim({ worker: 'gone', limit: 1, leaseMs: 30_000, start: true })
    await bench.work()
    const labels = { machine: 'standard', from: 'running', to: 'retrying' }
    const taken = () => metrics.of('pawl_transitions_total').slice(1)
    await bench.until(() => taken().length > 0, 500)
    expect(taken()[0]).toEqual({ how: 'count', labels, value: 1 })
    const [stay] = metrics.of('pawl_transition_stay_seconds')
    expect(stay).toMatchObject({ labels })
    expect(stay?.value).toBeGreaterThanOrEqual(30)
  })

  it('of a job that waited for its time begin when it was due', async () => {
    const { bench, metrics } = await openWatched()
    await bench.work()
    const job = await bench.pawl.enqueue(echo, 1, { delay: '1m' })
    await bench.finish(job.result())
    const [latency] = metrics.of('pawl_queue_latency_seconds')
    expect(latency?.value).toBeLessThan(0.1)
  })

  it('show in which one state the loop of each worker is', async () => {
    const { bench, metrics } = await openWatched()
    const worker = await bench.work({ id: 'w' })
    const states = () => metrics.shown('pawl_worker_loop_state')
    const current = () => Object.entries(states()).filter(([, value]) => value === 1)
    await bench.until(() => worker.states[0] === 'Idle')
    expect(current()).toEqual([['w Idle', 1]])
    await bench.finish(worker.stop())
    expect(current()).toEqual([['w Stopped', 1]])
  })

  it('have the names and labels that are announced', async () => {
    const { bench, metrics } = await openWatched()
    await bench.work()
    await bench.finish((await bench.pawl.enqueue(echo, 1)).result())
    expect(metrics.all.length).toBeGreaterThan(5)
    const kinds = { count: 'counter', observe: 'histogram', gauge: 'gauge' }
    for (const { how, name, labels } of metrics.all) {
      expect(METRICS[name]).toMatchObject({ kind: kinds[how], labels: Object.keys(labels) })
    }
  })
})

describe('a hook that throws', () => {
  const fail = () => {
    throw new Error('the hook is broken')
  }

  it('hurts neither the worker nor the caller, and is logged once a minute', async () => {
    const { lines, logger } = keptLog()
    const metrics = { count: fail, observe: fail, gauge: fail }
    const bench = await EngineBench.open([echo], undefined, { logger, metrics, onEvent: fail })
    const worker = await bench.pawl.work({ onEvent: fail })
    const job = await bench.pawl.enqueue(echo, 'fine')
    expect(await bench.finish(job.result())).toMatchObject({ kind: 'succeeded', output: 'fine' })
    await bench.finish(worker.stop())
    const failed = lines.filter(({ fields }) => fields.event === 'hook.failed')
    expect(failed.map(({ fields }) => fields.hook).sort()).toEqual([
      'metrics',
      'onEvent',
      'onEvent',
    ])
  })

  it('later, in a promise, does not end the process', async () => {
    const { lines, logger } = keptLog()
    const onEvent = async () => fail()
    const bench = await EngineBench.open([echo], undefined, { logger, onEvent })
    await bench.work()
    const job = await bench.pawl.enqueue(echo, 'fine')
    expect(await bench.finish(job.result())).toMatchObject({ kind: 'succeeded' })
    expect(lines.some(({ fields }) => fields.event === 'hook.failed')).toBe(true)
  })

  it('may be the logger itself', async () => {
    const logger = { debug: fail, info: fail, warn: fail, error: fail }
    const bench = await EngineBench.open([echo], undefined, { logger, onEvent: fail })
    await bench.work()
    const job = await bench.pawl.enqueue(echo, 'fine')
    expect(await bench.finish(job.result())).toMatchObject({ kind: 'succeeded' })
  })
})
