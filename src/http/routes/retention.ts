/** Retention: what is old enough to be removed, and removing it now. */
import { KEEP_MAX_MS } from '../../core/retention.ts'
import type { RunRetentionOptions } from '../../engine/retention/run.ts'
import { RequestRefused } from '../errors.ts'
import { DRY_RUN, operatorOf, WHO, WHY } from '../operating.ts'
import { ADMIN, READ, type Route, type RouteCall } from '../route.ts'
import { count, flag, list, name, record, ref, whole } from '../schema.ts'

const TYPES_MAX = 1000

interface Times {
  readonly succeededMs?: number
  readonly failedMs?: number
  readonly cancelledMs?: number
  readonly keysMs?: number
}

/** The times of a request; empty if there are none, and those of the job types apply. */
function askedOf(
  { succeededMs, failedMs, cancelledMs, keysMs }: Times,
  types: readonly string[] | undefined,
): Pick<RunRetentionOptions, 'retention' | 'types'> {
  const retention = {
    ...(succeededMs !== undefined && { succeeded: succeededMs }),
    ...(failedMs !== undefined && { failed: failedMs }),
    ...(cancelledMs !== undefined && { cancelled: cancelledMs }),
    ...(keysMs !== undefined && { keys: keysMs }),
  }
  if (Object.keys(retention).length > 0) {
    return { retention, ...(types !== undefined && { types }) }
  }
  if (types === undefined) return {}
  throw new RequestRefused(400, 'No time is given', 'Add succeededMs, failedMs or cancelledMs.')
}

async function status({ pawl, query }: RouteCall): Promise<unknown> {
  const { type, ...times } = query
  return pawl.retentionStatus(askedOf(times, type === undefined ? undefined : [type]))
}

/** One at a time: it may take long. */
function run(call: RouteCall): Promise<unknown> {
  const { types, dryRun = false } = call.body
  const asked = askedOf(call.body, types)
  return call.examinations.hold(() => {
    return operatorOf(call).runRetention({ ...asked, dryRun, signal: call.signal })
  })
}

const keep = (what: string) => count(`how long ${what} are kept`, 1000, KEEP_MAX_MS)
const TIMES = {
  succeededMs: keep('succeeded jobs'),
  failedMs: keep('failed jobs'),
  cancelledMs: keep('cancelled jobs'),
  keysMs: keep('keys of removed jobs'),
}

export const routes: readonly Route[] = [
  {
    method: 'GET',
    path: '/api/v1/retention',
    operation: 'readRetention',
    summary: 'Counts ended jobs that are old enough to be removed. Removes nothing.',
    details: 'Without times, those of the server and of its job types apply.',
    roles: READ,
    query: { ...TIMES, type: name('with times: only jobs of this type') },
    answer: record({
      active: flag('whether a worker has looked after retention within two days'),
      due: ref('RetentionReport'),
      old: whole('jobs that ended more than 30 days ago, counted up to 10000'),
      keys: whole('keys of removed jobs that stay taken, counted up to 10000'),
    }),
    run: status,
  },
  {
    method: 'POST',
    path: '/api/v1/retention/run',
    operation: 'runRetention',
    summary: 'Removes ended jobs that are older than their times, now.',
    details:
      'Without times, those of the server and of its job types apply. Jobs that have not ended, ' +
      'parked ones too, are never removed.',
    roles: ADMIN,
    body: record(WHY, {
      ...WHO,
      ...DRY_RUN,
      ...TIMES,
      types: list(name(), { maxItems: TYPES_MAX, description: 'with times: only these job types' }),
    }),
    lasts: true,
    answer: ref('RetentionReport'),
    run,
  },
]
