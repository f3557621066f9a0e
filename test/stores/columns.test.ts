// The columns of both stores come from one table. What is written out beside it for speed must say
// the same as the table.
import { describe, expect, it } from 'vitest'
import type { Fact } from '../../src/core/job/facts.ts'
import type { Job } from '../../src/core/job/job.ts'
import { LANES } from '../../src/core/job/lanes.ts'
import {
  CHANGING_COLUMNS,
  CLAIM_COLUMNS,
  changingValues,
  claimedRow,
  columnsOf,
  isPlain,
  JOB_COLUMNS,
  RARE_COLUMNS,
  SHARED_FACT_COLUMNS,
  sharedFactValues,
  unpackClaimed,
  valuesOf,
} from '../../src/stores/columns.ts'
import { toJob } from '../../src/stores/rows.ts'

/** A held job of which every field has a value of its own. */
const job: Job = {
  id: '00000000-0000-7000-8000-000000000001',
  type: 'type',
  queue: 'queue',
  lifecycle: 'standard',
  lifecycleVersion: 1,
  tags: ['tag'],
  key: 'key',
  limitKey: 'limit',
  retryOf: '00000000-0000-7000-8000-000000000002',
  timeoutMs: 101,
  deadlineAt: 114,
  policy: { retry: { attempts: 3 } } as unknown as Job['policy'],
  state: 'running',
  seq: 103,
  attempt: 104,
  failures: 105,
  crashes: 106,
  releases: 107,
  priority: 108,
  aheadMs: 115,
  runAt: 109,
  createdAt: 110,
  startedAt: 111,
  endedAt: null,
  updatedAt: 111,
  outcome: null,
  reason: null,
  error: { message: 'error' } as Job['error'],
  blockedReason: null,
  stalled: false,
  execution: { status: 'IN_PROGRESS', claim: 'claim', worker: 'worker', leaseUntil: 112 },
  flow: '00000000-0000-7000-8000-000000000003',
  node: 116,
  links: 117,
}
const row = { job, lane: LANES.held, machine: 113, leaseUntil: 112 }
const lifecycle = { name: 'standard', version: 1 }

describe('the table of columns', () => {
  it('has every column once', () => {
    const names = JOB_COLUMNS.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
  })

  it('gives a row from which the same job is read', () => {
    expect(toJob(columnsOf(row) as never, lifecycle)).toEqual(job)
  })

  it('says what a fact changes as it is written out', () => {
    for (const one of [row, { ...row, lane: LANES.ready }, { ...row, job: bare }]) {
      expect(changingValues(one)).toEqual(valuesOf(CHANGING_COLUMNS, one))
    }
    expect(CHANGING_COLUMNS[0]?.name).toBe('lane')
  })

  it('says what a claim reads as it is written out', () => {
    const values = valuesOf([...CLAIM_COLUMNS, ...RARE_COLUMNS], row)
    const read = unpackClaimed(values)
    const given = { status: 'I', claim: 'claim', worker: 'worker', leaseUntil: 112, now: 111 }
    expect(toJob(claimedRow(read, read, given, 'running'), lifecycle)).toEqual(job)
  })

  it('says what facts have in common as it is written out', () => {
    const named = SHARED_FACT_COLUMNS.map(({ value }) => value(fact))
    expect(sharedFactValues(fact)).toEqual(named)
    const timed = { ...fact, timing: { queueMs: 1, durationMs: 2 } }
    expect(sharedFactValues(timed)).toEqual(named.slice(0, -1))
    expect(SHARED_FACT_COLUMNS.at(-1)?.name).toBe('data')
  })

  it('tells plain jobs from special ones', () => {
    expect(isPlain({ ...row, job: bare })).toBe(true)
    for (const field of SPECIAL) {
      expect(isPlain({ ...row, job: { ...bare, [field]: job[field] } })).toBe(false)
    }
  })
})

const SPECIAL = [
  ...(['key', 'limitKey', 'aheadMs', 'tags', 'retryOf', 'timeoutMs', 'policy'] as const),
  ...(['flow', 'node', 'links'] as const),
]

const bare: Job = {
  ...job,
  tags: [],
  key: null,
  limitKey: null,
  aheadMs: 0,
  retryOf: null,
  timeoutMs: null,
  deadlineAt: null,
  policy: null,
  error: null,
  execution: null,
  flow: null,
  node: null,
  links: 0,
}

const fact: Fact = {
  version: 1,
  jobId: job.id,
  seq: 5,
  at: 6,
  trigger: 'fail',
  from: 'running',
  via: ['failed'],
  to: 'quarantined',
  actor: 'worker',
  note: 'note',
  execution: { attempt: 1, statuses: ['ABORTED'], claim: 'c', worker: 'w', leaseUntil: 7 },
} as unknown as Fact
