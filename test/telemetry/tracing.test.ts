// Spans of OpenTelemetry, by the real SDK, on both stores: which there are, how they are connected,
// what they say, and what facts keep of them.
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { createPawl, defineJob, type Pawl, type PawlOptions, Terminal } from 'pawl'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { traceOf } from '../../src/core/trace.ts'
import { PLACES } from '../engine/processes/places.ts'
import { idsOf, linksOf, parentOf, startTelemetry } from './otel.ts'

const WAIT = { timeout: 15_000, interval: 10 }
const timeout = 30_000

async function open(options: PawlOptions): Promise<Pawl> {
  const pawl = await createPawl(options)
  onTestFinished(() => pawl.close())
  return pawl
}

describe.each(PLACES)('spans on $name', ({ place }) => {
  it('of one job are connected, from the enqueue to its effect', { timeout }, async () => {
    const { spans, named } = startTelemetry()
    const { store } = await place()
    const seen: (string | undefined)[] = []
    const note = () => seen.push(trace.getActiveSpan()?.spanContext().spanId)
    const child = defineJob({ name: 'child', queue: 'children', run: async () => {} })
    const job = defineJob({
      name: 'traced',
      queue: 'mails',
      effects: {
        mail: async () => {
          note()
          await pawl.enqueue(child, { by: 'effect' })
        },
      },
      run: async ({ step, commit, enqueue }) => {
        note()
        trace.getTracer('own').startSpan('own work').end()
        await step('load', async () => note())
        await enqueue(child, { by: 'handler' })
        return commit(async (tx) => {
          note()
          tx.effect('mail')
          await tx.enqueue(child, { by: 'commit' })
          return 'sent'
        })
      },
    })
    const pawl = await open({ store, jobs: [job, child], tracing: true })
    const outer = trace.getTracer('own').startSpan('request')
    const { context } = await import('@opentelemetry/api')
    const handle = await context.with(trace.setSpan(context.active(), outer), () =>
      pawl.enqueue(job, {}),
    )
    outer.end()
    const worker = await pawl.work({ poll: 10 })
    await vi.waitFor(() => expect(named('process children')).toHaveLength(3), WAIT)
    await worker.stop()

    const [request] = named('request')
    const [send] = named('send mails')
    expect(parentOf(send)).toBe(idsOf(request).spanId)
    expect(send?.kind).toBe(SpanKind.PRODUCER)
    expect(send?.attributes).toMatchObject({
      'messaging.system': 'pawl',
      'messaging.operation.type': 'send',
      'messaging.destination.name': 'mails',
      'messaging.message.id': handle.id,
      'pawl.job.kind': 'traced',
    })
    const [receive] = named('receive mails')
    expect(receive?.kind).toBe(SpanKind.CLIENT)
    expect(linksOf(receive)).toEqual([idsOf(send)])

    // The attempt begins a trace of its own, with a link to the enqueue.
    const [process] = named('process mails')
    expect(process?.kind).toBe(SpanKind.CONSUMER)
    expect(parentOf(process)).toBeUndefined()
    expect(linksOf(process)).toEqual([idsOf(send)])
    expect(process?.attributes).toMatchObject({
      'pawl.attempt': 1,
      'pawl.execution.id': `${handle.id}/1`,
      'pawl.outcome': 'committed',
      'pawl.worker.id': worker.id,
    })
    const [step, commit, own] = ['step load', 'commit mails', 'own work'].map((n) => named(n)[0])
    for (const inner of [step, commit, own]) expect(parentOf(inner)).toBe(idsOf(process).spanId)
    const [effect] = named('effect mail')
    expect(linksOf(effect)).toEqual([{ ...idsOf(process) }])
    expect(seen).toEqual([process, step, commit, effect].map((span) => idsOf(span).spanId))

    // Jobs of the handler, the commit and the effect continue the trace of each.
    const sends = named('send children')
    expect(sends.map(parentOf)).toEqual([process, commit, effect].map((one) => idsOf(one).spanId))
    for (const [i, sent] of sends.entries()) {
      expect(named('process children').map(linksOf)[i]).toHaveLength(1)
      expect(named('process children').flatMap(linksOf)).toContainEqual(idsOf(sent))
    }
    expect(spans().every(({ status }) => status.code === SpanStatusCode.UNSET)).toBe(true)

    // Facts keep the spans in which they were written; the others have ids of their own.
    const facts = await pawl.store.facts(handle.id)
    const ids = facts.map(({ traceId, spanId }) => ({ traceId, spanId }))
    expect(facts.map(({ trigger }) => trigger)).toEqual([
      'create',
      'claim',
      'step',
      'commit',
      'done',
    ])
    const derived = facts.map(({ jobId, seq }) => traceOf({ jobId, seq }))
    const expected = [idsOf(send), derived[1], idsOf(step), idsOf(process), derived[4]]
    expect(ids).toEqual(expected)
  })

  it('of attempts that fail have the error, redacted, and the next attempt', {
    timeout,
  }, async () => {
    const { named } = startTelemetry()
    const { store } = await place()
    const job = defineJob({
      name: 'failing',
      queue: 'q',
      retry: { max: 1, delay: 0 },
      run: async ({ step, attempt }) => {
        if (attempt === 1) await step('part', () => Promise.reject(new Error('secret part')))
        throw new Terminal('secret end')
      },
    })
    const redactError = (text: string) => text.replaceAll('secret', '***')
    const pawl = await open({ store, jobs: [job], tracing: true, redactError })
    const { id } = await pawl.enqueue(job, {})
    const worker = await pawl.work({ poll: 10 })
    await vi.waitFor(() => expect(named('settle q')).toHaveLength(2), WAIT)
    await worker.stop()
    const [first, second] = named('process q')
    const [send] = named('send q')
    expect(linksOf(second)).toEqual([idsOf(send)])
    expect(first?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'Error: *** part' })
    expect(second?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'Terminal: *** end' })
    expect(second?.attributes).toMatchObject({ 'pawl.attempt': 2, 'error.type': 'Terminal' })
    expect(named('step part')[0]?.status.code).toBe(SpanStatusCode.ERROR)
    const said = JSON.stringify([first?.events, second?.events, named('step part')[0]?.events])
    expect(said).toContain('*** part')
    expect(said).not.toContain('secret')
    const settles = named('settle q')
    expect(settles.map(parentOf)).toEqual([idsOf(first).spanId, idsOf(second).spanId])
    const last = (await pawl.store.facts(id)).at(-1)
    expect(last).toMatchObject({ trigger: 'fail', ...idsOf(second) })
  })

  it('continue the trace of the enqueue if `parent` is set', { timeout }, async () => {
    const { named } = startTelemetry()
    const { store } = await place()
    const job = defineJob({ name: 'one', queue: 'q', run: async () => {} })
    const tracing = { parent: true }
    const pawl = await open({ store, jobs: [job], tracing })
    await pawl.enqueueMany(job, [{ input: 1 }, { input: 2 }])
    const worker = await pawl.work({ poll: 10 })
    await vi.waitFor(() => expect(named('process q')).toHaveLength(2), WAIT)
    await worker.stop()
    const [send] = named('send q')
    expect(send?.attributes).toMatchObject({ 'messaging.batch.message_count': 2 })
    for (const process of named('process q')) {
      expect(parentOf(process)).toBe(idsOf(send).spanId)
      expect(idsOf(process).traceId).toBe(idsOf(send).traceId)
      expect(linksOf(process)).toEqual([])
    }
  })

  it('of schedules lead to the jobs of their ticks', { timeout }, async () => {
    const { named } = startTelemetry()
    const { store } = await place()
    const { defineSchedule } = await import('pawl')
    const job = defineJob({ name: 'ticked', queue: 'q', run: async () => {} })
    const schedule = defineSchedule({ name: 'often', job, every: '1s', input: null })
    const pawl = await open({ store, jobs: [job], schedules: [schedule], tracing: true })
    const worker = await pawl.work({ poll: 10 })
    await vi.waitFor(() => expect(named('process q').length).toBeGreaterThan(0), WAIT)
    await worker.stop()
    const [fire] = named('fire schedules')
    expect(linksOf(named('process q')[0])).toEqual([idsOf(fire)])
  })
})

