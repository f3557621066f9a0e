// Whether an answer agrees with the facts.
//
// It does when there was a moment during its call at which the rules, asked about the job as it
// then was, give this very answer. So a caller that was told `stale` was stale, and one that was
// told `done` finds its own fact in the ledger, written while it was asking.
import { isDeepStrictEqual } from 'node:util'
import { JobNotFound } from '../../src/core/errors.ts'
import type { Command } from '../../src/core/job/commands.ts'
import type { Fact } from '../../src/core/job/facts.ts'
import { findStale, isExpired } from '../../src/core/job/fence.ts'
import type { Job } from '../../src/core/job/job.ts'
import { laneOf } from '../../src/core/job/lanes.ts'
import type { Answer, Requester } from '../../src/stores/contract/store.ts'
import { settled } from '../contract/store/check.ts'
import type { Case, Of } from './case.ts'
import { decideAt, type History, type Met } from './histories.ts'
import type { Told } from './witness.ts'

const WORKER: Requester = { actor: 'worker' }
const CLIENT: Requester = { actor: 'client' }

/** Compares answers with facts, one after the other. */
export class Hearing {
  readonly #case: Case

  constructor(open: Case) {
    this.#case = open
  }

  hear(told: Told): void {
    const { telling } = told
    if (telling.kind === 'answered') this.#hearAnswer(told, telling)
    else if (telling.kind === 'committed') this.#hearCommit(told, telling)
    else if (telling.kind === 'claimed') this.#hearClaim(told, telling)
    else if (telling.kind === 'recovered') this.#hearRecovery(told, telling)
    else if (telling.kind === 'beaten') this.#hearBeat(told, telling)
    else if (telling.kind === 'enqueued') this.#hearEnqueued(told, telling)
    else if (telling.kind === 'too slow' && told.from.time === told.to.time) {
      this.#case.complain(`${told.by} was too slow in no time`)
    }
  }

