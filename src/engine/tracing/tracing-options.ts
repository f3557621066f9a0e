/** The options of tracing, and their checks. */
import { flag, record } from '../../core/checks.ts'
import { checkFields, type FieldChecks } from '../../core/fields.ts'

/** The options of tracing. */
export interface TracingOptions {
  /**
   * Whether the span of an attempt continues the trace of the span that enqueued the job. If
   * false, an attempt begins a trace of its own, with a link to that span.
   * @defaultValue `false`
   */
  readonly parent?: boolean
  /**
   * Makes the tracer, instead of the provider that is registered globally.
   * @defaultValue the global provider
   */
  readonly tracerProvider?: { getTracer(name: string, version?: string): object }
}

const OPTIONS: FieldChecks<TracingOptions> = { parent: flag, tracerProvider: record }

/** Returns what is wrong with the option `tracing`. */
export function checkTracing(value: boolean | TracingOptions): string | undefined {
  if (typeof value === 'boolean') return undefined
  const why = record(value)
  if (why === undefined) checkFields(value, OPTIONS, { what: 'tracing', prefix: 'tracing.' })
  return why
}
