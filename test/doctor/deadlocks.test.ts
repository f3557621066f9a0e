// Deadlocks in the sense of R0: what does not get on, and would not by itself. Each is
// told with the right advice once the threshold has passed, not before, and what the doctor can do
// about it leaves a fact with who asked for it and why.
import { createPawl, defineJob } from 'pawl'
import type { Thresholds } from 'pawl/doctor'
import { type Fact, LIFECYCLES, leased } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { Doctor, type Report } from '../../src/doctor/doctor.ts'
import type { Finding } from '../../src/doctor/finding.ts'
import type { Held } from '../../src/stores/contract/store.ts'
import { NOTICE_AGE_MAX_MS } from '../../src/stores/notices.ts'
import { claim, type Examined, enqueue, STORES } from '../stores/examined-stores.ts'

const LEASE_MS = 600_000
const DUE_MS = 30_000
const SILENT_MS = 15_000
const STALLED_MS = 600_000
const ANN = { operator: 'ann', reason: 'nobody takes it up' }
const SIGNED = { actor: 'doctor', operator: 'ann', note: 'nobody takes it up' }

function doctorOf({ store, environment }: Examined, thresholds: Partial<Thresholds> = {}): Doctor {
  return new Doctor({ store, lifecycles: LIFECYCLES, environment, thresholds })
}

async function look(examined: Examined, thresholds?: Partial<Thresholds>): Promise<Report> {
  const before = await dump(examined)
  const report = await doctorOf(examined, thresholds).check({ full: true })
  expect(await dump(examined)).toEqual(before)
  return report
}

/** Everything that a look must not change. */
async function dump({ sql, refColumn }: Examined) {
  return [
    await sql(`SELECT * FROM @jobs ORDER BY ${refColumn}`),
    await sql('SELECT job, seq, kind FROM @ledger ORDER BY job, seq'),
  ]
}

const madeBy = ({ findings }: Report, check: string): Finding[] =>
  findings.filter((finding) => finding.check === check)

/** Somebody works on everything, and says so now. */
async function report({ store }: Examined, id: string, info: object = {}): Promise<void> {
  const all = { types: ['mail'], running: 1, ...info }
  await store.reportWorker({ id, state: 'Idle', info: JSON.stringify(all) })
}

async function beat({ store }: Examined, { ref, job }: Held): Promise<void> {
  const fence = { attempt: job.attempt, claim: job.execution?.claim ?? '' }
  expect(await store.heartbeat([{ ref, fence }], LEASE_MS)).toMatchObject({ lost: [] })
}

/** A job that has committed with one effect. */
async function committed(examined: Examined): Promise<string> {
  const held = await claim(examined, 'a')
  await examined.store.commit(held, (tx) => {
    tx.effect('bill', '{}')
    return '1'
  })
  return held.job.id
}

async function lastFact({ store }: Examined, id: string): Promise<Fact | undefined> {
  return (await store.facts(id)).at(-1)
}

