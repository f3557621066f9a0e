/** The options by which facts are chosen, the same for every audit. */
import { FACT_CODES } from '../core/job/facts.ts'
import type { AuditFilter } from '../stores/audit.ts'
import { type Call, type OptionSpec, textOf } from './spec.ts'
import { readPast } from './times.ts'

/** Conditions; those that are given are combined. */
export const AUDIT_OPTIONS: readonly OptionSpec[] = [
  { flags: '--job <id>', says: 'facts of this job' },
  {
    flags: '--actor <kind>',
    says: 'made by this kind of actor',
    choices: ['worker', 'client', 'engine', 'doctor', 'operator'],
  },
  { flags: '--operator <name>', says: 'made by this person' },
  { flags: '--worker <id>', says: 'of an attempt of this worker, also its expiry' },
  { flags: '--trigger <kind>', says: 'what happened', choices: Object.keys(FACT_CODES) },
  { flags: '--from-state <state>', says: 'that left this state, also on the way' },
  { flags: '--to-state <state>', says: 'that entered this state, also on the way' },
  { flags: '--reason <word>', says: 'with this reason' },
  { flags: '--from <time>', says: 'since a date, or so long ago (1h)' },
  { flags: '--before <time>', says: 'before a date, or longer ago (1h)' },
]

/** The options whose texts the filter has under another name, or the same. */
const TEXTS = {
  job: 'jobId',
  actor: 'actor',
  operator: 'operator',
  worker: 'worker',
  trigger: 'trigger',
  fromState: 'fromState',
  toState: 'toState',
  reason: 'reason',
} as const

/** The filter that the options of a call make, at a time of the store; empty if there are none. */
export function auditFilterOf(call: Call, now: number): AuditFilter {
  const texts = Object.entries(TEXTS).map(([option, field]) => [field, textOf(call, option)])
  const times = ['from', 'before'].map((name) => {
    const text = textOf(call, name)
    return [name, text === undefined ? undefined : readPast(text, name, now)]
  })
  const given = [...texts, ...times].filter(([, value]) => value !== undefined)
  return Object.fromEntries(given) as AuditFilter
}
