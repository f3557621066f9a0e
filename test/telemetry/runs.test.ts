// Spans and measurements of runs: how they are connected, and what events keep of them.
import { context, SpanStatusCode, trace } from '@opentelemetry/api'
import type { RunContext } from 'pawl/runs'
import { PrometheusMetrics } from 'pawl/telemetry'
import { describe, expect, it } from 'vitest'
import { eventsOf, freshFolder, freshRuns, outcomeOf, releaseOf } from '../runs/bench.ts'
import { idsOf, parentOf, startTelemetry } from './otel.ts'

describe('a run with tracing', () => {
  it('is a span, with a span for each node and work item, whose ids its events have', async () => {
    const { named, spans } = startTelemetry()
    const seen: (string | undefined)[] = []
    const build = (run: RunContext) =>
      run.work('compile', {}, () => {
        seen.push(trace.getActiveSpan()?.spanContext().spanId)
        return 1
      })
    const runs = await freshRuns({ tracing: true })
    const request = trace.getTracer('own').startSpan('request')
    await context.with(trace.setSpan(context.active(), request), () =>
      outcomeOf(runs, releaseOf({ build })),
    )
    const [run] = spans().filter(({ name }) => name.startsWith('run '))
    const [node] = named('node build')
    const [item] = named('work compile')
    expect(parentOf(run)).toBe(request.spanContext().spanId)
    expect(parentOf(node)).toBe(idsOf(run).spanId)
    expect(parentOf(item)).toBe(idsOf(node).spanId)
    expect(seen).toEqual([idsOf(item).spanId])
    expect(run?.attributes).toMatchObject({ 'pawl.run.id': 'r1', 'pawl.outcome': 'done' })
    const events = await eventsOf(runs)
    expect(new Set(events.map(({ trace_id }) => trace_id))).toEqual(new Set([idsOf(run).traceId]))
    const ofItem = events.filter(({ type }) => type.startsWith('WORK_ITEM'))
    expect(new Set(ofItem.map(({ span_id }) => span_id))).toEqual(new Set([idsOf(item).spanId]))
    for (const { span_id } of events) expect(span_id).toMatch(/^[0-9a-f]{16}$/)
  })

  it('stays in its trace when it is resumed, and says what stopped it', async () => {
    const { spans, named } = startTelemetry()
    let isBroken = true
    const build = async () => {
      if (isBroken) throw new Error('no disk')
    }
    const definition = releaseOf({ build })
    const runs = await freshRuns({ tracing: true, folder: freshFolder() })
    expect(await outcomeOf(runs, definition)).toMatchObject({ kind: 'stopped' })
    isBroken = false
    expect(await (await runs.resume('r1')).result()).toMatchObject({ kind: 'done' })
    const [first, second] = spans().filter(({ name }) => name.startsWith('run '))
    expect(first?.status).toMatchObject({ code: SpanStatusCode.ERROR, message: 'no disk' })
    expect(named('node build')[0]?.status.code).toBe(SpanStatusCode.ERROR)
    expect(second?.status.code).toBe(SpanStatusCode.UNSET)
    expect(idsOf(second).traceId).toBe(idsOf(first).traceId)
    const events = await eventsOf(runs)
    expect(new Set(events.map(({ trace_id }) => trace_id)).size).toBe(1)
  })
})

it('events of runs and refused transitions are counted', async () => {
  const metrics = new PrometheusMetrics()
  const runs = await freshRuns({ metrics })
  await outcomeOf(runs, releaseOf({}))
  const recorded = new Map<string, number>()
  for (const { type } of await eventsOf(runs)) recorded.set(type, (recorded.get(type) ?? 0) + 1)
  expect(recorded.get('RUN_CREATED')).toBe(1)
  const counted = metrics.text().matchAll(/pawl_run_events_total\{type="(\w+)"\} (\d+)\n/g)
  expect(new Map([...counted].map(([, type, n]) => [type, Number(n)]))).toEqual(recorded)
})
