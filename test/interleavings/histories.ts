// What really happened to each job, from its facts alone, and which part of it a caller can have
// met: the states between the beginning and the end of its call.
import type { Command } from '../../src/core/job/commands.ts'
import { decide } from '../../src/core/job/decide.ts'
import type { Decision } from '../../src/core/job/decision.ts'
import { evolve } from '../../src/core/job/evolve.ts'
import type { Fact } from '../../src/core/job/facts.ts'
import type { Job } from '../../src/core/job/job.ts'
import type { Lifecycle } from '../../src/core/lifecycles/lifecycle.ts'
import type { Requester } from '../../src/stores/contract/store.ts'
import type { Told } from './witness.ts'

/** A job as a caller may have met it. */
export interface Met {
  /** Null before the job was created, and after retention removed it. */
  readonly job: Job | null
  readonly time: number
}

/** The history of one job. */
export class History {
  readonly id: string
  readonly facts: readonly Fact[]
  /** The job after each number of facts; null after none. */
  readonly states: readonly (Job | null)[]
  /** How many facts it had when the callers began. */
  readonly start: number
  readonly #told: readonly Told[]
  readonly #times: readonly number[]

  constructor(
    id: string,
    facts: readonly Fact[],
    start: number,
    told: readonly Told[],
    times: readonly number[],
  ) {
    this.id = id
    this.facts = facts
    this.start = start
    this.#told = told
    this.#times = times
    const states: (Job | null)[] = [null]
    for (const fact of facts) states.push(evolve(states.at(-1) ?? null, fact))
    this.states = states
  }

  /** What the job was, at every moment of a call; leases as heartbeats may have left them. */
  met({ from, to }: Told): Met[] {
    const before = from.seqs.get(this.id)
    const after = to.seqs.get(this.id)
    const first = before ?? (this.start === 0 ? 0 : this.facts.length + 1)
    const states = this.states.slice(first, (after ?? this.facts.length) + 1)
    if (after === undefined) states.push(null)
    const times = this.#times.filter((time) => time >= from.time && time <= to.time)
    return states
      .flatMap((job) => this.#leases(job))
      .flatMap((job) => times.map((time) => ({ job, time })))
  }

  /** Whether a fact was written while a call was under way. */
  wroteDuring({ from, to }: Told, seq: number): boolean {
    const before = from.seqs.get(this.id) ?? 0
    const after = to.seqs.get(this.id) ?? this.facts.length
    return seq > before && seq <= after
  }

  /** Heartbeats write no facts: those that came in time and were not refused renewed the lease. */
  #leases(job: Job | null): (Job | null)[] {
    if (job?.execution == null) return [job]
    const { execution } = job
    const leases = [execution.leaseUntil]
    for (const { telling, from, to } of this.#told) {
      if (telling.kind !== 'beaten' || telling.lost || telling.jobId !== this.id) continue
      const isInTime =
        telling.beat.fence.claim === execution.claim && from.time < Math.max(...leases)
      if (isInTime) leases.push(...[from.time, to.time].map((time) => time + telling.leaseMs))
    }
    return leases.map((leaseUntil) => ({ ...job, execution: { ...execution, leaseUntil } }))
  }
}

/** What the rules say to a command at a moment. */
export function decideAt(
  lifecycle: Lifecycle,
  { job, time }: Met,
  command: Command,
  requester: Requester,
): Decision {
  return decide(lifecycle, job, command, { ...requester, now: time, random: 0.5 })
}