  /** A caller was told that it wrote this fact: it is there, is new, and nobody else's. */
  #claimFact(told: Told, history: History, seq: number, fact?: Fact): void {
    const recorded = history.facts[seq - 1]
    const key = `${history.id} ${seq}`
    const other = this.#case.authors.get(key)
    if (other !== undefined) this.#case.complain(`${told.by} and ${other} both wrote fact ${key}`)
    this.#case.authors.set(key, told.by)
    if (recorded === undefined || (fact !== undefined && !isDeepStrictEqual(recorded, fact))) {
      this.#case.complain(`${told.by} was told of fact ${key}, which is not in the ledger`)
    }
    if (!history.wroteDuring(told, seq)) {
      this.#case.complain(`${told.by} was told of fact ${key}, which was not written meanwhile`)
    }
  }

  #hearAnswer(told: Told, { jobId, command, requester, answer }: Of<'answered'>): void {
    const history = this.#case.history(jobId)
    if (answer.kind === 'done') {
      this.#claimFact(told, history, answer.fact.seq, answer.fact)
      this.#checkDecided(told, history, answer, command, requester)
      this.#checkFence(told, history, answer.fact, command)
      return
    }
    const explained = history.met(told).some((met) => this.#isSaid(met, command, requester, answer))
    if (!explained) this.#case.complain(`${told.by}: nothing explains ${show(answer)} for ${jobId}`)
  }

  /** Whether the rules say so at this moment. */
  #isSaid(met: Met, command: Command, requester: Requester, answer: Answer): boolean {
    const { lifecycle } = this.#case.evidence.scene
    if (met.job === null) return answer.kind === 'rejected' && answer.error instanceof JobNotFound
    if (answer.kind === 'asked') return laneOf(lifecycle, met.job, met.time) === 'held'
    const known = command.kind === 'step' && this.#knowsStep(met.job, command)
    const said = decideAt(lifecycle, met, known ? { ...command, known } : command, requester)
    if (said.kind === 'rejected') {
      return answer.kind === 'rejected' && answer.error.code === said.error.code
    }
    return said.kind === answer.kind
  }

  #knowsStep({ id, seq }: Job, { name, n }: { name: string; n: number }): boolean {
    const before = this.#case.history(id).facts.slice(0, seq)
    return before.some(({ step }) => step?.name === name && step.n === n)
  }

  /** A fact is what the rules make of the state before it. */
  #checkDecided(
    told: Told,
    history: History,
    { fact }: Extract<Answer, { kind: 'done' }>,
    command: Command,
    requester: Requester,
  ): void {
    const { lifecycle } = this.#case.evidence.scene
    const before = history.met(told).filter(({ job }) => job?.seq === fact.seq - 1)
    const isRight = before.some((met) => {
      const said = decideAt(lifecycle, met, command, requester)
      return said.kind === 'fact' && said.fact.trigger === fact.trigger && said.fact.to === fact.to
    })
    if (!isRight) this.#case.complain(`${told.by}: fact ${fact.seq} was decided on another state`)
  }

  /** Whatever the rules say: a holder moves its own attempt, and while its lease runs. */
  #checkFence(told: Told, history: History, fact: Fact, command: Command): void {
    if (!('fence' in command) || command.fence === undefined) return
    const { attempt, claim } = command.fence
    const before = history.met(told).filter(({ job }) => job?.seq === fact.seq - 1)
    const isHolder = before.some(
      ({ job, time }) =>
        job?.attempt === attempt &&
        job.execution?.claim === claim &&
        job.execution.leaseUntil > time,
    )
    if (!isHolder) this.#case.complain(`P4: ${told.by} moved ${history.id} without holding it`)
  }

  #hearCommit(told: Told, { held, answer }: Of<'committed'>): void {
    const { claim } = held.job.execution as NonNullable<Job['execution']>
    const history = this.#case.history(held.job.id)
    const fence = { attempt: held.job.attempt, claim }
    const command = { kind: 'commit', fence } as const
    if (answer.kind === 'rejected') {
      const said = { jobId: held.job.id, command, requester: WORKER, answer }
      this.#hearAnswer(told, { kind: 'answered', ...said })
      return
    }
    const fact = history.facts.find(({ trigger }) => trigger === 'commit')
    if (fact?.execution?.claim !== claim || fact.execution.attempt !== held.job.attempt) {
      this.#case.complain(`${told.by} was told of a commit that is not its own`)
    }
    if (answer.kind === 'done') {
      this.#claimFact(told, history, answer.job.seq)
      this.#checkFence(told, history, history.facts[answer.job.seq - 1] as Fact, command)
      if (answer.result !== JSON.stringify(claim))
        this.#case.complain(`${told.by} has another's result`)
    }
  }

  #hearClaim(told: Told, { worker, held }: Of<'claimed'>): void {
    const { scene, skipsLocked } = this.#case.evidence
    for (const { job } of held) {
      const history = this.#case.history(job.id)
      this.#claimFact(told, history, job.seq)
      const fact = history.facts[job.seq - 1]
      const own = fact?.trigger === 'claim' && fact.execution?.worker === worker
      if (!own || fact.execution?.claim !== job.execution?.claim) {
        this.#case.complain(`${told.by} holds ${job.id} by a claim that is not its own`)
      }
      const folded = history.states[job.seq]
      if (!folded || !isDeepStrictEqual(settled(folded), settled(job))) {
        this.#case.complain(`${told.by} holds ${job.id} as it never was`)
      }
    }
    if (skipsLocked) return
    const taken = new Set(held.map(({ job }) => job.id))
    for (const history of this.#case.histories.values()) {
      const isFree = ({ job, time }: Met) =>
        job !== null &&
        laneOf(scene.lifecycle, job, time) === 'ready' &&
        laneOf(scene.lifecycle, job, job.updatedAt) === 'ready'
      if (!taken.has(history.id) && history.met(told).every(isFree)) {
        this.#case.complain(`${told.by} was not given ${history.id}, which was ready all the time`)
      }
    }
  }

  #hearRecovery(told: Told, { answers }: Of<'recovered'>): void {
    const taken = new Set<string>()
    for (const answer of answers) {
      if (answer.kind !== 'done') {
        this.#case.complain(`${told.by} was told ${show(answer)}`)
        continue
      }
      const { fact, job } = answer
      const history = this.#case.history(job.id)
      taken.add(job.id)
      this.#claimFact(told, history, fact.seq, fact)
      const before = history.met(told).filter((met) => met.job?.seq === fact.seq - 1)
      if (!before.some((met) => met.job !== null && isExpired(met.job, met.time))) {
        this.#case.complain(`${told.by} took ${job.id} from a holder whose lease ran`)
      }
    }
    if (this.#case.evidence.skipsLocked) return
    for (const history of this.#case.histories.values()) {
      const met = history.met(told)
      const isOver = (one: Met) => one.job !== null && this.#isHeldInVain(one.job, one.time)
      if (!taken.has(history.id) && met.length > 0 && met.every(isOver)) {
        this.#case.complain(`${told.by} left ${history.id}, whose lease was over all the time`)
      }
    }
  }

  #isHeldInVain(job: Job, time: number): boolean {
    const { lifecycle } = this.#case.evidence.scene
    return laneOf(lifecycle, job, time) === 'held' && !job.stalled && isExpired(job, time)
  }

  #hearBeat(told: Told, { jobId, beat, lost }: Of<'beaten'>): void {
    const met = this.#case.history(jobId).met(told)
    const isHolder = ({ job, time }: Met) =>
      job !== null &&
      laneOf(this.#case.evidence.scene.lifecycle, job, time) === 'held' &&
      findStale(job, beat.fence, time) === undefined
    const explained = met.some((one) => isHolder(one) !== lost)
    if (!explained)
      this.#case.complain(`${told.by}: ${lost ? 'lost' : 'kept'} ${jobId} without cause`)
  }

  #hearEnqueued(told: Told, { jobId, answer }: Of<'enqueued'>): void {
    if (answer.kind === 'rejected') {
      const said = { jobId, command: { kind: 'replace' }, requester: CLIENT, answer } as const
      this.#hearAnswer(told, { kind: 'answered', ...said })
      return
    }
    // Only retention with `keys` keeps the keys of removed jobs, and no verb here asks for that.
    if (answer.kind === 'removed') {
      this.#case.complain(`${told.by} was told of a kept key`)
      return
    }
    const { job } = answer
    const history = this.#case.history(job.id)
    if (history.facts.length === 0) this.#case.complain(`P1: ${told.by} was told of no job`)
    if (answer.kind === 'created') this.#claimFact(told, history, 1)
    if (answer.kind === 'replaced') this.#claimFact(told, history, job.seq)
    if (answer.kind === 'existing' && !history.met(told).some((met) => met.job !== null)) {
      this.#case.complain(`${told.by} was told of a job that was gone`)
    }
  }
}

function show(answer: { readonly kind: string }): string {
  const { error } = answer as { error?: { code: string } }
  return error === undefined ? answer.kind : error.code
}
