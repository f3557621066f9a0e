/** Groups that take turns. */
import { LANES } from '../../../core/job/lanes.ts'
import type { Group, Turned } from '../../../core/limits/rotation.ts'
import { orderAt } from '../../columns.ts'
import type { ClaimRequest } from '../../contract/store.ts'
import type {
  Arrival,
  EnteredGroup,
  GroupedJob,
  GroupLook,
  GroupSkim,
} from '../../verbs/claim-groups.ts'
import type { Connection } from '../connect.ts'
import type { At } from './at.ts'

const SELECT_ARRIVALS = `
  SELECT rid AS ref, limit_key AS limitKey, created_at AS createdAt FROM pawl_jobs
  WHERE lane = ${LANES.ready} AND queue = ? ORDER BY priority, ${orderAt()}, rid LIMIT ?`
const LAST_TURN = 'SELECT max(turn) AS turn FROM pawl_groups WHERE queue = ?'
const ENTER = `
  INSERT INTO pawl_groups (key, queue, turn, credit, weight, weight_at)
  VALUES (?1, ?2, ?3, ?4, ?4, ?5)
  ON CONFLICT (key) DO UPDATE SET
    credit = min(credit, excluded.weight), weight = excluded.weight, weight_at = excluded.weight_at
  WHERE excluded.weight_at >= weight_at`
const SELECT_FIRST = `
  SELECT key, turn, credit, weight FROM pawl_groups WHERE queue = ? ORDER BY turn LIMIT ?`
const SELECT_GROUPED = `
  SELECT rid AS ref, queue, priority, ${orderAt()} AS orderAt, created_at AS createdAt,
    limit_key AS limitKey, blocked_on AS "group"
  FROM pawl_jobs
  WHERE lane = ${LANES.blocked} AND blocked_on = ?1 AND run_at <= ?2
    AND state = ?3 ->> CAST(machine AS TEXT)
    AND (?4 IS NULL OR type IN (SELECT value FROM json_each(?4)))
  ORDER BY priority, ${orderAt()}, rid LIMIT ?5`
const SKIM = `
  UPDATE pawl_jobs SET blocked_on = ?3 WHERE limit_key = ?2 AND rid IN (
    SELECT rid FROM pawl_jobs WHERE lane = ${LANES.blocked} AND blocked_on = ?1
    ORDER BY priority, ${orderAt()}, rid LIMIT 5000)`
const SET_CREDIT = 'UPDATE pawl_groups SET credit = ?2 WHERE key = ?1'
const SET_TURN = 'UPDATE pawl_groups SET credit = ?2, turn = ?3 WHERE key = ?1'
const REMOVE_EMPTY = `
  DELETE FROM pawl_groups WHERE key = ?1 AND NOT EXISTS (
    SELECT 1 FROM pawl_jobs WHERE lane = ${LANES.blocked} AND blocked_on = ?1)`
const SELECT_IN_LINE = `
  SELECT 1 FROM pawl_groups JOIN pawl_queues ON name = queue AND rotates = 1 WHERE key = ?`
const ROTATE = `
  INSERT INTO pawl_queues (name, rotates) VALUES (?, 1)
  ON CONFLICT (name) DO UPDATE SET rotates = 1`

function lastTurn(connection: Connection, queue: string): number {
  return connection.get<{ turn: number | null }>(LAST_TURN, queue)?.turn ?? 0
}

export const GROUPS = {
  /** The write lock of the transaction covers every line. */
  lockLines() {},
  arrivals: ({ connection }: At, queue: string, limit: number) =>
    connection.all<Arrival>(SELECT_ARRIVALS, queue, limit),
  enterGroups({ connection }: At, queue: string, groups: readonly EnteredGroup[]) {
    let turn = lastTurn(connection, queue)
    for (const { key, weight, weightAt } of groups) {
      connection.run(ENTER, key, queue, ++turn, weight, weightAt)
    }
  },
  firstGroups: ({ connection }: At, queue: string, limit: number) =>
    connection.all<Group>(SELECT_FIRST, queue, limit),
  lockGrouped(
    { connection, machines, now }: At,
    looks: readonly GroupLook[],
    { types }: ClaimRequest,
  ): GroupedJob[] {
    const known = types === undefined ? null : JSON.stringify(types)
    return looks.flatMap(({ key, jobs }) =>
      connection.all<GroupedJob>(SELECT_GROUPED, key, now, machines.readyStates, known, jobs),
    )
  },
  skimGroups({ connection }: At, skims: readonly GroupSkim[]) {
    for (const { group, limitKey, by } of skims) connection.run(SKIM, group, limitKey, by)
  },
  writeGroups({ connection }: At, queue: string, groups: readonly Turned[]) {
    let turn = lastTurn(connection, queue)
    for (const { key, credit, toEnd } of groups) {
      if (toEnd) connection.run(SET_TURN, key, credit, ++turn)
      else connection.run(SET_CREDIT, key, credit)
      connection.run(REMOVE_EMPTY, key)
    }
  },
  groupsOutOfLine: ({ connection }: At, keys: readonly string[]) =>
    keys.filter((key) => connection.get(SELECT_IN_LINE, key) === undefined),
  rotateQueue({ connection }: At, queue: string) {
    connection.run(ROTATE, queue)
  },
}
