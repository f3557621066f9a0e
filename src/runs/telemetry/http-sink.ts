/** A sink that is a telemetry server: events go there as lines of JSON, in one request. */
import { TelemetryRefused } from '../errors.ts'
import type { TelemetrySink } from './telemetry.ts'

/** Where the server is. */
export interface HttpSinkOptions {
  /** Of the server, such as `http://127.0.0.1:7171`. */
  readonly url: string
  readonly token?: string
}

/** Sends events to a telemetry server. */
export function httpSink({ url, token }: HttpSinkOptions): TelemetrySink {
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
