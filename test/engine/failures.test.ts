// A failure can be diagnosed: from the ledger, the log, the events, and by the user's own hooks.
import { RetryAfter, Terminal } from 'pawl'
import { executionsOf } from 'pawl/rules'
import type { FailureInfo } from 'pawl/telemetry'
import { describe, expect, it } from 'vitest'
import { defineJob } from '../../src/engine/define-job.ts'
import { EngineBench } from './bench.ts'
import { keptLog } from './logbook.ts'

class Declined extends Error {
  override name = 'Declined'
  readonly code = 'E_CARD'
}

function thrower(make: (attempt: number) => unknown, max = 1) {
  return defineJob({
    name: 'pay',
    retry: { max, delay: '1s' },
    run: ({ attempt }) => {
      throw make(attempt)
    },
  })
}

/** Runs one job to its end, and returns everything that was said about it. */
async function play(job: ReturnType<typeof thrower>, redactError?: (text: string) => string) {
  const { lines, logger } = keptLog()
  const errors: [unknown, FailureInfo][] = []
  const onError = (error: unknown, failure: FailureInfo) => errors.push([error, failure])
  const options = { logger, onError, ...(redactError && { redactError }) }
  const bench = await EngineBench.open([job], undefined, options)
  await bench.work({ id: 'w1' })
  const handle = await bench.pawl.enqueue(job, null)
  const outcome = await bench.finish(handle.result())
  const facts = await bench.store.facts(handle.id)
  const said = lines.filter(({ fields }) => /^job\.(retried|failed)$/.test(String(fields.event)))
  return { bench, outcome, facts, said, errors, id: handle.id }
}

