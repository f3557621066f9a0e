// The record of one interleaving, as a judge works on it: what every caller was told, and what
// really happened to every job. Making it checks the promises that facts and rows must keep by
// themselves.
import type { Fact } from '../../src/core/job/facts.ts'
import type { Job } from '../../src/core/job/job.ts'
import { type Lane, laneOf } from '../../src/core/job/lanes.ts'
import { checkFacts, checkP9 } from '../../src/core/promises.ts'
import type { EffectInfo, Store } from '../../src/stores/contract/store.ts'
import { listAll } from '../contract/store/check.ts'
import { History } from './histories.ts'
import type { Scene } from './scenes.ts'
import type { Moment, Telling, Told } from './witness.ts'

/** What a judge is shown. */
export interface Evidence {
  readonly scene: Scene
  readonly start: Moment
  readonly told: readonly Told[]
  /** Every time that there was. */
  readonly times: readonly number[]
  /** A store that took no part. */
  readonly reader: Store
  /** What functions of commits wrote into the user's own table. */
  readonly runs: readonly { readonly job: string; readonly claim: string }[]
  /** Rows that others have locked are passed over, so that "none" may be said of any. */
  readonly skipsLocked: boolean
}

/** A telling of one kind. */
export type Of<K extends Telling['kind']> = Extract<Telling, { kind: K }>

/** The case, and everything that is wrong with it. */
export class Case {
  readonly complaints: string[] = []
  readonly evidence: Evidence
  readonly histories = new Map<string, History>()
  /** The jobs that there are at the end. */
  readonly rows = new Map<string, Job>()
  readonly effects: EffectInfo[] = []
  /** The facts that somebody was told of, by job and number, and who it was. */
  readonly authors = new Map<string, string>()

  private constructor(evidence: Evidence) {
    this.evidence = evidence
  }

  /** Reads every job with its facts; those of removed jobs are in an archive. */
  static async open(evidence: Evidence): Promise<Case> {
    const { scene, start, told, times, reader } = evidence
    const made = new Case(evidence)
    for (const job of await listAll(reader, {})) made.rows.set(job.id, job)
    made.effects.push(...(await reader.listEffects({}, { limit: 99 })).items)
    const archived = made.#archived()
    for (const id of new Set([...scene.jobs, ...made.rows.keys(), ...archived.keys()])) {
      const row = made.rows.get(id)
      const facts = row === undefined ? (archived.get(id) ?? []) : await reader.facts(id)
      made.histories.set(id, new History(id, facts, start.seqs.get(id) ?? 0, told, times))
      made.#checkPromises(id, facts, row)
    }
    await made.#checkLanes()
    return made
  }

  complain(what: string): void {
    this.complaints.push(what)
  }

  told<K extends Telling['kind']>(kind: K): (Told & { telling: Of<K> })[] {
    return this.evidence.told.filter(
      (told): told is Told & { telling: Of<K> } => told.telling.kind === kind,
    )
  }

  history(id: string): History {
    return this.histories.get(id) ?? new History(id, [], 0, [], [])
  }

  #archived(): Map<string, Fact[]> {
    const longest = new Map<string, Fact[]>()
    for (const { telling } of this.told('pruned')) {
      const own = new Map<string, Fact[]>()
      for (const fact of telling.archived) {
        own.set(fact.jobId, [...(own.get(fact.jobId) ?? []), fact])
      }
      for (const [id, facts] of own) {
        if (facts.length > (longest.get(id)?.length ?? 0)) longest.set(id, facts)
      }
    }
    return longest
  }

  #checkPromises(id: string, facts: readonly Fact[], row: Job | undefined): void {
    if (facts.length === 0) this.complain(`P1: job ${id} is gone without a trace`)
    const { lifecycle } = this.evidence.scene
    const broken = [
      ...checkFacts(lifecycle, facts),
      ...(row === undefined ? [] : checkP9(row, facts)),
    ]
    for (const { promise, seq, what } of broken) {
      this.complain(`${promise}: fact ${seq} of ${id} ${what}`)
    }
  }

  /** The lane is no part of the fold: a job that came due may still be where it waited. */
  async #checkLanes(): Promise<void> {
    const { scene, reader, times } = this.evidence
    const found = new Map<Lane, Set<string>>()
    for (const job of this.rows.values()) {
      const lanes = new Set(
        [job.updatedAt, ...times].map((time) => laneOf(scene.lifecycle, job, time)),
      )
      for (const lane of lanes) {
        const ids =
          found.get(lane) ?? new Set((await listAll(reader, { lane })).map(({ id }) => id))
        found.set(lane, ids)
        if (ids.has(job.id)) lanes.clear()
      }
      if (lanes.size > 0)
        this.complain(`a job in ${job.state} is not in ${[...lanes].join(' or ')}`)
    }
  }
}
