/** Gates: what counts jobs that run, and the jobs that wait for one. */
import { LANES } from '../../../core/job/lanes.ts'
import { type Gate, newGate } from '../../../core/limits/gates.ts'
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
import type { Connection } from '../connect.ts'
import type { At } from './at.ts'
import { moveHead } from './strict.ts'

const SELECT_GATES = `
  SELECT gate.* FROM json_each(?) AS item JOIN pawl_gates AS gate ON gate.key = item.value`
const SELECT_OPEN = `
  SELECT * FROM pawl_gates WHERE open_at <= ? ORDER BY open_at, key LIMIT ?`
const SELECT_SETTINGS = `
  SELECT name, max, period_ms, burst, override FROM json_each(?) AS item
  JOIN pawl_limits ON name = item.value`
const UPSERT_GATES = `
  INSERT INTO pawl_gates (${GATE_COLUMNS.join(', ')})
  SELECT ${GATE_COLUMNS.map((_, i) => `value ->> ${i}`).join(', ')} FROM json_each(?) WHERE true
  ON CONFLICT (key) DO UPDATE SET
    ${GATE_COLUMNS.slice(1)
      .map((name) => `${name} = excluded.${name}`)
      .join(', ')}`
const DELETE_GATES = 'DELETE FROM pawl_gates WHERE key IN (SELECT value FROM json_each(?))'

const MOVE_BLOCKED = `
  UPDATE pawl_jobs SET lane = ${LANES.ready}
  WHERE rid IN (
    SELECT rid FROM pawl_jobs WHERE lane = ${LANES.blocked} AND blocked_on = ?1
      AND queue NOT IN (SELECT name FROM pawl_queues WHERE paused_at IS NOT NULL)
    ORDER BY priority, ${orderAt()}, rid LIMIT ?2)`
const SELECT_BLOCKED = `
  SELECT 1 FROM pawl_jobs WHERE lane = ${LANES.blocked} AND blocked_on = ? LIMIT 1`

/** The write lock of the transaction covers every gate. */
export function readGates(
  connection: Connection,
  rows: readonly GateRow[],
  names: Iterable<string> = rows.map(({ key }) => key),
): LockedGates {
  const gates = new Map(rows.map((row) => [row.key, toGate(row)]))
  const rowsOfLimits = connection.all<SettingRow>(SELECT_SETTINGS, listOf(settingNames(names)))
  const settings = new Map(rowsOfLimits.map((row) => [row.name, toSetting(row)]))
  return { gates, settings }
}

function listOf(values: Iterable<Value | readonly Value[]>): string {
  return JSON.stringify([...values])
}

/** A gate without a row is a new one. */
function lockGates(connection: Connection, keys: readonly string[]): LockedGates {
  if (keys.length === 0) return { gates: new Map(), settings: new Map() }
  const names = inOrder(keys)
  const { gates, settings } = readGates(
    connection,
    connection.all<GateRow>(SELECT_GATES, listOf(names)),
    names,
  )
  return { gates: new Map(names.map((key) => [key, gates.get(key) ?? newGate(key)])), settings }
}

function writeGates(connection: Connection, now: number, gates: readonly Gate[]): void {
  const { kept, gone } = toWrite(gates, now)
  if (kept.length > 0) connection.run(UPSERT_GATES, listOf(kept.map(gateValues)))
  if (gone.length > 0) connection.run(DELETE_GATES, listOf(gone))
}

function moveBlocked(connection: Connection, moves: readonly Move[]): Moved[] {
  return moves.map(({ gate, jobs }) => ({
    gate,
    ...(isStrict(gate)
      ? moveHead(connection, gate)
      : { jobs: connection.run(MOVE_BLOCKED, gate, jobs) }),
    left: connection.get(SELECT_BLOCKED, gate) !== undefined,
  }))
}

/** Lowers gates whose jobs have stopped, closes throttles, and makes the next jobs ready. */
export function freeSlots(
  connection: Connection,
  now: number,
  slots: readonly (string | null)[],
  closed: ReadonlyMap<string, number> = new Map(),
  left: readonly string[] = [],
): void {
  const stopped = countSlots(slots)
  const keys = [...stopped.keys(), ...closed.keys(), ...left]
  if (keys.length === 0) return
  const { gates, moves } = releaseGates(lockGates(connection, keys), stopped, closed, now)
  writeGates(connection, now, afterMoves(gates, moveBlocked(connection, moves), now))
}

export const GATES = {
  lockGates: ({ connection }: At, keys: readonly string[]) => lockGates(connection, keys),
  lockOpenGates({ connection, now }: At, limit: number) {
    return readGates(connection, connection.all<GateRow>(SELECT_OPEN, now, limit))
  },
  writeGates: ({ connection, now }: At, gates: readonly Gate[]) =>
    writeGates(connection, now, gates),
  moveBlocked: ({ connection }: At, moves: readonly Move[]) => moveBlocked(connection, moves),
  freeSlots: (
    { connection, now }: At,
    slots: readonly (string | null)[],
    left: readonly string[] = [],
  ) => freeSlots(connection, now, slots, new Map(), left),
}