describe('a handler that throws', () => {
  it('leaves name, code, stack and causes of each attempt in the ledger', async () => {
    const cause = Object.assign(new Error('connect refused'), { code: 'ECONNREFUSED' })
    const { facts, outcome } = await play(thrower(() => new Declined('no', { cause })))
    const [first, second] = executionsOf(facts)
    for (const execution of [first, second]) {
      expect(execution?.thrown).toMatchObject({
        name: 'Declined',
        message: 'no',
        code: 'E_CARD',
        stack: expect.stringContaining('failures.test.ts'),
        cause: { message: 'connect refused', code: 'ECONNREFUSED' },
      })
    }
    const known = { name: 'Declined', code: 'E_CARD', message: 'Declined: no' }
    expect(outcome).toMatchObject({ kind: 'parked', error: known })
    expect(first?.error?.fingerprint).toBe(second?.error?.fingerprint)
  })

  it('is logged once as a warning for each retry and once as an error at the end', async () => {
    const cause = Object.assign(new Error('connect refused'), { code: 'ECONNREFUSED' })
    const { said, id, facts } = await play(thrower(() => new Declined('no', { cause })))
    expect(said.map(({ level }) => level)).toEqual(['warn', 'error'])
    const own = { job_id: id, kind: 'pay', worker_id: 'w1', code: 'E_CARD' }
    expect(said[0]?.fields).toMatchObject({
      ...own,
      attempt: 1,
      retry_at: facts.find(({ trigger }) => trigger === 'retry')?.runAt,
      error: 'Declined: no (E_CARD) ← Error: connect refused (ECONNREFUSED)',
      stack: expect.stringContaining('failures.test.ts'),
    })
    expect(said[1]?.fields).toMatchObject({ ...own, attempt: 2, state: 'quarantined' })
    expect(said[1]?.msg).toBe('Attempt 2 failed and the job is parked: Declined: no')
    expect(said[1]?.fields).not.toHaveProperty('retry_at')
  })

  it('hands the very error to onError, after it is recorded', async () => {
    const thrown: unknown[] = []
    const job = thrower(() => {
      const error = new Terminal('no such customer', 'validation')
      thrown.push(error)
      return error
    })
    const { errors, id, outcome } = await play(job)
    expect(errors.map(([error]) => error)).toEqual(thrown)
    expect(errors[0]?.[0]).toBe(thrown[0])
    const fingerprint = (outcome as { error?: { fingerprint?: string } }).error?.fingerprint
    expect(errors[0]?.[1]).toEqual({
      kind: 'job',
      jobId: id,
      jobType: 'pay',
      worker: 'w1',
      attempt: 1,
      retryAt: null,
      fingerprint,
    })
  })

  it('shows a value that is no error as it is', async () => {
    const { outcome, errors } = await play(thrower(() => ({ status: 500, body: 'down' }), 0))
    expect(outcome).toMatchObject({ error: { message: '{"status":500,"body":"down"}' } })
    expect(errors).toMatchObject([[{ status: 500 }, { retryAt: null }]])
  })

  it('has its texts redacted everywhere but in onError', async () => {
    const job = thrower(() => new Error('token tok_1', { cause: new Error('tok_2') }), 0)
    const redact = (text: string) => text.replaceAll(/tok_\d/g, '(token)')
    const { bench, facts, said, errors, outcome } = await play(job, redact)
    expect(JSON.stringify([facts, said, outcome])).not.toContain('tok_')
    const failed = bench.events.find(({ type }) => type === 'failed')
    expect(JSON.stringify({ ...failed, original: undefined })).not.toContain('tok_')
    expect(String(errors[0]?.[0])).toBe('Error: token tok_1')
  })

  it.each<[string, () => string]>([
    [
      'throws',
      () => {
        throw new Error('broken')
      },
    ],
    ['returns no text', () => 5 as unknown as string],
  ])('is recorded without its texts if redactError %s', async (_how, redact) => {
    const { outcome } = await play(
      thrower(() => new Error('tok_1'), 0),
      redact,
    )
    const message = '(withheld: redactError failed)'
    expect(outcome).toMatchObject({ kind: 'parked', error: { message } })
  })

  it('is recorded although onError and the logger throw', async () => {
    const broken = () => {
      throw new Error('broken')
    }
    const logger = { debug: broken, info: broken, warn: broken, error: broken }
    const job = thrower(() => new Error('x'), 0)
    const bench = await EngineBench.open([job], undefined, { logger, onError: broken })
    await bench.work()
    const outcome = await bench.finish((await bench.pawl.enqueue(job, null)).result())
    expect(outcome.kind).toBe('parked')
  })

  it('that asks to be retried after a duration is retried then', async () => {
    const job = thrower((n) => (n === 1 ? new RetryAfter('30s') : new Error('x')))
    const { facts } = await play(job)
    const retry = facts.find(({ trigger }) => trigger === 'retry')
    expect((retry?.runAt ?? 0) - (retry?.at ?? 0)).toBe(30_000)
  })
})

describe('a time-out', () => {
  it('is logged and recorded with the name and the code of its error', async () => {
    const { lines, logger } = keptLog()
    const job = defineJob({
      name: 'slow',
      timeout: '1s',
      retry: { max: 0 },
      run: () => new Promise<void>(() => {}),
    })
    const bench = await EngineBench.open([job], undefined, { logger })
    await bench.work()
    const outcome = await bench.finish((await bench.pawl.enqueue(job, null)).result())
    const error = { kind: 'timeout', name: 'AttemptTimeout', code: 'E_ATTEMPT_TIMEOUT' }
    expect(outcome).toMatchObject({ error })
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: 'error',
        fields: expect.objectContaining({ event: 'job.failed', code: 'E_ATTEMPT_TIMEOUT' }),
      }),
    )
  })
})

