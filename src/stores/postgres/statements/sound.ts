/** Rows for verbs over many jobs, which fail if one is damaged. */
import type { Value } from '../../rows.ts'
import { type LockedRow, type Read, toSound } from '../../verbs/reading.ts'
import type { Statement } from '../connect.ts'
import type { At } from './at.ts'

/** The jobs that a statement locks; throws `JobDamaged` if a row cannot be read. */
export async function lockSound(
  { session, machines }: At,
  text: Statement,
  ...values: Value[]
): Promise<Read[]> {
  const rows = await session.query<LockedRow>(text, values)
  return rows.flatMap((row) => toSound(machines, row, row.id) ?? [])
}
