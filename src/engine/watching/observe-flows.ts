/**
 * Emits what flows, batches and invokes do to jobs: jobs that were made, jobs that were released,
 * parked or ended because of others, and jobs that wait for their children.
 */
import type { Job } from '../../core/job/job.ts'
import { DEPENDENCY_FAILED, LINKS } from '../../core/job/links.ts'
import type { FlowTables } from '../../stores/contract/flows.ts'
import { CLIENT } from '../../stores/contract/requester.ts'
import type { Answer, OnMoved, Requester } from '../../stores/contract/store.ts'
import type { Watch } from './observe-store.ts'

/** How the observer of a store emits events. */
interface Notes {
  noteCreated(watch: Watch, job: Job, requester: Requester): void
  noteMovedAll(watch: Watch, answers: readonly Answer[]): void
  noteAll(
    watch: Watch,
    answers: readonly Answer[],
    askedOf: () => { readonly jobId: string; readonly command: string },
  ): void
}

/** Returns the tables; their answers are also emitted as events. */
export function observeFlows(flows: FlowTables, watch: Watch, notes: Notes): FlowTables {
  const andNote =
    (onMoved: OnMoved | undefined): OnMoved =>
    (answers) => {
      notes.noteMovedAll(watch, answers)
      for (const answer of answers) noteArrival(watch, answer)
      onMoved?.(answers)
    }
  const observed: Partial<FlowTables> = {
    async create(flow, options) {
      const answer = await flows.create(flow, options)
      if (answer.kind === 'created') {
        for (const job of answer.jobs) notes.noteCreated(watch, job, options?.requester ?? CLIENT)
      }
      return answer
    },
    async add(id, members, options) {
      const answer = await flows.add(id, members, options)
      if (answer.kind === 'created') {
        for (const job of answer.jobs) notes.noteCreated(watch, job, options?.requester ?? CLIENT)
      }
      return answer
    },
    close: (id, requester, onMoved) => flows.close(id, requester, andNote(onMoved)),
    wake: (limit, onMoved) => flows.wake(limit, andNote(onMoved)),
    async invoke(request) {
      const answer = await flows.invoke(request)
      const asked = () => ({ jobId: request.id, command: 'invoke' })
      if (answer.kind === 'rejected') notes.noteAll(watch, [answer], asked)
      else if (answer.fact !== undefined) {
        notes.noteAll(watch, [{ kind: 'done', job: answer.job, fact: answer.fact }], asked)
      }
      return answer
    },
  }
  return new Proxy(flows, {
    get(target, name) {
      const own = observed[name as keyof FlowTables]
      if (own !== undefined) return own
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** Emits that a job was released, or what became of it because another one failed. */
function noteArrival(watch: Watch, answer: Answer): void {
  if (answer.kind !== 'done') return
  const { job, fact } = answer
  const dependency = fact.dependency ?? null
  const isFailed = (job.blockedReason ?? job.reason) === DEPENDENCY_FAILED
  // A job whose dependency was redriven waits again.
  if (!isFailed && job.outcome === null && (job.links & LINKS.waits) !== 0) return
  const result = isFailed ? 'dependency-failed' : job.outcome === null ? 'released' : 'ended'
  watch.observe({ type: 'arrived', worker: watch.worker, job, result, dependency })
}