describe('tracing', () => {
  const [{ place }] = PLACES

  it('without an SDK does nothing, and facts have ids of their own', { timeout }, async () => {
    const { store } = await place()
    const job = defineJob({ name: 'one', run: async () => 1 })
    const pawl = await open({ store, jobs: [job], tracing: true })
    const handle = await pawl.enqueue(job, {})
    const worker = await pawl.work({ poll: 10 })
    await handle.result()
    await worker.stop()
    const facts = await pawl.store.facts(handle.id)
    expect(facts.map(({ traceId, spanId }) => ({ traceId, spanId }))).toEqual(
      facts.map(({ jobId, seq }) => traceOf({ jobId, seq })),
    )
    const ids = facts.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`)
    for (const id of ids) expect(id).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
    expect(new Set(ids).size).toBe(facts.length)
  })

  it('goes on without spans if the SDK throws', { timeout }, async () => {
    const { store } = await place()
    const job = defineJob({ name: 'one', run: async ({ step }) => step('a', () => 1) })
    const errors: unknown[] = []
    const logger = { debug() {}, info() {}, warn() {}, error: (line: unknown) => errors.push(line) }
    const startSpan = () => {
      throw new Error('broken')
    }
    const tracerProvider = { getTracer: () => ({ startSpan }) }
    const pawl = await open({ store, jobs: [job], tracing: { tracerProvider }, logger })
    const handle = await pawl.enqueue(job, {})
    const worker = await pawl.work({ poll: 10 })
    expect(await handle.result()).toMatchObject({ output: 1 })
    await worker.stop()
    expect(errors).toContainEqual(
      expect.objectContaining({ event: 'hook.failed', hook: 'tracing' }),
    )
  })

  it('keeps the ids on log lines of the handler', { timeout }, async () => {
    const { named } = startTelemetry()
    const { store } = await place()
    const lines: Record<string, unknown>[] = []
    const line = (fields: Readonly<Record<string, unknown>>) => lines.push(fields)
    const logger = { debug() {}, info: line, warn() {}, error() {} }
    const job = defineJob({ name: 'one', queue: 'q', run: async ({ log }) => log.info({}, 'hi') })
    const pawl = await open({ store, jobs: [job], tracing: true, logger })
    const handle = await pawl.enqueue(job, {})
    const worker = await pawl.work({ poll: 10 })
    await handle.result()
    await worker.stop()
    const { traceId, spanId } = idsOf(named('process q')[0])
    expect(lines).toContainEqual(
      expect.objectContaining({ job_id: handle.id, trace_id: traceId, span_id: spanId }),
    )
  })

  it.each([
    { tracing: 'yes' },
    { tracing: { parents: true } },
    { tracing: { parent: 1 } },
    { tracing: { tracerProvider: 1 } },
  ])('refuses the option %j', async (options) => {
    const asked = { store: 'sqlite::memory:', ...options } as unknown as PawlOptions
    await expect(createPawl(asked)).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
  })

  it('says what to install if the package is missing', async () => {
    vi.doMock('@opentelemetry/api', () => {
      throw new Error('Cannot find package')
    })
    onTestFinished(() => {
      vi.doUnmock('@opentelemetry/api')
    })
    const opening = createPawl({ store: 'sqlite::memory:', tracing: true })
    await expect(opening).rejects.toMatchObject({ code: 'E_DRIVER_MISSING' })
  })
})
