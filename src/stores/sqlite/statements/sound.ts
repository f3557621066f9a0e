/** Rows for verbs over many jobs, which fail if one is damaged. */
import type { Value } from '../../rows.ts'
import { type LockedRow, type Read, toSound } from '../../verbs/reading.ts'
import type { At } from './at.ts'

/** The jobs that a statement selects; throws `JobDamaged` if a row cannot be read. */
export function lockSound({ connection, machines }: At, sql: string, ...values: Value[]): Read[] {
  return connection
    .all<LockedRow & { readonly rid: number }>(sql, ...values)
    .flatMap((row) => toSound(machines, row, row.rid) ?? [])
}
