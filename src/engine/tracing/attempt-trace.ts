/** The spans of one attempt: the handler, its steps and its commit. */
import { type Failure, type FailureContext, failureOf } from '../../core/failure.ts'
import type { TraceContext } from '../../core/trace.ts'
import type { Held, Settlement } from '../../stores/contract/store.ts'
import type { Report } from '../worker/report.ts'
import { commitSpan, processSpan, stepSpan } from './spans.ts'
import type { ActiveSpan, SpanError, SpanStart, Tracer } from './tracer.ts'

export class AttemptTrace {
  readonly #tracer: Tracer
  readonly #held: Held
  readonly #failing: FailureContext
  readonly #span: ActiveSpan

  constructor(tracer: Tracer, held: Held, own: { worker: string; failing: FailureContext }) {
    this.#tracer = tracer
    this.#held = held
    this.#failing = own.failing
    this.#span = tracer.start(processSpan(held, tracer.after(held.trace), own.worker))
  }

  /** The ids of the span of the attempt. */
  get trace(): TraceContext | undefined {
    return this.#span.trace
  }

  /** The fields of log lines of the attempt. */
  get fields(): Readonly<Record<string, string>> {
    const { trace } = this
    return trace === undefined ? {} : { trace_id: trace.traceId, span_id: trace.spanId }
  }

  /** Runs the handler: spans that it makes are children of the span of the attempt. */
  run<T>(work: () => T): T {
    return this.#span.run(work)
  }

  /** Runs a step, or a commit without `step`, in a span of its own. */
  during<T>(step: string | undefined, work: (span: ActiveSpan) => Promise<T>): Promise<T> {
    const { job } = this.#held
    const own = step === undefined ? commitSpan(job) : stepSpan(job, step)
    // The span in which the handler called it, for example one of the user's.
    const active = this.#tracer.active()
    const start: SpanStart = { ...own, parent: active === undefined ? this.trace : 'active' }
    return this.#tracer.during(start, work, (error) => this.#describe(error))
  }

  /** Ends the span of the attempt with its outcome. */
  end(report: Report): void {
    const command = report.kind === 'settle' ? report.settlement.command : undefined
    this.#span.set({ 'pawl.outcome': command?.kind ?? report.kind })
    if (command?.kind === 'fail') this.#span.fail(spanErrorOf(command.failure))
    if (report.kind === 'lost') {
      this.#span.fail({ type: 'E_LEASE_LOST', message: 'The lease was lost' })
    }
    this.#span.end()
  }

  #describe(error: unknown): SpanError {
    return spanErrorOf(failureOf(error, this.#failing))
  }
}

/** Runs the handler of an attempt, in its span if it has one. */
export function runIn<T>(trace: AttemptTrace | undefined, work: () => T): T {
  return trace === undefined ? work() : trace.run(work)
}

/**
 * Commits, in a span if there is one. The store may call the function from another place, so the
 * function is brought back into the span.
 */
export function commitIn<Tx, Output>(
  trace: AttemptTrace | undefined,
  work: (tx: Tx) => Output | Promise<Output>,
  commit: (work: (tx: Tx) => Output | Promise<Output>) => Promise<Output>,
): Promise<Output> {
  if (trace === undefined) return commit(work)
  return trace.during(undefined, (span) => commit((tx) => span.run(() => work(tx))))
}

/** The span that facts of an attempt keep. */
export function fieldIn(of: AttemptTrace | undefined): Pick<Settlement, 'trace'> {
  const trace = of?.trace
  return trace === undefined ? {} : { trace }
}

/** A failure as spans show it. Its texts are redacted already. */
export function spanErrorOf({ code, name, kind, message, thrown }: Failure): SpanError {
  return { type: code ?? name ?? kind, message, stack: thrown?.stack }
}
