/**
 * Shows after the fact how many jobs ran under a limit, from the ledger alone.
 *
 * A claim opens an attempt, and the fact that commits or aborts it closes it. In between the
 * attempt counts in the gates of its job. After each claim the use of each gate is compared with
 * the number that was in force then, which the records of the limit say. A lowered number stops no
 * job, so only a claim can break the promise (P13).
 *
 * SQLite writes facts in the order in which they took effect. On PostgreSQL a claim that waited for
 * a slot may stand before the fact that freed it, so a claim counts as too many only if no fact
 * within `slackMs` explains it.
 *
 * Reads the whole ledger once. Memory does not grow with it: the use of gates that are in use, the
 * keys of the last jobs, and the first violations are kept.
 */
import { abortSignal, count, text } from '../core/checks.ts'
import { CommandInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks } from '../core/fields.ts'
import type { Fact } from '../core/job/facts.ts'
import { gateName, isQueueGate, isRate, parseGate, readKeys } from '../core/limits/keys.ts'
import { fullName } from '../core/limits/short-names.ts'
import type { Store } from '../stores/contract/store.ts'
import { LimitHistory } from './limit-history.ts'

/** What is audited. */
export interface LimitAuditOptions {
  /** Only this key of the limit. */
  readonly key?: string
  /**
   * Reports what happened at this time or later, in milliseconds.
   * @defaultValue the beginning of the ledger
   */
  readonly since?: number
  /**
   * How far a fact may stand behind a claim that it made possible.
   * @defaultValue 0 on SQLite, 1000 on PostgreSQL
   */
  readonly slackMs?: number
  /** Ends the audit early; the report says that it is not complete. */
  readonly signal?: AbortSignal
}

/** A claim that made more jobs run than were allowed. */
export interface LimitViolation {
  readonly at: number
  readonly gate: string
  readonly jobId: string
  readonly used: number
  readonly max: number
}

/** The most jobs that ran in a part of the time. */
export interface LimitUse {
  readonly from: number
  readonly peak: number
}

/** How a limit was used. */
export interface LimitAudit {
  readonly limit: string
  readonly key?: string
  /** The time of the first and of the last fact that was looked at. */
  readonly from: number
  readonly until: number
  /** False if it was interrupted, or facts could not be read. */
  readonly complete: boolean
  readonly claims: number
  /** The most jobs that ran at once under one gate; absent if none ran. */
  readonly peak?: { readonly used: number; readonly at: number; readonly gate: string }
  /** The time in at most 60 parts of the same length, with the peak of one gate in each. */
  readonly curve: readonly LimitUse[]
  /** The first 100. */
  readonly violations: readonly LimitViolation[]
  readonly violationCount: number
}

const KEY_MAX = 600

const OPTIONS: FieldChecks<LimitAuditOptions> = {
  key: (value: string) => text(value, KEY_MAX),
  since: (value: number) => count(value, 0, Number.MAX_SAFE_INTEGER),
  slackMs: (value: number) => count(value, 0, Number.MAX_SAFE_INTEGER),
  signal: abortSignal,
}

const PAGE = 1000
const KEPT_KEYS = 50_000
const VIOLATIONS_MAX = 100
const SERVER_SLACK_MS = 1000

/** Audits a limit, by a name such as `openai`, `sync/tenant`, `type/sync` or `queue/mail`. */
export async function auditLimit(
  store: Store,
  name: string,
  options: LimitAuditOptions = {},
): Promise<LimitAudit> {
  const limit = fullName(name)
  if (limit === undefined || isRate(limit) || parseGate(limit)?.key !== undefined) {
    throw new CommandInvalid('limit', 'must be the name of a limit that is not a throttle')
  }
  const { kind, names } = parseGate(limit) as NonNullable<ReturnType<typeof parseGate>>
  checkFields(options, OPTIONS, { what: 'options' })
  const { key, since = 0, signal } = options
  const only = key === undefined ? undefined : gateName(kind, ...names, key)
  const history = await LimitHistory.read(store, limit)
  const isServer = store.examination.replication !== undefined
  const slackMs = options.slackMs ?? (isServer ? SERVER_SLACK_MS : 0)
  const fold = new UseFold({ store, limit, only, since, slackMs, history })
  for (let after: string | undefined; ; ) {
    const entries = await store.tail(after, PAGE)
    for (const entry of entries) {
      if ('unreadable' in entry) fold.complete = false
      else await fold.add(entry.fact)
      after = entry.pos
    }
    if (signal?.aborted) fold.complete = false
    if (entries.length < PAGE || signal?.aborted) break
  }
  return { ...fold.report(), ...(key !== undefined && { key }) }
}

