/** Jobs: the commands of operators, on one job and on many. */

import type { Selection } from '../../engine/operators/selection.ts'
import {
  OPERATOR_VERBS,
  type OperatorVerb,
  type VerbArguments,
} from '../../engine/operators/verbs.ts'
import { RequestRefused } from '../errors.ts'
import { DRY_RUN, operatorOf, WHO, WHY } from '../operating.ts'
import { OPERATE, type Route, type RouteCall } from '../route.ts'
import {
  count,
  flag,
  type JsonSchema,
  list,
  name,
  priority,
  priorityIn,
  record,
  ref,
  text,
} from '../schema.ts'
import { JOB_FILTER } from './jobs-read.ts'

/** One request changes at most this many jobs, so that it ends soon. */
const BULK_MAX = 10_000
const BULK_DEFAULT = 1000

const ARGUMENTS: Readonly<Record<keyof VerbArguments, JsonSchema>> = {
  state: name('the new state'),
  runAt: count('the new due time; the past means now', 0, Number.MAX_SAFE_INTEGER),
  priority: priority('the new priority'),
}

function argumentOf({ takes }: OperatorVerb): Readonly<Record<string, JsonSchema>> {
  return takes === undefined ? {} : { [takes]: ARGUMENTS[takes] }
}

function argumentsIn(body: RouteCall['body']): VerbArguments {
  return body.priority === undefined ? body : { ...body, priority: priorityIn(body.priority) }
}

const actOnOne = (verb: OperatorVerb) => async (call: RouteCall) => {
  const { id = '' } = call.params
  const { dryRun = false } = call.body
  const options = { dryRun, signal: call.signal }
  return verb.act(operatorOf(call), id, options, argumentsIn(call.body))
}

const actOnMany = (verb: OperatorVerb) => async (call: RouteCall) => {
  const { dryRun = false } = call.body
  const options = { dryRun, signal: call.signal }
  return verb.act(operatorOf(call), selectionOf(call.body), options, argumentsIn(call.body))
}

interface Chosen {
  readonly ids?: readonly string[]
  readonly filter?: object
  readonly all?: boolean
  readonly limit?: number
  readonly among?: readonly string[]
}

function selectionOf({ ids, filter, all, limit, among }: Chosen): Selection {
  const ways = [ids, filter, all].filter((way) => way !== undefined)
  if (ways.length !== 1) throw new RequestRefused(400, 'Give one of "ids", "filter" and "all"')
  if (ids !== undefined) {
    if (limit === undefined && among === undefined) return { ids }
    throw new RequestRefused(400, '"limit" and "among" work only with "filter" or "all"')
  }
  const part = among === undefined ? { limit: limit ?? BULK_DEFAULT } : { among }
  if (among !== undefined && limit !== undefined) {
    throw new RequestRefused(400, '"among" cannot be used together with "limit"')
  }
  return filter === undefined ? { all: true, ...part } : { filter, ...part }
}

const SELECTION: Readonly<Record<string, JsonSchema>> = {
  ids: list(text(undefined, { maxLength: 255 }), { maxItems: BULK_MAX, minItems: 1 }),
  filter: record({}, JOB_FILTER),
  all: { ...flag('every job'), const: true },
  limit: count(`change at most this many; ${BULK_DEFAULT} if absent`, 1, BULK_MAX),
  among: list(text(undefined, { maxLength: 255 }), {
    maxItems: BULK_MAX,
    description: 'only these jobs: the `ids` of a dry run with the same filter',
  }),
}

function routesOf(verb: OperatorVerb): Route[] {
  const argument = argumentOf(verb)
  const { summary } = verb
  const common = {
    method: 'POST',
    roles: OPERATE,
    answer: ref('OperatorReport'),
    ...(verb.details !== undefined && { details: verb.details }),
  } as const
  return [
    {
      ...common,
      path: `/api/v1/jobs/{id}/${verb.name}`,
      operation: `${verb.name}Job`,
      summary: `One job: ${summary.charAt(0).toLowerCase()}${summary.slice(1)}.`,
      body: record({ ...WHY, ...argument }, { ...WHO, ...DRY_RUN }),
      errors: [404, 409],
      run: actOnOne(verb),
    },
    {
      ...common,
      path: `/api/v1/jobs/${verb.name}`,
      operation: `${verb.name}Jobs`,
      summary: `${summary}.`,
      body: record({ ...WHY, ...argument }, { ...SELECTION, ...WHO, ...DRY_RUN }),
      run: actOnMany(verb),
    },
  ]
}

export const routes: readonly Route[] = OPERATOR_VERBS.flatMap(routesOf)
