/**
 * The authors of events, with their traces. All events of a run belong to one trace, and each piece
 * of work is a span of it. A run that is resumed stays in its trace.
 *
 * With tracing, the work of this process on a run is a span of OpenTelemetry, each node and each
 * work item is a span inside it, and the events of a work item have the ids of its span.
 */
import type { IdSource } from '../core/ports.ts'
import type { RunEvent } from '../core/run/events.ts'
import { contextIn, type TraceContext } from '../core/trace.ts'
import { nodeSpan, runSpan, workSpan } from '../engine/tracing/spans.ts'
import {
  type ActiveSpan,
  describeError,
  type SpanStart,
  type Tracer,
} from '../engine/tracing/tracer.ts'
import type { Author } from './journal/journal.ts'
import type { RunOutcome } from './orchestrator.ts'

export interface AuthorParts {
  readonly ids: IdSource
  /** The name of this process in events. */
  readonly worker: string
  readonly tracer: Tracer | undefined
}

/** Makes the author of the next piece of work. */
export interface NewAuthor {
  (): Author
  /** The spans of the run; absent without tracing. */
  readonly spans?: RunSpans
}

/** Makes authors for one run. `note` takes the trace from the first event. */
export function authorsOf(parts: AuthorParts): {
  note: (event: RunEvent) => void
  newAuthor: NewAuthor
} {
  const { ids, worker, tracer } = parts
  const trace: RunTrace = { traceId: ids.next().replaceAll('-', ''), first: undefined }
  const note = ({ seq, trace_id, span_id }: RunEvent) => {
    if (seq !== 1) return
    trace.traceId = trace_id
    trace.first = contextIn({ traceId: trace_id, spanId: span_id })
  }
  const newAuthor = () => {
    const span_id = ids.next().replaceAll('-', '').slice(-16)
    return { trace_id: trace.traceId, span_id, actor: worker }
  }
  const spans = tracer && new RunSpans(tracer, trace, worker)
  return { note, newAuthor: Object.assign(newAuthor, spans && { spans }) }
}

/** The trace of a run; its first event, if the run existed before. */
interface RunTrace {
  traceId: string
  first: TraceContext | undefined
}

/** The spans of the work of this process on one run. */
class RunSpans {
  readonly #tracer: Tracer
  readonly #trace: RunTrace
  readonly #worker: string
  #run: ActiveSpan | undefined

  constructor(tracer: Tracer, trace: RunTrace, worker: string) {
    this.#tracer = tracer
    this.#trace = trace
    this.#worker = worker
  }

  /** Begins the span of the run, once. A new run takes its trace from the span. */
  begin(name: string, runId: string): void {
    if (this.#run !== undefined) return
    this.#run = this.#tracer.start(runSpan(name, runId, this.#trace.first))
    const own = this.#run.trace
    if (this.#trace.first === undefined && own !== undefined) this.#trace.traceId = own.traceId
  }

  /** Works on the run inside its span, and ends the span with the outcome. */
  async work(work: () => Promise<RunOutcome>): Promise<RunOutcome> {
    const span = this.#run
    if (span === undefined) return work()
    try {
      const outcome = await span.run(work)
      span.set({ 'pawl.outcome': outcome.kind, 'pawl.run.stage': outcome.run.run_state })
      if (outcome.kind === 'stopped') span.fail(describeError(outcome.error))
      return outcome
    } catch (error) {
      span.fail(describeError(error))
      throw error
    } finally {
      span.end()
    }
  }

  /** Calls a node inside a span; `failed` returns the error that the node threw, if it did. */
  async node<T>(
    { runId, state }: { readonly runId: string; readonly state: string },
    call: () => Promise<T>,
    failed: (ended: T) => { readonly error: unknown } | undefined,
  ): Promise<T> {
    return this.#tracer.during(nodeSpan(runId, state), async (span) => {
      const ended = await call()
      const thrown = failed(ended)
      if (thrown !== undefined) span.fail(describeError(thrown.error))
      return ended
    })
  }

  /** Does a work item inside a span. The author has its ids, if a tracer made it. */
  item<T>(
    { runId, key }: { readonly runId: string; readonly key: string },
    work: (author: Author | undefined) => Promise<T>,
  ): Promise<T> {
    const start: SpanStart = workSpan(runId, key)
    return this.#tracer.during(start, ({ trace }) => {
      const isOurs = trace?.traceId === this.#trace.traceId
      return work(isOurs ? this.#authorIn(trace as TraceContext) : undefined)
    })
  }

  #authorIn({ traceId, spanId }: TraceContext): Author {
    return { trace_id: traceId, span_id: spanId, actor: this.#worker }
  }
}
