// The fold of facts into a job, and the damage that it refuses to fold.
import type { Job } from 'pawl'
import { type ExecutionStatus, evolve, type Fact, fold, LedgerBroken, standard } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { awaken, played } from './job-play.ts'

const START = Date.UTC(2026, 0, 1)

/** Why the fold refuses these facts, with the number of the fact; nothing where it does not. */
function refusal(facts: readonly Fact[]): string | undefined {
  try {
    fold(facts)
    return undefined
  } catch (error) {
    if (!(error instanceof LedgerBroken)) throw error
    return `${error.details.seq}: ${error.details.why}`
  }
}

/** Create, claim, start, and a commit with effects: seq 1 to 4. */
function ledger(): Fact[] {
  const script = played(standard, 'create', 'lease')
  script.applyCommand({ kind: 'start', fence: script.fence })
  script.applyCommand({ kind: 'commit', fence: script.fence, effects: 1 })
  return script.facts
}

/** The ledger with one fact changed, by its number. */
function damaged(seq: number, fields: Partial<Fact>): Fact[] {
  return ledger().map((fact) => (fact.seq === seq ? { ...fact, ...fields } : fact))
}

describe('the fold', () => {
  it('of nothing is nothing', () => {
    expect(fold([])).toBeNull()
  })

  it('of a creation is a new job with nothing on its counters', () => {
    const [created] = ledger()
    expect(created && evolve(null, created)).toEqual({
      id: '00000000-0000-7000-8000-000000000001',
      type: 'example',
      queue: 'default',
      lifecycle: 'standard',
      lifecycleVersion: 2,
      tags: [],
      key: null,
      limitKey: null,
      retryOf: null,
      timeoutMs: null,
      deadlineAt: null,
      policy: null,
      state: 'queued',
      seq: 1,
      attempt: 0,
      failures: 0,
      crashes: 0,
      releases: 0,
      priority: 0,
      aheadMs: 0,
      runAt: START,
      createdAt: START,
      startedAt: null,
      endedAt: null,
      updatedAt: START,
      outcome: null,
      reason: null,
      error: null,
      blockedReason: null,
      stalled: false,
      execution: null,
      flow: null,
      node: null,
      links: 0,
    } satisfies Job)
  })
})

describe('the fold of one fact more', () => {
  it('knows no lifecycle: a fact says all that it changed', () => {
    const [created] = ledger()
    const moved: Fact = {
      version: 1,
      jobId: created?.jobId ?? '',
      seq: 2,
      at: START + 9,
      trigger: 'force',
      from: 'queued',
      to: 'nowhere',
      actor: 'operator',
      outcome: 'cancelled',
      runAt: null,
      priority: 8,
      aheadMs: 60_000,
      error: { message: 'm', kind: 'k', type: 'TERMINAL' },
      blockedReason: 'b',
      stalled: true,
      reason: 'r',
    }
    expect(created && fold([created, moved])).toMatchObject({
      state: 'nowhere',
      seq: 2,
      updatedAt: START + 9,
      endedAt: START + 9,
      outcome: 'cancelled',
      runAt: null,
      priority: 8,
      aheadMs: 60_000,
      error: { message: 'm', kind: 'k', type: 'TERMINAL' },
      blockedReason: 'b',
      stalled: true,
      reason: 'r',
      createdAt: START,
    })
  })

  it('counts each budget by what the facts spent', () => {
    const [created] = ledger()
    const note = (seq: number, fields: Partial<Fact>): Fact => ({
      version: 1,
      jobId: created?.jobId ?? '',
      seq,
      at: START,
      trigger: 'prioritise',
      from: 'queued',
      to: 'queued',
      actor: 'client',
      ...fields,
    })
    const facts = [
      ...(created ? [created] : []),
      note(2, { spends: 'failure' }),
      note(3, { spends: 'crash' }),
      note(4, { spends: 'release' }),
      note(5, { spends: 'failure' }),
    ]
    expect(fold(facts)).toMatchObject({ failures: 2, crashes: 1, releases: 1 })
    const reset = [...facts, note(6, { resets: true })]
    expect(fold(reset)).toMatchObject({ failures: 0, crashes: 0, releases: 1 })
  })
})

describe('the fold of a longer life', () => {
  it('remembers the start of the latest attempt', () => {
    const script = played(standard, 'create', 'claim', 'retry')
    expect(script.job.startedAt).toBe(START)
    awaken(script)
    script.claim({ start: false })
    const leasedAt = script.clock.now()
    expect(script.job.startedAt).toBe(leasedAt)
    script.clock.advance(3)
    script.applyCommand({ kind: 'start', fence: script.fence })
    expect(script.job.startedAt).toBe(leasedAt + 3)
    script.applyCommand({ kind: 'commit', fence: script.fence })
    expect(script.job.startedAt).toBe(leasedAt + 3)
  })

  it('forgets the reason when the job moves, and keeps it when it does not', () => {
    const script = played(standard, 'create', 'claim', 'retry')
    expect(script.job.reason).toBe('transient')
    script.applyCommand({ kind: 'prioritise', priority: 3 })
    expect(script.job.reason).toBe('transient')
    awaken(script)
    expect(script.job.reason).toBeNull()
  })
})

