/**
 * Answers by token. A token is made by a handler and sends one signal to one job; it is the only
 * credential. `GET` changes nothing, so a mail client may open the address before the person does.
 *
 * The key of the signal is made of the token: a second request with the same payload is answered as
 * the first was, and one with another payload is refused.
 */
import { JobEnded, JobNotFound } from '../../core/errors.ts'
import type { Job } from '../../core/job/job.ts'
import { decodeValue, encodeValue } from '../../core/values.ts'
import { TokenUsed } from '../../engine/errors.ts'
import { keyOfUse, type TokenGrant } from '../../engine/signal-tokens.ts'
import type { Requester } from '../../stores/contract/store.ts'
import type { SignalRecord } from '../../stores/contract/waits.ts'
import type { Route, RouteCall } from '../route.ts'
import { anything, nullable, oneOf, record, text, time } from '../schema.ts'
import { traceIn } from '../tracing.ts'
import { schemaOf, signalFor } from '../waits.ts'

interface Granted {
  readonly grant: TokenGrant
  readonly job: Job
  /** The signal that the token has sent; undefined if it was not used. */
  readonly sent: SignalRecord | undefined
}

async function grantedBy({ pawl, params }: RouteCall): Promise<Granted> {
  const { store, internals } = pawl
  const grant = internals.tokens.read(params.token ?? '', store.now())
  const job = await store.get(grant.jobId)
  if (job === undefined) throw new JobNotFound(grant.jobId)
  const { signals } = await store.waits.history(job.id)
  const key = keyOfUse(grant)
  const sent = signals.find((one) => one.name === grant.signal && one.key === key)
  return { grant, job, sent }
}

/** Says what is asked, and no more of the job than the person needs to know. */
async function showQuestion(call: RouteCall): Promise<unknown> {
  const { grant, job, sent } = await grantedBy(call)
  const state = sent !== undefined ? 'used' : job.outcome === null ? 'open' : 'ended'
  return {
    state,
    signal: grant.signal,
    to: grant.to ?? null,
    expiresAt: grant.expiresAt,
    job: { id: job.id, type: job.type, key: job.key },
    schema: schemaOf(call.pawl, job.type, grant.signal) ?? null,
  }
}

async function answer(call: RouteCall): Promise<unknown> {
  const { pawl, body } = call
  const { grant, job, sent } = await grantedBy(call)
  const { signal: name, jobId } = grant
  const payload = decodeValue(JSON.stringify(body.payload ?? null))
  if (sent !== undefined) return repeated(sent, payload)
  if (job.outcome !== null) throw new JobEnded(job.id, job.state, 'signal')
  const signal = await signalFor(pawl, jobId, name)
  const options = { key: keyOfUse(grant), requester: personOf(call, grant) }
  const { kind } = await pawl.job(jobId).signal(signal, payload, options)
  // Another request with this token has been quicker.
  if (kind === 'same') return repeated((await grantedBy(call)).sent, payload)
  return { kind: 'sent', signal: name }
}

function repeated(sent: SignalRecord | undefined, payload: unknown): unknown {
  if (sent === undefined || sent.payload !== encodeValue(payload)) throw new TokenUsed()
  return { kind: 'sent', signal: sent.name }
}

/** The person whom the token names. The note says by which way the answer came. */
function personOf({ header }: RouteCall, { to }: TokenGrant): Requester {
  const trace = traceIn(header)
  if (to === undefined) return { actor: 'client', metadata: { caller: 'token' }, ...trace }
  return { actor: 'operator', operator: to, note: 'answered by token', ...trace }
}

const PATH = '/api/v1/signals/{token}'

export const routes: readonly Route[] = [
  {
    method: 'GET',
    path: PATH,
    operation: 'showToken',
    summary: 'Says what a token of a signal asks for. It changes nothing.',
    details:
      'The token is the only credential. 403 if it is not valid, 410 if it has expired, 404 if ' +
      'the job does not exist.',
    roles: 'public',
    errors: [404, 409],
    answer: record({
      state: oneOf(['open', 'used', 'ended'], 'whether the token can be used'),
      signal: text('the name of the signal'),
      to: nullable(text('the person for whom the token was made')),
      expiresAt: time(),
      job: record({ id: text(), type: text(), key: nullable(text()) }),
      schema: anything('a JSON Schema of the payload; null if none is known here'),
    }),
    run: showQuestion,
  },
  {
    method: 'POST',
    path: PATH,
    operation: 'useToken',
    summary: 'Sends the signal that a token allows. It is durable when the answer arrives.',
    details:
      'The token is the only credential, and it is used once: the same payload again is answered ' +
      'as before, another one is refused with 409.',
    roles: 'public',
    body: record({}, { payload: anything('the payload as JSON; null if absent') }),
    errors: [404, 409],
    answer: record({
      kind: oneOf(['sent']),
      signal: text('the name of the signal'),
    }),
    run: answer,
  },
]