describe.each(STORES)('on $name, a job', ({ open }) => {
  it('whose expired lease was not recovered is reported, and a repair recovers it', async () => {
    const examined = await open()
    const { store, environment } = examined
    const { job } = await claim(examined, 'a')
    environment.advance(LEASE_MS + DUE_MS)
    expect(await look(examined)).toMatchObject({ warnings: 0, repairCount: 0 })
    environment.advance(1)
    const found = await look(examined)
    expect(found).toMatchObject({ ok: false, errors: 0, warnings: 1 })
    expect(found.findings).toContainEqual({
      check: 'held-jobs-have-leases',
      promise: 'P7',
      severity: 'warning',
      subject: `job ${job.id}`,
      what: 'its lease expired 30s ago and has not been recovered',
      evidence: { worker: 'w1', leaseUntil: expect.any(Number), status: 'I' },
      remedy: 'expire the lease',
      advice: 'Start a worker, which recovers expired leases: pawl work --jobs FILE',
    })
    expect(await doctorOf(examined).repair(ANN)).toMatchObject({ repairCount: 1 })
    expect(await store.get(job.id)).toMatchObject({ state: 'retrying', crashes: 1 })
    expect(await lastFact(examined, job.id)).toMatchObject({ trigger: 'expire', ...SIGNED })
    expect(await look(examined)).toMatchObject({ ok: true, repairCount: 0 })
  })

  it('whose worker is gone is a notice while its lease is valid', async () => {
    const examined = await open()
    const held = await claim(examined, 'a')
    const unknown = madeBy(await look(examined), 'held-jobs-have-leases')
    const isUnknown = expect.stringMatching(/w1 has no row/)
    expect(unknown).toMatchObject([{ severity: 'notice', what: isUnknown }])
    await report(examined, 'w1')
    expect(await look(examined)).toMatchObject({ findings: [] })
    examined.environment.advance(SILENT_MS)
    expect(await look(examined)).toMatchObject({ findings: [] })
    examined.environment.advance(1)
    await beat(examined, held)
    const silent = await look(examined)
    const what = expect.stringMatching(/^its worker w1 has stopped reporting; .* in 10m$/)
    expect(silent).toMatchObject({ ok: true, findings: [{ severity: 'notice', what }] })
  })

  it('that waits for approval of its recovery is reported with the command', async () => {
    const examined = await open()
    const { store, environment } = examined
    const careful = defineJob({ name: 'careful', recovery: 'operator', run: () => 1 })
    const pawl = await createPawl({ store, environment, jobs: [careful] })
    const { id } = await pawl.enqueue(careful, null)
    await store.claim({ worker: 'gone', limit: 1, leaseMs: 1000, start: true })
    environment.advance(1000)
    await store.recover(10)
    const found = await look(examined)
    expect(found.findings).toMatchObject([
      {
        check: 'stalled-jobs',
        promise: 'P15',
        severity: 'warning',
        subject: `job ${id}`,
        advice: `pawl job approve ${id} --reason …`,
      },
    ])
    // That is for a person to decide.
    expect(await doctorOf(examined).repair(ANN)).toMatchObject({ repairCount: 0 })
    expect(await store.get(id)).toMatchObject({ stalled: true, state: 'running' })
  })

  it('whose attempt runs for longer than is usual is a notice; how long can be set', async () => {
    const examined = await open()
    const held = await claim(examined, 'a')
    const lookAfter = async (ms: number, thresholds?: Partial<Thresholds>) => {
      examined.environment.advance(ms)
      await beat(examined, held)
      await report(examined, 'w1')
      return (await look(examined, thresholds)).findings
    }
    expect(await lookAfter(STALLED_MS / 2)).toEqual([])
    expect(await lookAfter(STALLED_MS / 2)).toEqual([])
    const [found] = await lookAfter(1)
    expect(found).toMatchObject({
      check: 'stalled-jobs',
      severity: 'notice',
      what: 'its attempt has been running for 10m',
      evidence: { worker: 'w1' },
      advice: expect.stringContaining(`pawl job cancel ${held.job.id} --reason`),
    })
    expect(await lookAfter(1, { stalledMs: 3 * STALLED_MS })).toEqual([])
    expect(await lookAfter(1, { stalledMs: 5000 })).toHaveLength(1)
  })

  it('that is due and still waiting is reported, and a repair makes it ready', async () => {
    const examined = await open()
    const { store, environment } = examined
    const later = defineJob({ name: 'later' })
    const pawl = await createPawl({ store, environment, jobs: [later] })
    const { id } = await pawl.enqueue(later, null, { delay: '1h' })
    environment.advance(3_600_000 + DUE_MS)
    expect(await look(examined)).toMatchObject({ findings: [] })
    environment.advance(1)
    expect((await look(examined)).findings).toMatchObject([
      {
        check: 'due-jobs-move',
        promise: 'P15',
        severity: 'warning',
        subject: `job ${id}`,
        what: 'it has been due for 30s and is still waiting',
        remedy: 'make the job ready',
        advice: 'Start a worker, which makes due jobs ready: pawl work --jobs FILE',
      },
    ])
    expect(await doctorOf(examined).repair(ANN)).toMatchObject({ repairCount: 1 })
    expect(await store.counts()).toMatchObject({ lanes: { ready: 1, waiting: 0 } })
    expect(madeBy(await look(examined), 'due-jobs-move')).toEqual([])
  })

  it('that a clock which was ahead made ready is no finding: its time is waited for', async () => {
    const examined = await open()
    const { store, environment, sql } = examined
    const later = defineJob({ name: 'later', lifecycle: leased })
    const pawl = await createPawl({ store, environment, jobs: [later] })
    const { id } = await pawl.enqueue(later, null, { delay: '1h' })
    // What the clock of another process has done: it took the job for due.
    const [ready] = await sql(`SELECT lane FROM @jobs WHERE id = '${await enqueue(examined, 'a')}'`)
    await sql(`UPDATE @jobs SET lane = ${ready?.lane} WHERE id = '${id}'`)
    const { findings } = await look(examined)
    expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
    const request = { worker: 'w1', types: ['later'], limit: 1, leaseMs: 1000, start: true }
    expect(await store.claim(request)).toEqual([])
  })

  it('that has committed and is not finished is reported, and finished', async () => {
    const examined = await open()
    const { store, environment, sql } = examined
    const id = await committed(examined)
    await sql(`UPDATE @outbox SET state = 'delivered'`)
    environment.advance(DUE_MS)
    expect(await look(examined)).toMatchObject({ findings: [] })
    environment.advance(1)
    expect((await look(examined)).findings).toMatchObject([
      {
        check: 'commits-are-finished',
        promise: 'P10',
        severity: 'error',
        subject: `job ${id}`,
        remedy: 'finish the commit',
      },
    ])
    expect(await doctorOf(examined).repair(ANN)).toMatchObject({ repairCount: 1 })
    expect(await store.get(id)).toMatchObject({ outcome: 'succeeded', attempt: 1 })
    expect(await lastFact(examined, id)).toMatchObject({ trigger: 'done', ...SIGNED })
    expect(await look(examined)).toMatchObject({ ok: true, repairCount: 0 })
  })
})

