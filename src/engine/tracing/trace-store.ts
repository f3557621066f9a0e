/**
 * Wraps a store so that its calls become spans, and so that facts keep the ids of the spans in
 * which they are written. Only a process with tracing has this layer, and only it reads the spans
 * that enqueued and committed jobs: one read for each claim.
 */
import type { Clock } from '../../core/ports.ts'
import { contextIn, type TraceContext } from '../../core/trace.ts'
import type { FlowItem, FlowTables } from '../../stores/contract/flows.ts'
import { CLIENT } from '../../stores/contract/requester.ts'
import type { ScheduleTables } from '../../stores/contract/schedules.ts'
import type {
  Answer,
  Held,
  Requester,
  Settlement,
  Store,
  TracedTrigger,
} from '../../stores/contract/store.ts'
import { wrapStore } from '../../stores/wrap-store.ts'
import { fireSpan, receiveSpan, sendSpan, settleSpan } from './spans.ts'
import { type ActiveSpan, describeError, type Tracer } from './tracer.ts'

/** Returns the store with spans. */
export function traceStore(store: Store, tracer: Tracer, clock: Clock): Store {
  const received = (held: readonly Held[], startedAt: number) =>
    noteReceived({ store, tracer, clock }, held, startedAt)
  const traced: Partial<Store> = {
    enqueue(items, options = {}) {
      const { requester = CLIENT } = options
      const start = sendSpan(items, contextIn(requester))
      return tracer.during(start, async (span) => {
        const by = { ...requester, ...span.trace }
        const results = await store.enqueue(items, { ...options, requester: by })
        const refused = results.find((one) => one.kind === 'rejected')
        if (refused !== undefined) span.fail(describeError(refused.error))
        return results
      })
    },
    async claim(request) {
      const startedAt = clock.now()
      return received(await store.claim(request), startedAt)
    },
    async settle(settlements, next) {
      const spans = settlements.map((one) => startSettling(tracer, one))
      const startedAt = clock.now()
      try {
        const { answers, claimed } = await store.settle(settlements, next)
        for (const [i, span] of spans.entries()) noteAnswer(span, answers[i])
        return { answers, claimed: await received(claimed, startedAt) }
      } catch (error) {
        for (const span of spans) span?.fail(describeError(error))
        throw error
      } finally {
        for (const span of spans) span?.end()
      }
    },
    async claimEffects(request) {
      const effects = await store.claimEffects(request)
      const ids = [...new Set(effects.map(({ jobId }) => jobId))]
      const traces = await tracesOf(store, ids, 'commit')
      return effects.map((effect) => {
        const trace = traces.get(effect.jobId)
        return trace === undefined ? effect : { ...effect, trace }
      })
    },
    applyCommand: (ids, command, requester, seqs) =>
      store.applyCommand(ids, command, inSpan(tracer, requester), seqs),
    cancel: (ids, requester, seqs) => store.cancel(ids, inSpan(tracer, requester), seqs),
    schedules: traceSchedules(store.schedules, tracer),
    flows: traceFlows(store.flows, tracer),
  }
  return wrapStore(store, traced)
}

/** The requester, with the span in which the caller runs. */
function inSpan(tracer: Tracer, requester: Requester): Requester {
  return requester.traceId === undefined ? { ...requester, ...tracer.active() } : requester
}

/** A step has a span of its own, in which it ran. */
function startSettling(tracer: Tracer, settlement: Settlement): ActiveSpan | undefined {
  const { trace, command } = settlement
  if (trace === undefined || command.kind === 'step') return undefined
  return tracer.start(settleSpan(settlement, trace))
}

function noteAnswer(span: ActiveSpan | undefined, answer: Answer | undefined): void {
  if (answer?.kind === 'rejected') span?.fail(describeError(answer.error))
}

interface Receiving {
  readonly store: Store
  readonly tracer: Tracer
  readonly clock: Clock
}

/** Returns the jobs with the spans that enqueued them. */
async function noteReceived(
  { store, tracer, clock }: Receiving,
  held: readonly Held[],
  startedAt: number,
): Promise<Held[]> {
  if (held.length === 0) return []
  const endedAt = clock.now()
  const ids = held.map(({ job }) => job.id)
  const traces = await tracesOf(store, ids, 'create')
  tracer.start(receiveSpan(held, [...traces.values()], startedAt)).end(endedAt)
  return held.map((one) => {
    const trace = traces.get(one.job.id)
    return trace === undefined ? one : { ...one, trace }
  })
}

/** If the spans cannot be read, the work goes on without them. */
function tracesOf(
  store: Store,
  ids: readonly string[],
  of: TracedTrigger,
): Promise<ReadonlyMap<string, TraceContext>> {
  return store.traces(ids, of).catch(() => new Map())
}

/** A firing without jobs has no span. */
function traceSchedules(schedules: ScheduleTables, tracer: Tracer): ScheduleTables {
  const traced: Partial<ScheduleTables> = {
    async fire(limit, ticksOf) {
      const span = tracer.start(fireSpan())
      const firing = await schedules.fire(limit, ticksOf, span.trace)
      if (firing.jobs.length > 0) {
        span.set({ 'messaging.batch.message_count': firing.jobs.length })
        span.end()
      }
      return firing
    },
    run: (name, requester) => schedules.run(name, inSpan(tracer, requester)),
  }
  return withOwn(schedules, traced)
}

/** The jobs of a flow, or members of a batch, are one span; children keep that of their parent. */
function traceFlows(flows: FlowTables, tracer: Tracer): FlowTables {
  const during = <T>(
    items: readonly FlowItem[],
    requester: Requester = CLIENT,
    work: (by: Requester) => Promise<T>,
  ) => {
    const sent = items.map((item) => ({ ...item, command: { ...item.command, jobId: '' } }))
    const start = sendSpan(sent, contextIn(requester))
    return tracer.during(start, (span) => work({ ...requester, ...span.trace }))
  }
  const traced: Partial<FlowTables> = {
    create: (flow, options = {}) =>
      during(
        flow.nodes.map(({ item }) => item),
        options.requester,
        (requester) => flows.create(flow, { ...options, requester }),
      ),
    add: (id, members, options = {}) =>
      during(members, options.requester, (requester) =>
        flows.add(id, members, { ...options, requester }),
      ),
  }
  return withOwn(flows, traced)
}

/** The tables with some functions replaced. */
function withOwn<T extends object>(tables: T, own: Partial<T>): T {
  return new Proxy(tables, {
    get(target, name) {
      const replaced = own[name as keyof T]
      if (replaced !== undefined) return replaced
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
