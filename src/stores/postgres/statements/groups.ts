/** Groups that take turns. A line is locked by its queue, so its rows need no other locks. */
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
import { statement } from '../connect.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'

/** In the order of the numbers that are locked, so that no deadlock is possible. */
const LOCK_LINES = statement(
  (s) => `
  SELECT pg_advisory_xact_lock(number) FROM (
    SELECT hashtextextended('${s.replaceAll("'", "''")}.line.' || name, 0) AS number
    FROM unnest($1::text[]) AS queue (name) ORDER BY 1
  ) AS line`,
)
const SELECT_ARRIVALS = statement(
  (s) => `
  SELECT id AS ref, limit_key AS "limitKey", created_at AS "createdAt" FROM ${s}.jobs
  WHERE lane = ${LANES.ready} AND queue = $1
  ORDER BY priority, ${orderAt()}, id LIMIT $2 FOR UPDATE SKIP LOCKED`,
)
/** The sequence is read in the order of the array. */
const ENTER = statement(
  (s) => `
  INSERT INTO ${s}.groups AS known (key, queue, turn, credit, weight, weight_at)
  SELECT key, $1, nextval('${s.replaceAll("'", "''")}.group_turns'), weight, weight, weight_at
  FROM (
    SELECT * FROM unnest($2::text[], $3::bigint[], $4::bigint[])
      WITH ORDINALITY AS item (key, weight, weight_at, place) ORDER BY place
  ) AS item
  ON CONFLICT (key) DO UPDATE SET
    credit = least(known.credit, excluded.weight), weight = excluded.weight,
    weight_at = excluded.weight_at
  WHERE excluded.weight_at >= known.weight_at`,
)
const SELECT_FIRST = statement(
  (s) => `
  SELECT key, turn, credit, weight FROM ${s}.groups WHERE queue = $1 ORDER BY turn LIMIT $2`,
)
const LOCK_GROUPED = statement(
  (s) => `
  SELECT first.* FROM unnest($4::text[], $5::int[]) AS look (name, size) CROSS JOIN LATERAL (
    SELECT id AS ref, queue, priority, ${orderAt()} AS "orderAt", created_at AS "createdAt",
      limit_key AS "limitKey", blocked_on AS "group"
    FROM ${s}.jobs
    WHERE lane = ${LANES.blocked} AND blocked_on = look.name AND run_at <= $1
      AND state = ($2::text[])[machine]
      AND ($3::text[] IS NULL OR type = ANY ($3::text[]))
    ORDER BY priority, ${orderAt()}, id LIMIT look.size FOR UPDATE SKIP LOCKED
  ) AS first`,
)
const SKIM = statement(
  (s) => `
  UPDATE ${s}.jobs SET blocked_on = item.gate
  FROM unnest($1::text[], $2::text[], $3::text[]) AS item (name, limit_key, gate)
  WHERE jobs.blocked_on = item.name AND jobs.limit_key = item.limit_key
    AND jobs.id = ANY (ARRAY (
      SELECT behind.id FROM unnest($1::text[]) AS look (name) CROSS JOIN LATERAL (
        SELECT id FROM ${s}.jobs WHERE lane = ${LANES.blocked} AND blocked_on = look.name
        ORDER BY priority, ${orderAt()}, id LIMIT 5000 FOR UPDATE SKIP LOCKED
      ) AS behind))`,
)
const WRITE = statement(
  (s) => `
  UPDATE ${s}.groups AS known SET credit = item.credit, turn = coalesce(item.turn, known.turn)
  FROM (
    SELECT key, credit,
      CASE WHEN at_end = 1 THEN nextval('${s.replaceAll("'", "''")}.group_turns') END AS turn
    FROM (
      SELECT * FROM unnest($1::text[], $2::bigint[], $3::smallint[])
        WITH ORDINALITY AS item (key, credit, at_end, place) ORDER BY place
    ) AS item
  ) AS item
  WHERE known.key = item.key AND known.key = ANY ($1::text[])`,
)
const REMOVE_EMPTY = statement(
  (s) => `
  DELETE FROM ${s}.groups WHERE key = ANY ($1::text[]) AND NOT EXISTS (
    SELECT 1 FROM ${s}.jobs WHERE lane = ${LANES.blocked} AND blocked_on = groups.key)`,
)
const SELECT_OUT_OF_LINE = statement(
  (s) => `
  SELECT item.key FROM unnest($1::text[]) AS item (key) WHERE NOT EXISTS (
    SELECT 1 FROM ${s}.groups JOIN ${s}.queues ON name = queue AND rotates = 1
    WHERE groups.key = item.key)`,
)
const ROTATE = statement(
  (s) => `
  INSERT INTO ${s}.queues (name, rotates) VALUES ($1, 1)
  ON CONFLICT (name) DO UPDATE SET rotates = 1`,
)

export const GROUPS = {
  async lockLines({ session }: At, queues: readonly string[]) {
    await session.query(LOCK_LINES, [arrayOf(queues)])
  },
  arrivals: ({ session }: At, queue: string, limit: number) =>
    session.query<Arrival>(SELECT_ARRIVALS, [queue, limit]),
  async enterGroups({ session }: At, queue: string, groups: readonly EnteredGroup[]) {
    await session.query(ENTER, [
      queue,
      arrayOf(groups.map(({ key }) => key)),
      arrayOf(groups.map(({ weight }) => weight)),
      arrayOf(groups.map(({ weightAt }) => weightAt)),
    ])
  },
  firstGroups: ({ session }: At, queue: string, limit: number) =>
    session.query<Group>(SELECT_FIRST, [queue, limit]),
  lockGrouped(
    { session, machines, now }: At,
    looks: readonly GroupLook[],
    { types }: ClaimRequest,
  ): Promise<GroupedJob[]> {
    return session.query<GroupedJob>(LOCK_GROUPED, [
      now,
      machines.readyStates,
      types === undefined ? null : arrayOf(types),
      arrayOf(looks.map(({ key }) => key)),
      arrayOf(looks.map(({ jobs }) => jobs)),
    ])
  },
  async skimGroups({ session }: At, skims: readonly GroupSkim[]) {
    await session.query(SKIM, [
      arrayOf(skims.map(({ group }) => group)),
      arrayOf(skims.map(({ limitKey }) => limitKey)),
      arrayOf(skims.map(({ by }) => by)),
    ])
  },
  async writeGroups({ session }: At, _queue: string, groups: readonly Turned[]) {
    const keys = arrayOf(groups.map(({ key }) => key))
    const credits = arrayOf(groups.map(({ credit }) => credit))
    await session.query(WRITE, [keys, credits, arrayOf(groups.map(({ toEnd }) => (toEnd ? 1 : 0)))])
    await session.query(REMOVE_EMPTY, [keys])
  },
  async groupsOutOfLine({ session }: At, keys: readonly string[]) {
    const rows = await session.query<{ key: string }>(SELECT_OUT_OF_LINE, [arrayOf(keys)])
    return rows.map(({ key }) => key)
  },
  async rotateQueue({ session }: At, queue: string) {
    await session.query(ROTATE, [queue])
  },
}
