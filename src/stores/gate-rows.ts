/** How gates and limits are kept as rows, the same in every store. */
import { type Gate, isIdle, type LimitSetting, type LimitSettings } from '../core/limits/gates.ts'
import { compareGates, limitOf } from '../core/limits/keys.ts'
import type { Value } from './rows.ts'

/** A row of `gates`. */
export interface GateRow {
  readonly key: string
  readonly used: number
  readonly asked: number | null
  readonly asked_at: number | null
  readonly tat: number | null
  readonly closed_until: number | null
  readonly open_at: number | null
  readonly waiting: number
}

/** Its columns, in the order of `gateValues`. */
export const GATE_COLUMNS = [
  'key',
  'used',
  'asked',
  'asked_at',
  'tat',
  'closed_until',
  'open_at',
  'waiting',
] as const

export function toGate(row: GateRow): Gate {
  return {
    key: row.key,
    used: row.used,
    asked: row.asked,
    askedAt: row.asked_at,
    tat: row.tat,
    closedUntil: row.closed_until,
    openAt: row.open_at,
    waiting: row.waiting === 1,
  }
}

export function gateValues(gate: Gate): Value[] {
  const { key, used, asked, askedAt, tat, closedUntil, openAt, waiting } = gate
  return [key, used, asked, askedAt, tat, closedUntil, openAt, waiting ? 1 : 0]
}

/** The columns of `limits` that claims read. */
export interface SettingRow {
  readonly name: string
  readonly max: number | null
  readonly period_ms: number | null
  readonly burst: number | null
  readonly override: number | null
}

export function toSetting(row: SettingRow): LimitSetting {
  const { name, max, period_ms: periodMs, burst, override } = row
  return { name, max, periodMs, burst, override }
}

/** Gates that are locked, and the limits that are in force for them. */
export interface LockedGates {
  readonly gates: ReadonlyMap<string, Gate>
  readonly settings: LimitSettings
}

/** The names of the limits of gates, and the gates themselves: a key may have its own number. */
export function settingNames(gates: Iterable<string>): string[] {
  return [...new Set([...gates].flatMap((gate) => [gate, limitOf(gate)]))]
}

/** Gates in the order in which they are locked everywhere. */
export function inOrder(gates: Iterable<string>): string[] {
  return [...new Set(gates)].sort(compareGates)
}

/** The gates that a held job counts in, as its row names them. */
export function slotsIn(text: string | null | undefined): string[] {
  return text ? text.split(' ') : []
}

/** How many jobs have stopped, by gate. */
export function countSlots(texts: readonly (string | null)[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const gate of texts.flatMap(slotsIn)) counts.set(gate, (counts.get(gate) ?? 0) + 1)
  return counts
}

/** Gates that have to be written, and those whose rows say nothing any more. */
export function toWrite(
  gates: Iterable<Gate>,
  now: number,
): { readonly kept: readonly Gate[]; readonly gone: readonly string[] } {
  const all = [...gates]
  return {
    kept: all.filter((gate) => !isIdle(gate, now)),
    gone: all.filter((gate) => isIdle(gate, now)).map(({ key }) => key),
  }
}

/** When something becomes due: a job, or a gate that blocks jobs. */
export interface NextDue {
  readonly job: number | null
  readonly gate: number | null
}

/** The earlier of the two; `undefined` if there is neither. */
export function earliest(next: NextDue | undefined): number | undefined {
  const { job = null, gate = null } = next ?? {}
  if (job === null || gate === null) return job ?? gate ?? undefined
  return Math.min(job, gate)
}