describe('the fold refuses', () => {
  it('nothing in an undamaged ledger', () => {
    expect(refusal(ledger())).toBeUndefined()
  })

  it('a format that it does not know', () => {
    const version = 2 as unknown as 1
    expect(refusal(damaged(1, { version }))).toBe('1: unknown version 2')
    expect(refusal(damaged(3, { version }))).toBe('3: unknown version 2')
  })

  it('a ledger without its beginning', () => {
    expect(refusal(ledger().slice(1))).toBe('2: the first fact is missing')
  })

  it('a first fact that creates nothing', () => {
    const [{ created: _, ...first } = {} as Fact, ...rest] = ledger()
    expect(refusal([first, ...rest])).toBe('1: the first fact does not create the job')
  })

  it('a first fact that starts in a state, since only nothing comes before a creation', () => {
    expect(refusal(damaged(1, { from: 'queued' }))).toMatch(/^1: /)
  })

  it('a second creation', () => {
    const [first] = ledger()
    expect(refusal(damaged(2, first?.created ? { created: first.created } : {}))).toBe(
      '2: the job is created a second time',
    )
  })

  it('a fact of another job', () => {
    const jobId = '00000000-0000-7000-8000-0000000000ff'
    expect(refusal(damaged(3, { jobId }))).toBe(
      '3: it does not belong to job 00000000-0000-7000-8000-000000000001',
    )
  })

  it('a gap, a repeat and a swap', () => {
    const [a, b, c, d] = ledger() as [Fact, Fact, Fact, Fact]
    expect(refusal([a, b, d])).toBe('4: it does not follow 2')
    expect(refusal([a, b, b, c])).toBe('2: it does not follow 2')
    expect(refusal([a, c, b, d])).toBe('3: it does not follow 1')
  })

  it('a fact that starts elsewhere than the one before ended', () => {
    expect(refusal(damaged(2, { from: 'retrying' }))).toBe(
      '2: it starts in retrying, not in queued',
    )
    expect(refusal(damaged(2, { from: null }))).toBe('2: it starts in null, not in queued')
  })
})

describe('the fold refuses an attempt', () => {
  const change = (attempt: number, ...statuses: ExecutionStatus[]) => ({
    execution: { attempt, statuses, claim: 'c', worker: 'w', leaseUntil: START },
  })

  it('with a number that is not the next', () => {
    expect(refusal(damaged(2, change(2, 'LEASED')))).toBe('2: it is of attempt 2, not 1')
    expect(refusal(damaged(2, change(0, 'LEASED')))).toBe('2: it is of attempt 0, not 1')
  })

  it('that goes on under another number', () => {
    expect(refusal(damaged(3, change(2, 'IN_PROGRESS')))).toBe('3: it is of attempt 2, not 1')
  })

  it('that opens while another is open', () => {
    expect(refusal(damaged(3, change(2, 'LEASED')))).toBe('3: an attempt is already open')
  })

  it('that was never opened', () => {
    expect(refusal(damaged(2, change(0, 'IN_PROGRESS')))).toBe('2: no attempt is open')
  })

  it('that jumps', () => {
    expect(refusal(damaged(3, change(1, 'COMMITTED')))).toBe(
      '3: an attempt cannot go from LEASED to COMMITTED',
    )
    expect(refusal(damaged(2, change(1, 'LEASED', 'DONE')))).toBe(
      '2: an attempt cannot go from LEASED to DONE',
    )
    expect(refusal(damaged(4, change(1, 'COMMITTED', 'ABORTED')))).toBe(
      '4: an attempt cannot go from COMMITTED to ABORTED',
    )
    expect(refusal(damaged(3, change(1, 'IN_PROGRESS', 'IN_PROGRESS')))).toBe(
      '3: an attempt cannot go from IN_PROGRESS to IN_PROGRESS',
    )
  })

  it('that a creation has already, since a creation opens none', () => {
    expect(refusal(damaged(1, change(1, 'LEASED')))).toMatch(/^1: /)
    expect(refusal(damaged(1, change(1, 'DONE')))).toMatch(/^1: /)
  })

  it('that is open without a claim, a worker or a lease', () => {
    const [, claim] = ledger()
    for (const lost of ['claim', 'worker', 'leaseUntil'] as const) {
      const { [lost]: _, ...execution } = claim?.execution ?? { attempt: 1, statuses: [] }
      expect(refusal(damaged(2, { execution })), lost).toMatch(/^2: /)
    }
  })

  it('that enters no status at all', () => {
    expect(refusal(damaged(3, change(1)))).toMatch(/^3: /)
  })
})
