/**
 * Invokes children under the fence of an attempt. The first call creates them, with the links and
 * the fact of the wait. A later attempt asks again: if all have ended, the receipt is recorded,
 * with the numbers of the facts that ended them. From then on every answer is read from it.
 */
import { JobNotFound, ReplayMismatch } from '../../core/errors.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import type { After, FlowPlace } from '../../core/job/links.ts'
import { isSameWait, type Wait } from '../../core/job/waits.ts'
import type { InvokeAnswer, InvokeRequest } from '../contract/flows.ts'
import { workerIn } from '../contract/requester.ts'
import type { EnqueueItem, Requester } from '../contract/store.ts'
import { invokedId } from '../derived-ids.ts'
import { NEEDS, type NewLink } from '../link-rows.ts'
import { toFact } from '../rows.ts'
import { Changes } from './changes.ts'
import { createAll, itemOf } from './flows.ts'
import type { Tx, Verb } from './operations.ts'
import type { Read } from './reading.ts'

/**
 * A child, and the number of the fact with which it ended first; null if it has not. A later
 * redrive does not change it.
 */
export interface ChildEnd {
  readonly id: string
  readonly seq: number | null
}

/** The answer before the results of children are read. */
export type Invoked =
  | Exclude<InvokeAnswer, { kind: 'over' }>
  | {
      readonly kind: 'over'
      readonly ends: readonly ChildEnd[]
      readonly job: Job
      readonly fact?: Fact
    }

/** Creates children and waits for them, or returns how they ended. */
export function* invoke(tx: Tx, request: InvokeRequest): Verb<Invoked> {
  const { id, fence, trace } = request
  const { reads, unknown } = yield* tx.lockJobs([id])
  const read = reads.get(id)
  if (read === undefined) return { kind: 'rejected', error: unknown.get(id) ?? new JobNotFound(id) }
  const rows = yield* tx.waitFacts([id])
  const facts = rows.map((row) => toFact(id, row))
  const asked = waitOf(request)
  // If the reply to this call was lost, the attempt has ended: the fence alone would say "stale".
  const earlier = facts.findLast(
    (fact) => fact.execution?.claim === fence.claim && isSameWait(fact.wait, asked),
  )
  if (earlier !== undefined) return { kind: 'suspended', job: read.job, fact: earlier }
  const begun = facts.find((fact) => isSameWait(fact.wait, asked))?.wait
  const wait = begun ?? asked
  if (wait.children !== asked.children) return mismatch(id, wait, asked)
  const receipt = facts.findIndex(({ received }) => isSameWait(received, asked))
  if (receipt >= 0) {
    return { kind: 'over', ends: endsIn(request, rows[receipt]?.payload ?? null), job: read.job }
  }
  const ends = begun === undefined ? [] : yield* tx.childEnds(id, idsOf(request))
  const ended = begun === undefined ? wait.children === 0 : areOver(ends)
  const found = idsOf(request).map((child) => endOf(child, ends))
  const changes = new Changes(tx)
  const command = { kind: 'wait', fence, wait, ended } as const
  const payload = ended ? JSON.stringify(found.map(({ seq }) => seq)) : null
  const answer = changes.answer(read, command, workerIn(trace), payload)
  if (answer.kind === 'rejected') return answer
  const { job } = answer
  // A wait that has not begun, or is not over, leaves a fact.
  const { fact } = answer as { fact: Fact }
  if (begun === undefined && fact.wait !== undefined) yield* createChildren(tx, read, request)
  yield* tx.write(changes)
  return ended ? { kind: 'over', ends: found, job, fact } : { kind: 'suspended', job, fact }
}

function waitOf({ name, n, children, concurrency, onParentEnd }: InvokeRequest): Wait {
  return {
    for: 'children',
    name,
    n,
    until: null,
    children: children.length,
    ...(concurrency !== undefined && { concurrency }),
    ...(onParentEnd === 'abandon' && { abandons: true }),
  }
}

function mismatch(id: string, begun: Wait, asked: Wait): Invoked {
  const words = ({ name, children }: Wait) => [`children "${name}" (${children})`]
  return { kind: 'rejected', error: new ReplayMismatch(id, words(begun), words(asked)) }
}

function idsOf({ id, name, n, children }: InvokeRequest): string[] {
  return children.map((_, i) => invokedId(id, name, n, i))
}

/** Whether no child is left that has not ended; one that is gone has. */
function areOver(ends: readonly ChildEnd[]): boolean {
  return ends.every(({ seq }) => seq !== null)
}

function endOf(id: string, ends: readonly ChildEnd[]): ChildEnd {
  return ends.find((end) => end.id === id) ?? { id, seq: null }
}

/** The ends that a receipt has; of a receipt that cannot be read, none is known. */
function endsIn(request: InvokeRequest, payload: string | null): ChildEnd[] {
  const list = JSON.parse(payload ?? '[]') as readonly (number | null)[]
  return idsOf(request).map((id, i) => ({ id, seq: list[i] ?? null }))
}

/** The keys in the metadata of the fact that creates a child. */
const ENQUEUED_BY = 'enqueuedBy'
const ENQUEUED_AS = 'enqueuedAs'

function* createChildren(tx: Tx, { job }: Read, request: InvokeRequest): Verb<void> {
  const { id, name, n, children, concurrency = children.length, onParentEnd, trace } = request
  const ids = idsOf(request)
  const as = `${name}/${n}`
  yield* tx.refreshMachines()
  const items = children.map((item, i): EnqueueItem => {
    const flow: FlowPlace = { id, n: i, as }
    const after = i < concurrency ? undefined : turnAfter(i - concurrency)
    const jobId = ids[i] as string
    return itemOf(item, { jobId, flow, awaited: true, ...(after && { after }) })
  })
  const metadata = { [ENQUEUED_BY]: job.id, [ENQUEUED_AS]: as }
  const requester: Requester = { ...workerIn(trace), metadata }
  yield* createAll(tx, items, requester)
  const need = onParentEnd === 'abandon' ? NEEDS.end : NEEDS.owned
  const links = ids.flatMap((awaited, i): NewLink[] => {
    const own = { awaited, waiter: id, part: 0, need }
    const next = ids[i + concurrency]
    return next === undefined ? [own] : [own, { awaited, waiter: next, part: 0, need: NEEDS.end }]
  })
  yield* tx.insertLinks(links)
}

/** A child that waits until an earlier one has ended, because of `concurrency`. */
function turnAfter(n: number): After {
  return { groups: [{ name: 'turn', of: [n], need: 'end', list: false }], onFailure: 'park' }
}
