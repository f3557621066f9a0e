// Each document's own names for the fields of a job.
import { document, hardened, leased, standard, task, viewOf } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { awaken, crash, FINAL, played, policyWith, tiny } from './job-play.ts'

const START = Date.UTC(2026, 0, 1)
const ID = '00000000-0000-7000-8000-000000000001'
const view = ({ lifecycle, job }: JobScript) => viewOf(lifecycle, job)

describe('the view of a job', () => {
  it('of lifecycle hardened has the names of its requirements', () => {
    const script = played(hardened, 'create')
    script.clock.advance(40)
    script.claim()
    expect(view(script)).toEqual({
      job_id: ID,
      status: 'running',
      attempts: 1,
      created_at: START,
      updated_at: START + 40,
    })
  })

  it('of lifecycle leased has the names of its requirements', () => {
    const script = played(leased, 'create')
    script.clock.advance(40)
    script.claim()
    const own = {
      job_id: ID,
      state: 'RUNNING',
      attempt: 1,
      created_at: START,
      updated_at: START + 40,
    }
    expect(view(script)).toEqual(own)
    const input = { to: 'ada' }
    expect(viewOf(leased, script.job, { input })).toEqual({ ...own, payload: input })
  })

  it('of lifecycle document has exactly the fields of its table', () => {
    const script = played(document, 'create')
    const unstarted = {
      jobId: ID,
      state: 'QUEUED',
      createdAt: START,
      startedAt: null,
      completedAt: null,
      retryCount: 0,
      maxRetries: 3,
      lastError: null,
      errorType: null,
    }
    expect(view(script)).toEqual(unstarted)
    script.clock.advance(10)
    script.claim()
    expect(view(script)).toEqual({ ...unstarted, state: 'RUNNING', startedAt: START + 10 })
    script.clock.advance(5)
    script.applyCommand({ kind: 'fail', fence: script.fence, failure: FINAL })
    expect(view(script)).toEqual({
      ...unstarted,
      state: 'FAILED',
      startedAt: START + 10,
      completedAt: START + 15,
      lastError: 'never',
      errorType: 'TERMINAL',
    })
  })
})

describe('the view of a task', () => {
  it('of lifecycle task has the names of its requirements', () => {
    const script = played(task, 'create')
    const unclaimed = {
      id: ID,
      status: 'pending',
      try_count: 0,
      max_tries: 3,
      lease_owner: null,
      lease_timeout: null,
      error: null,
      created_at: START,
      updated_at: START,
    }
    expect(view(script)).toEqual(unclaimed)
    script.clock.advance(10)
    script.claim({ worker: 'w-7', leaseMs: 500 })
    expect(view(script)).toEqual({
      ...unclaimed,
      status: 'running',
      try_count: 1,
      lease_owner: 'w-7',
      lease_timeout: START + 510,
      updated_at: START + 10,
    })
    script.applyCommand({ kind: 'fail', fence: script.fence, failure: FINAL })
    expect(view(script)).toEqual({
      ...unclaimed,
      status: 'error',
      try_count: 1,
      error: 'never',
      updated_at: START + 10,
    })
  })
})

describe('the tries of a task', () => {
  it('are its attempts less those that were given back', () => {
    const script = played(task, 'create', 'lease')
    crash(script)
    script.claim()
    crash(script)
    awaken(script)
    script.claim()
    expect(script.job).toMatchObject({ attempt: 3, releases: 1, crashes: 1 })
    expect(view(script)).toMatchObject({ try_count: 2, max_tries: 3 })
  })

  it('are bounded by the policy of the job where it has one', () => {
    const script = new JobScript(task)
    script.create({ policy: policyWith(task, { crashesMax: 5 }) })
    expect(view(script).max_tries).toBe(6)
  })

  it('end with the lease: a task that is done has no owner and no lease', () => {
    expect(view(played(task, 'create', 'claim', 'commit'))).toMatchObject({
      status: 'done',
      lease_owner: null,
      lease_timeout: null,
    })
  })
})

describe('the view of a job in our own names', () => {
  it('has every field that lifecycles share', () => {
    const script = played(standard, 'create')
    script.clock.advance(10)
    script.claim()
    script.applyCommand({ kind: 'prioritise', priority: 4 })
    script.clock.advance(5)
    script.applyCommand({ kind: 'fail', fence: script.fence, failure: FINAL })
    expect(view(script)).toEqual({
      id: ID,
      type: 'example',
      queue: 'default',
      state: 'failed',
      attempt: 1,
      retryCount: 0,
      maxRetries: 3,
      crashCount: 0,
      maxCrashes: 3,
      releaseCount: 0,
      maxReleases: 100,
      priority: 4,
      runAt: START,
      createdAt: START,
      startedAt: START + 10,
      endedAt: START + 15,
      updatedAt: START + 15,
      outcome: 'failed',
      reason: 'validation',
      lastError: 'never',
      errorType: 'TERMINAL',
    })
  })

  it('serves every lifecycle of a user, with the policy of the job', () => {
    const script = new JobScript(tiny)
    script.create({ policy: policyWith(tiny, { crashesMax: 9 }) })
    expect(view(script)).toMatchObject({
      state: 'open',
      maxCrashes: 9,
      lastError: null,
      errorType: null,
      reason: null,
    })
  })

  it('tells why a parked job is parked', () => {
    expect(view(played(tiny, 'create', 'park'))).toMatchObject({ state: 'open', reason: 'parked' })
  })
})