describe.each(STORES)('on $name, a live worker', ({ open }) => {
  it('that could have a thread for its leases is reported, with what to do', async () => {
    const examined = await open()
    const advice = 'Pass the options of the store to createPawl, not an open store'
    await report(examined, 'w1', { renewal: 'timer', renewalAdvice: advice })
    await report(examined, 'w2', { renewal: 'timer' })
    await report(examined, 'w3', { renewal: 'thread' })
    const found = madeBy(await look(examined), 'leases-outlast-handlers')
    expect(found).toMatchObject([{ severity: 'notice', subject: 'worker w1', advice }])
    examined.environment.advance(SILENT_MS + 1)
    expect(madeBy(await look(examined), 'leases-outlast-handlers')).toEqual([])
  })
})

describe.each(STORES)('on $name, an effect', ({ open }) => {
  it('that no worker delivers is reported when it is overdue', async () => {
    const examined = await open()
    const id = await committed(examined)
    examined.environment.advance(DUE_MS - 1)
    expect(await look(examined)).toMatchObject({ findings: [] })
    examined.environment.advance(1)
    const key = `${id}/bill/1`
    expect((await look(examined)).findings).toMatchObject([
      {
        check: 'effects-move',
        promise: 'P10',
        severity: 'warning',
        subject: `job ${id}`,
        what: `effect ${key} is overdue`,
        evidence: { key, tries: 0, error: null },
        advice: 'Start a worker that has this job type: it delivers effects.',
      },
    ])
    expect(await doctorOf(examined).repair(ANN)).toMatchObject({ repairCount: 0 })
  })

  it('that is parked is reported with its error and the command', async () => {
    const examined = await open()
    const { store } = examined
    const id = await committed(examined)
    const [effect] = await store.claimEffects({ limit: 1, leaseMs: 1000 })
    if (effect === undefined) throw new Error('there is no effect')
    await store.settleEffects([{ kind: 'parked', effect, error: 'no such address' }])
    const key = `${id}/bill/1`
    expect((await look(examined)).findings).toMatchObject([
      {
        check: 'effects-move',
        severity: 'warning',
        what: `effect ${key} is parked`,
        evidence: { key, tries: 1, error: expect.stringContaining('no such address') },
        advice: `pawl effect retry ${key} --reason …`,
      },
    ])
  })
})

