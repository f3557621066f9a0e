/** What the verbs of this store share. */
import type { JsonBounds } from '../../core/canonical-json.ts'
import { JobNotFound, type PawlError } from '../../core/errors.ts'
import type { Environment } from '../../environment/system.ts'
import type { Held } from '../contract/store.ts'
import { JobDamaged } from '../errors.ts'
import type { StatementMachines } from '../statement-machines.ts'
import { asHeld, heldFault, type LockedRow, type Read, toRead } from '../verbs/reading.ts'
import { type Session, statement } from './connect.ts'
import { arrayOf } from './rows-at-once.ts'
import type { At } from './statements/at.ts'

/** The parts of an open store. */
export interface Shared {
  readonly environment: Environment
  readonly machines: StatementMachines
  /** The name of the schema, quoted. */
  readonly schema: string
  /** How large and how deep an input, result or effect may be. */
  readonly payloadBounds: JsonBounds
}

/** Several rows are locked in the order of their ids, so that no deadlock is possible. */
export const LOCK = statement(
  (s) => `SELECT * FROM ${s}.jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE`,
)

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Whether a text can be stored; the database refuses to compare others. */
export function isStorable(text: string): boolean {
  return !/\p{Surrogate}|\0/u.test(text)
}

/** Whether a text can be an id; the database refuses to compare others. */
export function isUuid(id: unknown): id is string {
  return typeof id === 'string' && UUID.test(id)
}

/**
 * Locks the jobs that callers hold; returns each job as it is now, or why there is none. All jobs
 * of one claim have the same fence, so a handle must also belong to its job.
 */
export async function lockHeld(
  shared: Shared,
  session: Session,
  held: readonly Held[],
): Promise<(Read | PawlError)[]> {
  const { machines } = shared
  const ids = held.map(({ ref }) => ref).filter(isUuid)
  const rows = await session.query<LockedRow>(LOCK, [arrayOf(ids)])
  const byId = new Map(rows.map((row) => [row.id, { row, read: toRead(machines, row, row.id) }]))
  return held.map(({ ref, job }) => {
    const found = ref === job.id ? byId.get(ref) : undefined
    if (found === undefined) return new JobNotFound(job.id)
    const { row, read } = found
    if (read instanceof JobDamaged) return read
    if (read !== undefined && read.route === undefined) return asHeld(read, job)
    return heldFault(machines, row, row.id, job)
  })
}

/** A transaction in which verbs run. */
export function atOf(
  { environment, machines, schema }: Pick<Shared, 'environment' | 'machines' | 'schema'>,
  session: Session,
  now: number,
): At {
  return { environment, machines, schema, session, now }
}
