/**
 * Signals of a job.
 *
 * A job has at most one signal of a name and key. `Idempotency-Key` is the key if the body has
 * none: a second request with the same name and key stores nothing. If the payloads differ, the
 * request is refused.
 */
import { JobNotFound } from '../../core/errors.ts'
import { decodeValue, encodeValue } from '../../core/values.ts'
import type { Requester } from '../../stores/contract/store.ts'
import type { SignalRecord } from '../../stores/contract/waits.ts'
import { RequestRefused } from '../errors.ts'
import { operatorName, requesterOf, WHO } from '../operating.ts'
import { ENQUEUE, PAGING, pageOf, READ, type Route, type RouteCall } from '../route.ts'
import { anything, name, note, nullable, oneOf, page, record, ref, text } from '../schema.ts'
import { currentWait, signalFor } from '../waits.ts'

/** A signal in a request. */
interface SignalBody {
  readonly name: string
  readonly key?: string
  readonly payload?: unknown
  readonly reason?: string
}

/** A caller with a reason acts as an operator; the ledger names the operator. */
function senderOf(call: RouteCall): Requester {
  const { reason } = call.body
  if (reason === undefined) return requesterOf(call)
  return { ...requesterOf(call), actor: 'operator', operator: operatorName(call), note: reason }
}

async function sendSignal(call: RouteCall): Promise<unknown> {
  const { pawl, params } = call
  const { id = '' } = params
  const body: SignalBody = call.body
  const header = call.header('idempotency-key')
  const { key = header ?? pawl.internals.environment.ids.next() } = body
  if (header !== undefined && key !== header) {
    throw new RequestRefused(400, '"key" must be absent, or the same as Idempotency-Key')
  }
  // Tags such as {"@pawl:date":…} become their values, as in inputs of jobs.
  const payload = decodeValue(JSON.stringify(body.payload ?? null))
  const signal = await signalFor(pawl, id, body.name)
  const options = { key, requester: senderOf(call) }
  const { kind, job } = await pawl.job(id).signal(signal, payload, options)
  if (kind === 'same' && header !== undefined) {
    const { signals } = await pawl.store.waits.history(id)
    const first = signals.find((one) => one.name === body.name && one.key === key)
    if (first !== undefined && first.payload !== encodeValue(payload)) {
      const why = 'The Idempotency-Key was used before, with another payload'
      throw new RequestRefused(422, why, 'Send the same request as before, or use another key.')
    }
  }
  return { kind, key, job: { id: job.id, state: job.state } }
}

async function listSignals(call: RouteCall): Promise<unknown> {
  const { pawl, params, payloads } = call
  const { id = '' } = params
  const { limit, after = '0' } = pageOf(call)
  if (!/^\d{1,15}$/.test(after)) {
    throw new RequestRefused(400, '"after" must be the `nextCursor` of the page before')
  }
  const job = await pawl.store.get(id)
  if (job === undefined) throw new JobNotFound(id)
  const history = await pawl.store.waits.history(id)
  const rest = history.signals.filter(({ seq }) => seq > Number(after))
  const shown = rest.slice(0, limit)
  const wait = currentWait(pawl.internals.lifecycles, job, history)
  return {
    items: shown.map((one: SignalRecord) => ({ ...one, payload: payloads.view(one.payload) })),
    nextCursor: rest.length > limit ? String(shown.at(-1)?.seq) : null,
    waitsFor: wait ?? null,
  }
}

const PATH = '/api/v1/jobs/{id}/signals'

export const routes: readonly Route[] = [
  {
    method: 'POST',
    path: PATH,
    operation: 'sendSignal',
    summary: 'Sends a signal to a job. It is durable when the answer arrives.',
    details:
      'A job that waits for it becomes ready; otherwise the signal is kept until the job waits ' +
      'for it. A signal of the same name and key is stored once: "same" if the job has it already.',
    roles: ENQUEUE,
    headers: {
      'Idempotency-Key': 'the key of the signal, if the body has none',
      traceparent: 'the span of the caller (W3C Trace Context)',
      tracestate: 'kept with traceparent, if it is not longer than 512 characters',
    },
    body: record(
      { name: name('the name of the signal') },
      {
        key: name('at most one signal per name and key; a new key if absent'),
        payload: anything('its payload as JSON; null if absent'),
        reason: note('sends it as an operator, with this reason in the ledger'),
        ...WHO,
      },
    ),
    errors: [404, 409],
    answer: record({
      kind: oneOf(['sent', 'same'], 'same: the job has a signal of this name and key already'),
      key: text('the key of the signal'),
      job: record({ id: text(), state: text() }),
    }),
    run: sendSignal,
  },
  {
    method: 'GET',
    path: PATH,
    operation: 'listSignals',
    summary: 'Lists the signals of a job in the order in which they were sent.',
    details: 'Also says what the job waits for now. Payloads are shown without secrets.',
    roles: READ,
    query: PAGING,
    errors: [404],
    answer: page(ref('Signal'), { waitsFor: nullable(ref('Wait')) }),
    run: listSignals,
  },
]
