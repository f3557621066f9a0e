/** A job at an earlier time, from its facts and the payloads beside them. */
import { fold } from '../core/job/evolve.ts'
import type { Fact } from '../core/job/facts.ts'
import type { Job } from '../core/job/job.ts'
import type { AuditEntry } from '../stores/audit.ts'

/** A job after one of its facts. */
export interface JobMoment {
  readonly job: Job
  /** The facts up to this moment. */
  readonly facts: readonly Fact[]
  /** The input that an attempt would have received then, as JSON text. */
  readonly input: string | undefined
  /** The result, if the job was committed by then. */
  readonly result: string | undefined
}

/**
 * Returns the job after the fact with this number; `undefined` if there is no such fact. `entries`
 * are all of its facts with their payloads, in order.
 */
export function momentAt(entries: readonly AuditEntry[], seq: number): JobMoment | undefined {
  const until = entries.filter(({ fact }) => fact.seq <= seq)
  const last = until[until.length - 1]
  if (last?.fact.seq !== seq) return undefined
  const facts = until.map(({ fact }) => fact)
  const payloadOf = (isMeant: (trigger: Fact['trigger']) => boolean) =>
    until.findLast(({ fact, payload }) => isMeant(fact.trigger) && typeof payload === 'string')
      ?.payload ?? undefined
  return {
    job: fold(facts) as Job,
    facts,
    input: payloadOf((trigger) => trigger === 'create' || trigger === 'replace'),
    result: payloadOf((trigger) => trigger === 'commit'),
  }
}

/** Returns the facts after number `from`, up to and including number `to`. */
export function factsBetween(
  entries: readonly AuditEntry[],
  from: number,
  to: number,
): readonly Fact[] {
  return entries.map(({ fact }) => fact).filter(({ seq }) => seq > from && seq <= to)
}
