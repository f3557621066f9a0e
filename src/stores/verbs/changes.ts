/**
 * What one call has decided and not yet written. Each command is decided on the present state of a
 * job that was read in this transaction, and what was decided becomes that state. Everything is
 * written at once, at the end: each row that changed, every fact, notices, and the roll-up of ended
 * jobs. A job of an earlier version of its lifecycle is migrated first; if the command is refused
 * or changes nothing, the job stays what it was.
 */
import type { Command } from '../../core/job/commands.ts'
import { decide } from '../../core/job/decide.ts'
import { evolve } from '../../core/job/evolve.ts'
import type { Fact } from '../../core/job/facts.ts'
import { enteredAt, isCommitted, type Job } from '../../core/job/job.ts'
import { LANES, laneOf } from '../../core/job/lanes.ts'
import { LINKS } from '../../core/job/links.ts'
import { groupsLeft } from '../../core/limits/strict.ts'
import type { FactEntry, JobFold } from '../columns.ts'
import { contextOf, ENGINE } from '../contract/requester.ts'
import type { Answer, Ref, Requester } from '../contract/store.ts'
import type { LinkChanges } from '../link-rows.ts'
import { endOf, followRoute, type Migrated, type Route } from '../machines.ts'
import { type NoticeRow, noticeOf } from '../notices.ts'
import type { Moment } from './operations.ts'
import type { Read } from './reading.ts'

/** A row that changed, as it was read and as it is now. */
export interface ChangedRow extends JobFold {
  readonly ref: Ref
  readonly before: Job
  /** Whether the job now follows another version of its lifecycle: `machine` is its number. */
  readonly isMigrated: boolean
}

/** A fact or a notice, with the handle of its job. */
export type Referring<T> = T & { readonly ref: Ref }

interface Change {
  readonly before: Job
  readonly read: Read
  readonly at: number
  readonly machine: number | undefined
}

/** What one call changes. */
export class Changes {
  readonly facts: Referring<FactEntry>[] = []
  readonly notices: { readonly ref: Ref; readonly notice: NoticeRow }[] = []
  /** Throttles that no job may pass until a time. */
  readonly closed = new Map<string, number>()
  readonly #moment: Moment
  readonly #rows = new Map<string, Change>()

  constructor(moment: Moment) {
    this.#moment = moment
  }

  /** The moment of the call. */
  get now(): number {
    return this.#moment.now
  }

  get isEmpty(): boolean {
    return this.facts.length === 0
  }

  /** Decides a command on a job that was locked in this transaction, and notes the decision. */
  answer(
    read: Read,
    command: Command,
    requester: Requester,
    payload: string | null = null,
  ): Answer {
    const { environment, now } = this.#moment
    const { lifecycle, route, retriesAhead } = read
    const context = contextOf(environment, requester, now, retriesAhead)
    const migrated = route && followRoute(route, read.job, contextOf(environment, ENGINE, now))
    if (migrated !== undefined && 'kind' in migrated) return migrated
    const decision = decide(lifecycle, migrated?.job ?? read.job, command, context)
    if (decision.kind === 'rejected') return decision
    if (decision.kind === 'same') return { kind: 'same', job: read.job }
    const { fact } = decision
    if (route && migrated) this.migrate(read, route, migrated)
    const since = enteredAt(read.job)
    this.add(read, fact, payload)
    const hops = migrated && { migrated: migrated.facts }
    return { kind: 'done', job: read.job, fact, since, ...hops }
  }

  /** Notes a fact of a job and applies it to the job. */
  add(read: Read, fact: Fact, payload: string | null): void {
    const { ref, job } = read
    this.#note(read, fact.at)
    this.facts.push({ ref, fact, payload })
    const notice = noticeOf(read.lifecycle, job, fact)
    if (notice !== undefined) this.notices.push({ ref, notice })
    if (fact.gate !== undefined && typeof fact.runAt === 'number') {
      this.closed.set(fact.gate, Math.max(fact.runAt, this.closed.get(fact.gate) ?? 0))
    }
    read.job = evolve(job, fact)
  }

