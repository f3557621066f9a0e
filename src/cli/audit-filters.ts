/** The options that select facts, for all audit commands. */
import { FACT_CODES } from '../core/job/facts.ts'
import type { AuditFilter } from '../stores/audit.ts'
import { type Call, type OptionSpec, textOf } from './spec.ts'
import { readPast } from './times.ts'

/** A fact must match all given conditions. */
export const AUDIT_OPTIONS: readonly OptionSpec[] = [
  { flags: '--job <id>', says: 'facts of this job' },
  {
    flags: '--actor <kind>',
    says: 'caused by this kind of actor',
    choices: ['worker', 'client', 'engine', 'doctor', 'operator'],
  },
  { flags: '--operator <name>', says: 'caused by this operator' },
  { flags: '--worker <id>', says: 'about attempts of this worker, including their expiry' },
  { flags: '--trigger <kind>', says: 'what happened', choices: Object.keys(FACT_CODES) },
  { flags: '--from-state <state>', says: 'that left this state, also as an intermediate one' },
  { flags: '--to-state <state>', says: 'that entered this state, also as an intermediate one' },
  { flags: '--reason <word>', says: 'with this reason' },
  { flags: '--from <time>', says: 'since a date, or since a time ago (1h)' },
  { flags: '--before <time>', says: 'before a date, or longer than a time ago (1h)' },
]

/** Options and their fields in the filter. */
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

/** Builds the filter from the options of a call. `now` is the time of the store. */
export function auditFilterOf(call: Call, now: number): AuditFilter {
  const texts = Object.entries(TEXTS).map(([option, field]) => [field, textOf(call, option)])
  const times = ['from', 'before'].map((name) => {
    const text = textOf(call, name)
    return [name, text === undefined ? undefined : readPast(text, name, now)]
  })
  const given = [...texts, ...times].filter(([, value]) => value !== undefined)
  return Object.fromEntries(given) as AuditFilter
}
