/**
 * Gates: what counts jobs that run, and the jobs that wait for one.
 *
 * A statement that waited for a lock sees the world as it was before it waited, except for the row
 * itself. So blocked jobs are looked for by a later statement than the one that locked their gate.
 */
import { LANES } from '../../../core/job/lanes.ts'
import type { Gate } from '../../../core/limits/gates.ts'
import { isStrict } from '../../../core/limits/keys.ts'
import { orderAt } from '../../columns.ts'
import {
  countSlots,
  GATE_COLUMNS,
  type GateRow,
  gateValues,
  inOrder,
  type LockedGates,
  type SettingRow,
  settingNames,
  toGate,
  toSetting,
  toWrite,
} from '../../gate-rows.ts'
import type { Value } from '../../rows.ts'
import { afterMoves, type Move, type Moved, releaseGates } from '../../verbs/gates.ts'
import { type Session, statement } from '../connect.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'
import { moveHeads } from './strict.ts'

/**
 * In the order of the array, which is the same everywhere, so that no deadlock is possible. An
 * upsert inserts the rows that are missing, also those that another transaction has just removed.
 * The first row has the limits in force: a claim has kept them from changing before this statement.
 */
const LOCK_GATES = statement(
  (s) => `
  WITH locked AS (
    INSERT INTO ${s}.gates AS gate (key)
    SELECT key FROM unnest($1::text[]) WITH ORDINALITY AS item (key, place) ORDER BY place
    ON CONFLICT (key) DO UPDATE SET used = gate.used RETURNING gate.*
  )
  SELECT *, CASE WHEN row_number() OVER () = 1 THEN (
    SELECT json_agg(limits)::text FROM ${s}.limits WHERE name = ANY ($2::text[])
  ) END AS settings FROM locked`,
)

/** Gates of jobs that were held have a row; without one there is nothing to lower. */
const LOCK_USED = statement(
  (s) => `
  SELECT gate.* FROM unnest($1::text[]) WITH ORDINALITY AS item (key, place)
  JOIN ${s}.gates AS gate ON gate.key = item.key
  ORDER BY item.place FOR UPDATE OF gate`,
)

const LOCK_OPEN = statement(
  (s) => `
  SELECT * FROM ${s}.gates WHERE open_at <= $1 ORDER BY open_at, key LIMIT $2
  FOR UPDATE SKIP LOCKED`,
)

const SELECT_SETTINGS = statement(
  (s) => `
  SELECT name, max, period_ms, burst, override FROM ${s}.limits WHERE name = ANY ($1::text[])`,
)

const COLUMN_TYPES: Readonly<Record<(typeof GATE_COLUMNS)[number], string>> = {
  key: 'text',
  used: 'bigint',
  asked: 'bigint',
  asked_at: 'bigint',
  tat: 'bigint',
  closed_until: 'bigint',
  open_at: 'bigint',
  waiting: 'smallint',
}
/**
 * The parts of a statement that write gates and remove the rows of idle ones. The parameters begin
 * with the number `p`: an array for each column, and the keys of idle gates.
 */
export const wroteGates = (s: string, p: number) => `
  gone AS (DELETE FROM ${s}.gates WHERE key = ANY ($${p + GATE_COLUMNS.length}::text[])),
  wrote AS (
  UPDATE ${s}.gates AS gate SET
    ${GATE_COLUMNS.slice(1)
      .map((name) => `${name} = item.${name}`)
      .join(', ')}
  FROM unnest(${GATE_COLUMNS.map((name, i) => `$${p + i}::${COLUMN_TYPES[name]}[]`).join(', ')})
    AS item (${GATE_COLUMNS.join(', ')})
  WHERE gate.key = item.key AND gate.key = ANY ($${p}::text[]))`

/** The values of these parameters. */
export function gateArrays(gates: readonly Gate[], now: number): Value[] {
  const { kept, gone } = toWrite(gates, now)
  const rows = kept.map(gateValues)
  return [...GATE_COLUMNS.map((_, i) => arrayOf(rows.map((row) => row[i] ?? null))), arrayOf(gone)]
}

const WRITE_GATES = statement((s) => `WITH ${wroteGates(s, 1)} SELECT 1`)

const MOVE_BLOCKED = statement(
  (s) => `
  UPDATE ${s}.jobs SET lane = ${LANES.ready}
  WHERE id = ANY (ARRAY (
    SELECT job.id FROM unnest($1::text[], $2::int[]) AS move (gate, jobs) CROSS JOIN LATERAL (
      SELECT id FROM ${s}.jobs WHERE lane = ${LANES.blocked} AND blocked_on = move.gate
        AND NOT EXISTS (
          SELECT 1 FROM ${s}.queues WHERE name = jobs.queue AND paused_at IS NOT NULL)
      ORDER BY priority, ${orderAt()}, id LIMIT move.jobs FOR UPDATE SKIP LOCKED
    ) AS job))
  RETURNING blocked_on`,
)
const SELECT_LEFT = statement(
  (s) => `
  SELECT gate FROM unnest($1::text[]) AS move (gate)
  WHERE (SELECT 1 FROM ${s}.jobs WHERE lane = ${LANES.blocked} AND blocked_on = gate LIMIT 1)
    IS NOT NULL`,
)