  /** Notes the migration of a job and applies it to the job. */
  migrate(read: Read, route: Route, { job, facts }: Migrated): void {
    this.#note(read, job.updatedAt, endOf(route).machine)
    for (const fact of facts) this.facts.push({ ref: read.ref, fact, payload: null })
    read.job = job
    read.route = undefined
  }

  #note(read: Read, at: number, machine?: number): void {
    const known = this.#rows.get(read.job.id)
    const before = known?.before ?? read.job
    this.#rows.set(read.job.id, { before, read, at, machine: machine ?? known?.machine })
  }

  /** The slots of jobs that are held no longer. */
  freed(): string[] {
    const slots: string[] = []
    for (const { read, at } of this.#rows.values()) {
      const { slots: own, job, lifecycle } = read
      if (own && laneOf(lifecycle, job, at) !== 'held') slots.push(own)
    }
    return slots
  }

  /** The strict groups that jobs have left: each has another first job now. */
  left(): string[] {
    return Array.from(this.#rows.values()).flatMap(({ before, read, at }) => {
      const { job, lifecycle } = read
      if (before.limitKey === null || before.outcome !== null || isCommitted(before)) return []
      return groupsLeft(before.limitKey, job.limitKey, laneOf(lifecycle, job, at))
    })
  }

  /** How the links of these jobs change; `undefined` if none of them has links. */
  links(): LinkChanges | undefined {
    const linked = Array.from(this.#rows.values()).filter(({ read }) => read.job.links !== 0)
    const moved = linked.filter(({ before, read }) => before.outcome !== read.job.outcome)
    if (moved.length === 0) return undefined
    const awaited = moved.filter(({ read }) => read.job.links & LINKS.awaited)
    const parents = moved.filter(({ read }) => read.job.links & LINKS.children)
    return {
      ended: awaited.flatMap(({ read: { job } }) => {
        const { id, outcome, seq } = job
        return outcome === null ? [] : { id, outcome, seq }
      }),
      revived: awaited.flatMap(({ read: { job } }) => (job.outcome === null ? job.id : [])),
      orphaning: parents.flatMap(({ read: { job } }) =>
        job.outcome === null || job.outcome === 'succeeded' ? [] : job.id,
      ),
    }
  }

  /** The rows that changed. */
  rows(): ChangedRow[] {
    return Array.from(this.#rows.values(), ({ before, read, at, machine }) => {
      const { ref, job, lifecycle } = read
      return {
        ref,
        before,
        job,
        lane: LANES[laneOf(lifecycle, job, at)],
        machine: machine ?? 0,
        isMigrated: machine !== undefined,
        leaseUntil: job.execution?.leaseUntil ?? null,
      }
    })
  }
}

/** By how much the number of ended jobs of a queue and a state changes. */
export interface EndedCount {
  readonly queue: string
  readonly state: string
  readonly jobs: number
}

/** Gathers how the roll-up of ended jobs changes; a redriven job is no longer an ended one. */
export class EndedCounts {
  readonly #counts = new Map<string, EndedCount>()

  note(before: Job, after: Job): void {
    if (before.state === after.state) return
    this.#add(before, -1)
    this.#add(after, 1)
  }

  #add({ queue, state, outcome }: Job, by: number): void {
    if (outcome === null) return
    const key = `${state}\0${queue}`
    const jobs = (this.#counts.get(key)?.jobs ?? 0) + by
    this.#counts.set(key, { queue, state, jobs })
  }

  /** Returns what was noted since the last call. */
  take(): EndedCount[] {
    if (this.#counts.size === 0) return []
    const counts = [...this.#counts.values()].filter(({ jobs }) => jobs !== 0)
    this.#counts.clear()
    return counts
  }
}