describe.each(STORES)('on $name, a notice', ({ open }) => {
  const told = defineJob({ name: 'told', notify: true, run: () => null })

  it('that no process receives is reported when it is overdue, and when it is parked', async () => {
    const examined = await open()
    const { store, environment } = examined
    const pawl = await createPawl({ store, environment, jobs: [told] })
    await (await pawl.enqueue(told, null, { delay: '1h' })).cancel()
    examined.environment.advance(DUE_MS - 1)
    expect(await look(examined)).toMatchObject({ ok: true, findings: [] })
    examined.environment.advance(1)
    const finding = { check: 'notices-are-received', promise: 'P10', severity: 'warning' }
    const overdue = await look(examined)
    expect(overdue).toMatchObject({
      ok: false,
      findings: [{ ...finding, what: expect.stringMatching(/^1 notice is overdue since /) }],
    })
    examined.environment.advance(NOTICE_AGE_MAX_MS)
    await store.recover(10)
    expect(await look(examined)).toMatchObject({
      ok: false,
      findings: [{ ...finding, what: '1 notice is parked' }],
    })
  })
})

describe.each(STORES)('on $name, a queue', ({ open }) => {
  const served = async (examined: Examined, thresholds?: Partial<Thresholds>) => {
    const findings = madeBy(await look(examined, thresholds), 'queues-are-served')
    return findings.map(({ subject, what, advice, severity }) => {
      expect(severity).toBe('warning')
      return { subject, what, advice }
    })
  }

  const NOBODY = {
    subject: 'queue a',
    what: 'it has due jobs, but no live worker serves it',
    advice: 'Start a worker: pawl work --jobs FILE --queue a',
  }

  it('with work that no worker claims is reported, unless it is paused', async () => {
    const examined = await open()
    const { store, environment } = examined
    await enqueue(examined, 'a')
    environment.advance(DUE_MS)
    expect(await served(examined)).toEqual([])
    environment.advance(1)
    expect(await served(examined)).toEqual([NOBODY])
    await report(examined, 'elsewhere', { queues: ['b'] })
    expect(await served(examined)).toEqual([NOBODY])
    await store.pauseQueue('a', { actor: 'operator', operator: 'ann', note: 'wait' })
    expect(await served(examined)).toEqual([])
    await store.resumeQueue('a', { actor: 'operator', operator: 'ann', note: 'go on' })
    await report(examined, 'busy', { queues: ['a'] })
    expect(await served(examined)).toEqual([])
    // Busy or not, who is silent for too long is gone; how long that is can be set.
    environment.advance(SILENT_MS + 1)
    expect(await served(examined)).toEqual([NOBODY])
    expect(await served(examined, { workerMs: 2 * SILENT_MS })).toEqual([])
  })

  it('whose workers do not know a job type is reported, with the type', async () => {
    const examined = await open()
    await enqueue(examined, 'a')
    examined.environment.advance(DUE_MS + 1)
    await report(examined, 'w1', { types: ['post'] })
    await report(examined, 'w2', { types: [] })
    expect(await served(examined)).toEqual([
      {
        subject: 'queue a',
        what: 'jobs of type mail are due, but no live worker of this queue has that type',
        advice: 'Start a worker whose job file defines mail.',
      },
    ])
  })

  it('whose worker is alive and idle but claims nothing is reported, with the worker', async () => {
    const examined = await open()
    await enqueue(examined, 'a')
    examined.environment.advance(DUE_MS + 1)
    await report(examined, 'deaf', { running: 0 })
    await report(examined, 'busy', { running: 1 })
    expect(await served(examined)).toEqual([
      {
        subject: 'worker deaf',
        what: 'it is alive and idle, but does not claim the due jobs of queue a',
        advice: 'Restart the worker.',
      },
    ])
  })
})
