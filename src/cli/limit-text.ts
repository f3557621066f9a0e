/** Limits as lines of text. Texts of users in them are not escaped. */
import { span } from '../core/format.ts'
import { isRate, limitOf, parseGate } from '../core/limits/keys.ts'
import { shortName } from '../core/limits/short-names.ts'
import { stamp } from '../environment/times.ts'
import {
  BLOCKED_MAX,
  type GateHolder,
  type GateInfo,
  type LimitInfo,
  type LimitRecord,
  type LimitValues,
} from '../stores/contract/limits.ts'

/** A limit with its gate, if it has one, and with what is in force for it. */
export interface LimitLine {
  readonly limit: string
  readonly key?: string
  readonly gate: GateInfo
  readonly setting?: LimitInfo
  /** The job that started first, if only one runs. */
  readonly holder?: GateHolder
}

export const COLUMNS = [
  { head: 'limit' },
  { head: 'key' },
  { head: 'in use', right: true },
  { head: 'limit', right: true },
  { head: 'blocked', right: true },
  { head: 'oldest', right: true },
  { head: 'held by, set by' },
]

export function cellsOf(line: LimitLine, now: number): string[] {
  const { gate, limit, key } = line
  const since = gate.blockedSince
  return [
    shortName(limit),
    key ?? '-',
    isRate(limit) ? '-' : String(gate.used),
    maxText(line),
    blockedText(gate),
    since === undefined ? '-' : span(now - since),
    [...holderText(line, now), ...opensText(gate, now), ...overrideText(line.setting)].join('; '),
  ]
}

export function blockedText({ blocked }: GateInfo): string {
  return blocked >= BLOCKED_MAX ? `${BLOCKED_MAX} or more` : String(blocked)
}

/** The number in force, and what the code says if an operator has set another one. */
export function maxText({ gate: { max }, setting }: Pick<LimitLine, 'gate' | 'setting'>): string {
  const shown = max === null ? 'by input' : String(max)
  if (setting === undefined) return shown
  if (setting.periodMs !== null) return `${shown} in ${span(setting.periodMs)}`
  if (setting.override === null) return shown
  return setting.max === null ? `${shown} (code: by input)` : `${shown} (code: ${setting.max})`
}

function holderText({ gate, holder }: LimitLine, now: number): string[] {
  if (gate.used === 0) return []
  if (holder === undefined) return [`${gate.used} ${gate.used === 1 ? 'job' : 'jobs'}`]
  return [`${holder.id} on ${holder.worker}, ${span(now - holder.startedAt)}`]
}

function opensText({ opensAt }: GateInfo, now: number): string[] {
  return opensAt === undefined || opensAt <= now ? [] : [`opens in ${span(opensAt - now)}`]
}

export function overrideText(setting: LimitInfo | undefined): string[] {
  if (setting === undefined || setting.override === null) return []
  const why = setting.overrideNote === null ? '' : `: ${setting.overrideNote}`
  return [`${setting.overrideBy ?? 'unknown'}${why}`]
}

/** Describes a change: `limit 60 → 20`. */
export function changeText({ action, before, after }: LimitRecord): string {
  const said = action === 'declare' ? 'code' : 'override'
  return action === 'declare'
    ? `${said} ${codeText(before)} → ${codeText(after)}`
    : `${said} ${before.override ?? 'none'} → ${after.override ?? 'none'}`
}

function codeText({ max, periodMs, version }: LimitValues): string {
  if (version === 0) return 'none'
  const number = max === null ? 'by input' : String(max)
  const period = periodMs === null ? '' : ` in ${span(periodMs)}`
  return `${number}${period} (version ${version})`
}

export function recordText(record: LimitRecord): string {
  const { at, name, actor, operator, note } = record
  const key = parseGate(name)?.key
  const what = `${shortName(limitOf(name))}${key === undefined ? '' : ` ${key}`}`
  const who = operator === undefined ? actor : `${actor} ${operator}`
  const why = note === undefined ? '' : `: ${note}`
  return `${stamp(at)} ${what} ${changeText(record)}, by ${who}${why}`
}