describe('the delivery of an effect that fails', () => {
  it('is logged with its causes and its next try, and handed to onError', async () => {
    const { lines, logger } = keptLog()
    const errors: [unknown, FailureInfo][] = []
    const cause = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
    const failed = new TypeError('fetch failed', { cause })
    const job = defineJob({
      name: 'order',
      effects: {
        mail: {
          retry: { max: 1, delay: '1s', backoff: 'fixed' },
          deliver: () => {
            throw failed
          },
        },
      },
      run: ({ commit }) => commit((tx) => tx.effect('mail')),
    })
    const bench = await EngineBench.open([job], undefined, {
      logger,
      onError: (error, info) => errors.push([error, info]),
    })
    await bench.work()
    const handle = await bench.pawl.enqueue(job, null)
    await bench.finish(handle.result())
    const text = 'TypeError: fetch failed ← Error: refused (ECONNREFUSED)'
    await bench.until(() => errors.length === 2)
    expect(errors.map(([error]) => error)).toEqual([failed, failed])
    const common = { kind: 'effect', jobId: handle.id, jobType: 'order', subject: 'mail' }
    expect(errors[0]?.[1]).toMatchObject({ ...common, attempt: 1, retryAt: expect.any(Number) })
    expect(errors[1]?.[1]).toMatchObject({ ...common, attempt: 2, retryAt: null })
    const said = lines.filter(({ fields }) => String(fields.event).startsWith('effect.'))
    expect(said.map(({ level }) => level)).toEqual(['warn', 'error'])
    expect(said[0]?.fields).toMatchObject({ error: text, stack: expect.any(String) })
    const { items } = await bench.store.listEffects({ jobId: handle.id }, { limit: 1 })
    expect(items).toMatchObject([{ state: 'parked', error: text }])
  })
})

describe('a job past its deadline', () => {
  it('is ended without starting its handler', async () => {
    let starts = 0
    const job = defineJob({
      name: 'late',
      run: () => {
        starts++
      },
    })
    const bench = await EngineBench.open([job])
    const deadline = new Date(bench.store.now() + 1000)
    const handle = await bench.pawl.enqueue(job, null, { deadline })
    await bench.pass(1000)
    await bench.work()
    const outcome = await bench.finish(handle.result())
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'deadline' })
    expect(starts).toBe(0)
    const [execution] = executionsOf(await bench.store.facts(handle.id))
    expect(execution).toMatchObject({ startedAt: null, status: 'ABORTED' })
  })

  it('is not committed, though its handler returns', async () => {
    const bench = await EngineBench.open([])
    const job = defineJob({
      name: 'late',
      run: () => {
        // The handler blocks the thread, so no timer can abort it.
        bench.environment.clock.advance(2000)
        return 'done'
      },
    })
    const other = await EngineBench.openOn(bench, [job])
    await other.work()
    const deadline = new Date(bench.store.now() + 1000)
    const handle = await other.pawl.enqueue(job, null, { deadline })
    const outcome = await other.finish(handle.result())
    expect(outcome).toMatchObject({
      kind: 'failed',
      reason: 'deadline',
      error: { kind: 'deadline' },
    })
    const facts = await bench.store.facts(handle.id)
    expect(facts.some(({ trigger }) => trigger === 'commit')).toBe(false)
  })
})

describe('a handler that snoozes', () => {
  it('runs again later, and nothing counts as a failure', async () => {
    const { lines, logger } = keptLog()
    const job = defineJob({
      name: 'poll',
      retry: { max: 0 },
      run: ({ attempt, snooze }) => {
        if (attempt < 4) snooze('10s')
        return attempt
      },
    })
    const bench = await EngineBench.open([job], undefined, { logger })
    await bench.work()
    const start = bench.store.now()
    const handle = await bench.pawl.enqueue(job, null)
    const outcome = await bench.finish(handle.result())
    expect(outcome).toMatchObject({ kind: 'succeeded', output: 4 })
    expect(outcome.job).toMatchObject({ failures: 0, crashes: 0, releases: 0, error: null })
    expect(bench.store.now() - start).toBeGreaterThanOrEqual(30_000)
    expect(lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([])
  })
})
