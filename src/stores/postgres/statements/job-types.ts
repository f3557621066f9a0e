/**
 * Job types as workers have declared them, for the function `enqueue` of the schema. Each row says
 * what a new job of the type gets. It comes from the decision on three samples, one that runs now,
 * one that runs later and one that is held, so that the function needs no rules of lifecycles.
 */
import { PawlError } from '../../../core/errors.ts'
import { LANES } from '../../../core/job/lanes.ts'
import { type Accepted, Acceptor } from '../../accept.ts'
import { columnsOf } from '../../columns.ts'
import type { JobTypeDeclaration } from '../../contract/job-types.ts'
import { CLIENT } from '../../contract/requester.ts'
import { factPath } from '../../rows.ts'
import { needsRoom } from '../../shedding.ts'
import { statement } from '../connect.ts'
import { arraysOf, type Column, namesOf, unnest } from '../rows-at-once.ts'
import type { At } from './at.ts'

interface Samples {
  readonly declaration: JobTypeDeclaration
  readonly now: Accepted
  readonly later: Accepted
  /** Absent if the lifecycle cannot hold new jobs. */
  readonly held: Accepted | undefined
}

const sampled = (name: string, type: string): Column<Samples> => [
  name,
  type,
  ({ now }) => columnsOf(now)[name] ?? null,
]

const COLUMNS: readonly Column<Samples>[] = [
  ['name', 'text', ({ now }) => now.job.type],
  sampled('machine', 'int'),
  sampled('queue', 'text'),
  sampled('priority', 'int'),
  sampled('ahead_ms', 'int'),
  sampled('timeout_ms', 'bigint'),
  sampled('limit_key', 'text'),
  sampled('policy', 'text'),
  ['path', 'text', ({ now }) => factPath(now.fact)],
  ['later_path', 'text', ({ later }) => factPath(later.fact)],
  ['held_path', 'text', ({ held }) => (held === undefined ? null : factPath(held.fact))],
  ['needs_room', 'smallint', ({ now }) => (needsRoom(now) ? 1 : 0)],
  ['bytes_max', 'bigint', ({ declaration }) => declaration.bounds.bytesMax],
  ['depth_max', 'bigint', ({ declaration }) => declaration.bounds.depthMax],
  ['needs', 'text', ({ declaration }) => declaration.needs ?? null],
]

/** In one order, so that workers that start together do not wait for each other in a circle. */
const UPSERT = statement(
  (s) => `
  INSERT INTO ${s}.job_types (${namesOf(COLUMNS)}, worker, declared_at)
  SELECT ${namesOf(COLUMNS)}, $1, $2 FROM ${unnest(COLUMNS, 3, 'item')} ORDER BY name
  ON CONFLICT (name) DO UPDATE SET (${namesOf(COLUMNS)}, worker, declared_at)
    = (${namesOf(COLUMNS, 'excluded.')}, excluded.worker, excluded.declared_at)`,
)

/** Writes what a worker declares. The declaration of the worker that started last counts. */
export async function declareJobTypes(
  at: At,
  worker: string,
  declared: readonly JobTypeDeclaration[],
): Promise<void> {
  const rows = declared.map((declaration) => samplesOf(at, declaration))
  const whole = rows.filter((row): row is Samples => row !== undefined)
  if (whole.length === 0) return
  await at.session.query(UPSERT, [worker, at.now, ...arraysOf(COLUMNS, whole)])
}

/** Any id: samples are not written. */
const SAMPLE_ID = '00000000-0000-0000-0000-000000000000'

/** Returns `undefined` for a type whose jobs this store would not accept. */
function samplesOf(at: At, declaration: JobTypeDeclaration): Samples | undefined {
  const { environment, machines, now: moment } = at
  const { lifecycle, bounds: payloadBounds } = declaration
  const acceptor = new Acceptor({ environment, machines, payloadBounds }, moment)
  const sample = (options: { runAt?: number; hold?: boolean }) => {
    const command = { ...declaration.command, ...options, jobId: SAMPLE_ID }
    const accepted = acceptor.accept({
      item: { lifecycle, command, input: 'null' },
      requester: CLIENT,
    })
    return accepted instanceof PawlError ? undefined : accepted
  }
  const [now, later] = [sample({}), sample({ runAt: moment + 1 })]
  if (now === undefined || later === undefined) return undefined
  // The function writes these lanes. A type with other ones is not declared, and so refused.
  if (now.lane !== LANES.ready || later.lane !== LANES.waiting) return undefined
  return { declaration, now, later, held: sample({ hold: true }) }
}
