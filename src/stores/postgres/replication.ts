/** What the server reports about its durability and its standbys, for the doctor. */
import type { Replication } from '../contract/examination.ts'
import { type Session, statement } from './connect.ts'

/** What `synchronous_commit` is before this store sets it: by server, database, role or client. */
export const DEFAULT_COMMIT = `(
  SELECT reset_val FROM pg_catalog.pg_settings WHERE name = 'synchronous_commit')`

/**
 * `synchronous_commit` is that of the store's own sessions. Standbys are those that stream all
 * changes; a logical slot or a backup cannot be promoted. Without the role pg_monitor the server
 * shows only how many there are.
 */
const SELECT_REPLICATION = statement(
  () => `
  SELECT current_setting('fsync') AS fsync,
    current_setting('synchronous_commit') AS synchronous_commit,
    ${DEFAULT_COMMIT} AS default_commit,
    current_setting('synchronous_standby_names') AS synchronous_standby_names,
    (SELECT count(*)::int FROM pg_stat_replication AS sender
      WHERE coalesce(state, 'streaming') = 'streaming' AND NOT EXISTS (
        SELECT 1 FROM pg_replication_slots AS slot
        WHERE slot.active_pid = sender.pid AND slot.slot_type = 'logical')) AS standbys,
    (SELECT count(*)::int FROM pg_stat_replication
      WHERE sync_state IN ('sync', 'quorum')) AS synchronous,
    (SELECT bool_and(sync_state IS NOT NULL) FROM pg_stat_replication) AS shown`,
)

interface Row {
  readonly fsync: string
  readonly synchronous_commit: string
  readonly default_commit: string
  readonly synchronous_standby_names: string
  readonly standbys: number
  readonly synchronous: number
  readonly shown: boolean | null
}

/** Reads it. */
export async function replication(session: Session): Promise<Replication> {
  const [row] = await session.query<Row>(SELECT_REPLICATION)
  const found = row as Row
  return {
    fsync: found.fsync === 'on',
    synchronousCommit: found.synchronous_commit,
    defaultCommit: found.default_commit,
    standbyNames: found.synchronous_standby_names,
    standbys: found.standbys,
    // If the server does not show it, the number is unknown, not zero.
    ...(found.shown !== false && { synchronousStandbys: found.synchronous }),
  }
}
