/** A sink that sends events to a telemetry server as lines of JSON, in one request. */
import { NOTE_MAX, text } from '../../core/checks.ts'
import { checkDefinition, type FieldChecks } from '../../core/fields.ts'
import { TelemetryRefused } from '../errors.ts'
import type { TelemetrySink } from './telemetry.ts'

/** The options of `httpSink`. */
export interface HttpSinkOptions {
  /** The address of the server, such as `http://127.0.0.1:7171`. */
  readonly url: string
  readonly token?: string
}

const SINK: FieldChecks<HttpSinkOptions> = {
  url: (value) => (URL.canParse(value) ? undefined : 'must be a URL'),
  token: (value) => text(value, NOTE_MAX),
}

/** Sends events to a telemetry server. */
export function httpSink(options: HttpSinkOptions): TelemetrySink {
  checkDefinition('httpSink', options, SINK)
  const { url, token } = options
  const target = new URL('/api/v1/telemetry/events', url)
  return {
    name: target.origin,
    async send(events, signal) {
      const headers = {
        'content-type': 'application/x-ndjson',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      }
      const body = events.map((event) => `${JSON.stringify(event)}\n`).join('')
      const response = await fetch(target, { method: 'POST', headers, body, signal })
      await response.arrayBuffer()
      if (!response.ok) throw new TelemetryRefused(target.origin, response.status)
    },
  }
}