/** Gates with the limits that are in force for them. */
export async function readGates(
  session: Session,
  rows: readonly GateRow[],
  names: Iterable<string> = rows.map(({ key }) => key),
): Promise<LockedGates> {
  const gates = new Map(rows.map((row) => [row.key, toGate(row)]))
  const wanted = settingNames(names)
  const settings =
    wanted.length === 0 ? [] : await session.query<SettingRow>(SELECT_SETTINGS, [arrayOf(wanted)])
  return { gates, settings: new Map(settings.map((row) => [row.name, toSetting(row)])) }
}

async function lockGates(session: Session, keys: readonly string[]): Promise<LockedGates> {
  if (keys.length === 0) return { gates: new Map(), settings: new Map() }
  const values = [arrayOf(inOrder(keys)), arrayOf(settingNames(keys))]
  type Row = GateRow & { readonly settings: string | null }
  const rows = await session.query<Row>(LOCK_GATES, values)
  const text = rows.find(({ settings }) => settings !== null)?.settings ?? '[]'
  const settings = (JSON.parse(text) as SettingRow[]).map(toSetting)
  return {
    gates: new Map(rows.map((row) => [row.key, toGate(row)])),
    settings: new Map(settings.map((one) => [one.name, one])),
  }
}

/** The limits in force matter only if jobs are blocked. */
async function lockUsed(session: Session, keys: readonly string[]): Promise<LockedGates> {
  const rows = await session.query<GateRow>(LOCK_USED, [arrayOf(inOrder(keys))])
  const waiting = rows.filter((row) => row.waiting === 1).map(({ key }) => key)
  return readGates(session, rows, waiting)
}

async function writeGates(session: Session, now: number, gates: readonly Gate[]): Promise<void> {
  if (gates.length > 0) await session.query(WRITE_GATES, gateArrays(gates, now))
}

async function moveBlocked(session: Session, moves: readonly Move[]): Promise<Moved[]> {
  if (moves.length === 0) return []
  const gates = arrayOf(moves.map(({ gate }) => gate))
  const heads = await moveHeads(session, moves.map(({ gate }) => gate).filter(isStrict))
  const rows = await moveFirst(
    session,
    moves.filter(({ gate }) => !isStrict(gate)),
  )
  const left = new Set(
    (await session.query<{ gate: string }>(SELECT_LEFT, [gates])).map(({ gate }) => gate),
  )
  return moves.map(({ gate }) => ({
    gate,
    ...(heads.get(gate) ?? { jobs: rows.filter(({ blocked_on }) => blocked_on === gate).length }),
    left: left.has(gate),
  }))
}

async function moveFirst(session: Session, moves: readonly Move[]) {
  if (moves.length === 0) return []
  const gates = arrayOf(moves.map(({ gate }) => gate))
  const counts = arrayOf(moves.map(({ jobs }) => jobs))
  return session.query<{ blocked_on: string }>(MOVE_BLOCKED, [gates, counts])
}

/**
 * Lowers gates whose jobs have stopped, closes throttles, and makes the next jobs ready. Returns
 * whether jobs waited for one of the gates.
 */
export async function freeSlots(
  session: Session,
  now: number,
  slots: readonly (string | null)[],
  closed: ReadonlyMap<string, number> = new Map(),
  left: readonly string[] = [],
): Promise<boolean> {
  const stopped = countSlots(slots)
  const keys = [...stopped.keys(), ...closed.keys(), ...left]
  if (keys.length === 0) return false
  const areUsed = closed.size === 0 && left.length === 0
  const locked = await (areUsed ? lockUsed(session, keys) : lockGates(session, keys))
  const { gates, moves } = releaseGates(locked, stopped, closed, now)
  await writeGates(session, now, afterMoves(gates, await moveBlocked(session, moves), now))
  return moves.length > 0
}

export const GATES = {
  lockGates: ({ session }: At, keys: readonly string[]) => lockGates(session, keys),
  async lockOpenGates({ session, now }: At, limit: number) {
    return readGates(session, await session.query<GateRow>(LOCK_OPEN, [now, limit]))
  },
  writeGates: ({ session, now }: At, gates: readonly Gate[]) => writeGates(session, now, gates),
  moveBlocked: ({ session }: At, moves: readonly Move[]) => moveBlocked(session, moves),
  async freeSlots(
    { session, now }: At,
    slots: readonly (string | null)[],
    left: readonly string[] = [],
  ) {
    await freeSlots(session, now, slots, new Map(), left)
  },
}
