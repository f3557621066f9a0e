/** The identity under which a caller acts on jobs, and the fields by which it says why. */
import type { Operator } from '../engine/operators/operators.ts'
import type { Requester } from '../stores/contract/store.ts'
import type { Identity } from './access.ts'
import { RequestRefused } from './errors.ts'
import type { RouteCall } from './route.ts'
import { flag, type JsonSchema, name, note } from './schema.ts'
import { traceIn } from './tracing.ts'

/** The fields of every request of an operator. */
export const WHY: Readonly<Record<string, JsonSchema>> = {
  reason: note('why; recorded in the ledger'),
}

export const WHO: Readonly<Record<string, JsonSchema>> = {
  operator: name('your name, if the request has no token; otherwise the name of the token counts'),
}

export const DRY_RUN: Readonly<Record<string, JsonSchema>> = {
  dryRun: flag('report what would change, and change nothing'),
}

/** The name of the operator. Only a caller without a token may choose it. */
export function operatorName({ identity, body }: Pick<RouteCall, 'identity' | 'body'>): string {
  const { operator = identity.name } = (body ?? {}) as { operator?: string }
  if (identity.isLocal || operator === identity.name) return operator
  throw new RequestRefused(403, `The operator must be ${identity.name}, the name of the token`)
}

/** The operator of a request. */
export function operatorOf(call: RouteCall): Operator {
  return call.pawl.operator({ name: operatorName(call), reason: call.body.reason })
}

const requesters = new WeakMap<Identity, Requester>()

/**
 * Who enqueues, for the ledger. The same object for each request of a caller: a store decides once
 * for jobs of the same requester.
 */
function clientOf(identity: Identity): Requester {
  const known = requesters.get(identity)
  if (known !== undefined) return known
  const metadata = { caller: identity.name }
  const requester: Requester = { actor: 'client', ...(!identity.isLocal && { metadata }) }
  requesters.set(identity, requester)
  return requester
}

/** The caller, with the span in which it made the request. */
export function requesterOf({ identity, header }: RouteCall): Requester {
  const trace = traceIn(header)
  const client = clientOf(identity)
  return trace === undefined ? client : { ...client, ...trace }
}