interface FoldParts {
  readonly store: Store
  readonly limit: string
  readonly only: string | undefined
  readonly since: number
  readonly slackMs: number
  readonly history: LimitHistory
}

/** An attempt that counts, and a claim that may be one too many. */
interface Suspect {
  readonly violation: LimitViolation
  excess: number
}

class UseFold {
  complete = true
  readonly #parts: FoldParts
  /** The gates of this limit in which jobs count, by job; the last ones that were seen. */
  readonly #gates = new Map<string, readonly string[]>()
  readonly #open = new Map<string, readonly string[]>()
  readonly #used = new Uses()
  readonly #violations: LimitViolation[] = []
  #suspects: Suspect[] = []
  #violationCount = 0
  #claims = 0
  #from: number | undefined
  #until = 0
  #peak: LimitAudit['peak']
  readonly #curve = new Curve()

  constructor(parts: FoldParts) {
    this.#parts = parts
  }

  async add(fact: Fact): Promise<void> {
    const { jobId, at, created, rebased, limitKey, execution } = fact
    this.#until = Math.max(this.#until, at)
    if (at >= this.#parts.since) this.#from ??= at
    this.#confirm(at)
    const attributes = rebased ?? created
    if (attributes !== undefined) this.#learn(jobId, attributes)
    if (limitKey !== undefined) this.#gates.delete(jobId)
    const last = execution?.statuses.at(-1)
    const isOpen = rebased === undefined ? last : (rebased.execution?.status ?? 'DONE')
    if (isOpen === 'LEASED' || isOpen === 'IN_PROGRESS') {
      if (!this.#open.has(jobId) && !isOfEngine(fact)) await this.#claim(jobId, at)
    } else if (isOpen !== undefined) this.#close(jobId, at)
    if (fact.outcome !== undefined) this.#gates.delete(jobId)
    if (at >= this.#parts.since) this.#curve.add(at, this.#used.most)
  }

  /** Keeps which gates a job counts in. */
  #learn(
    jobId: string,
    { limitKey, queue }: { readonly limitKey: string | null; readonly queue: string },
  ): readonly string[] {
    const { limit, only, history } = this.#parts
    const all = isQueueGate(limit) ? [gateName('queue', queue)] : readKeys(limitKey)
    const gates = all.flatMap((one) => {
      const { gate, max = undefined } = typeof one === 'string' ? { gate: one } : one
      if (parseGate(gate)?.limit !== limit || (only !== undefined && gate !== only)) return []
      if (max !== undefined) history.asked(gate, max)
      return gate
    })
    if (this.#gates.size >= KEPT_KEYS) this.#gates.delete(this.#gates.keys().next().value as string)
    this.#gates.set(jobId, gates)
    return gates
  }

  async #gatesOf(jobId: string): Promise<readonly string[]> {
    const known = this.#gates.get(jobId)
    if (known !== undefined) return known
    const job = await this.#parts.store.get(jobId)
    return job === undefined ? [] : this.#learn(jobId, job)
  }

  async #claim(jobId: string, at: number): Promise<void> {
    const gates = await this.#gatesOf(jobId)
    if (gates.length === 0) return
    this.#open.set(jobId, gates)
    const { since, slackMs, history } = this.#parts
    if (at >= since) this.#claims++
    for (const gate of gates) {
      const used = this.#used.change(gate, 1)
      if (at < since) continue
      if (used > (this.#peak?.used ?? 0)) this.#peak = { used, at, gate }
      const max = history.maxAt(gate, at, slackMs)
      if (used > max) {
        this.#suspects.push({ violation: { at, gate, jobId, used, max }, excess: used - max })
      }
    }
    if (slackMs === 0) this.#confirm(Number.POSITIVE_INFINITY)
  }

  #close(jobId: string, at: number): void {
    const gates = this.#open.get(jobId)
    if (gates === undefined) return
    this.#open.delete(jobId)
    for (const gate of gates) {
      this.#used.change(gate, -1)
      for (const suspect of this.#suspects) {
        const { violation } = suspect
        if (violation.gate === gate && at <= violation.at + this.#parts.slackMs) suspect.excess--
      }
    }
    this.#suspects = this.#suspects.filter(({ excess }) => excess > 0)
  }

  /** A claim that nothing has explained by now was one too many. */
  #confirm(now: number): void {
    if (this.#suspects.length === 0) return
    const isOver = ({ violation: { at } }: Suspect) => now > at + 2 * this.#parts.slackMs
    for (const { violation } of this.#suspects.filter(isOver)) {
      this.#violationCount++
      if (this.#violations.length < VIOLATIONS_MAX) this.#violations.push(violation)
    }
    this.#suspects = this.#suspects.filter((one) => !isOver(one))
  }

  report(): LimitAudit {
    this.#confirm(Number.POSITIVE_INFINITY)
    return {
      limit: this.#parts.limit,
      from: this.#from ?? this.#until,
      until: this.#until,
      complete: this.complete,
      claims: this.#claims,
      ...(this.#peak !== undefined && { peak: this.#peak }),
      curve: this.#curve.parts(),
      violations: this.#violations,
      violationCount: this.#violationCount,
    }
  }
}

/** How many jobs run under each gate, and the most of one gate. */
class Uses {
  most = 0
  readonly #used = new Map<string, number>()
  /** How many gates have each use: when the last one leaves the highest, it is one lower. */
  readonly #gates = new Map<number, number>()

  change(gate: string, by: 1 | -1): number {
    const before = this.#used.get(gate) ?? 0
    const after = before + by
    if (after === 0) this.#used.delete(gate)
    else this.#used.set(gate, after)
    const left = (this.#gates.get(before) ?? 0) - 1
    if (left > 0) this.#gates.set(before, left)
    else this.#gates.delete(before)
    this.#gates.set(after, (this.#gates.get(after) ?? 0) + 1)
    if (after > this.most || (before === this.most && left <= 0)) this.most = after
    return after
  }
}

const PARTS_MAX = 60

/** Peaks by parts of equal length, which double when there are too many. */
class Curve {
  #lengthMs = 1000
  #parts = new Map<number, number>()
  #last = 0

  add(at: number, used: number): void {
    const part = Math.floor(at / this.#lengthMs)
    // The use before a fact is that of the part in which it happens as well.
    const peak = Math.max(used, this.#last, this.#parts.get(part) ?? 0)
    this.#last = used
    this.#parts.set(part, peak)
    while (this.#parts.size > PARTS_MAX) this.#halve()
  }

  #halve(): void {
    this.#lengthMs *= 2
    const parts = new Map<number, number>()
    for (const [part, peak] of this.#parts) {
      const whole = Math.floor(part / 2)
      parts.set(whole, Math.max(peak, parts.get(whole) ?? 0))
    }
    this.#parts = parts
  }

  parts(): LimitUse[] {
    const parts = [...this.#parts].sort(([a], [b]) => a - b)
    return parts.map(([part, peak]) => ({ from: part * this.#lengthMs, peak }))
  }
}

/** The engine claims a job past its deadline only to end it, in the same transaction. */
function isOfEngine({ trigger, actor }: Fact): boolean {
  return trigger === 'claim' && actor === 'engine'
}
