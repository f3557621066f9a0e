/** Waits and signals, behind the contract of `../contract/waits.ts`. */

import type { JsonBounds } from '../../core/canonical-json.ts'
import { CommandInvalid, JobNotFound, type PawlError } from '../../core/errors.ts'
import type { Fact } from '../../core/job/facts.ts'
import { findSignal, findWait, isSameWait } from '../../core/job/waits.ts'
import { checkRequester, workerIn } from '../contract/requester.ts'
import { findPayloadFault } from '../contract/requests.ts'
import type { Answer, Requester } from '../contract/store.ts'
import {
  SIGNALS_MAX,
  type SignalRecord,
  type SignalRequest,
  type SignalSender,
  type WaitAnswer,
  type WaitEnd,
  type WaitHistory,
  type WaitRecord,
  type WaitRequest,
  type WaitTables,
} from '../contract/waits.ts'
import { type FactRow, toFact } from '../rows.ts'
import { Changes } from './changes.ts'
import type { Tx, Verb } from './operations.ts'
import type { TableAccess } from './run-tables.ts'

/** A fact of a signal or a wait, with the payload that is stored beside it. */
export type WaitFactRow = FactRow & { readonly job_id: string; readonly payload: string | null }

/** The operations of these verbs. */
export interface WaitOperations {
  /** The facts of signals and waits of these jobs, in their order. */
  waitFacts(ids: readonly string[]): readonly WaitFactRow[]
}

export class StoredWaits implements WaitTables {
  readonly #access: TableAccess
  readonly #bounds: JsonBounds

  constructor(access: TableAccess, bounds: JsonBounds) {
    this.#access = access
    this.#bounds = bounds
  }

  async signal(
    ids: readonly string[],
    signal: SignalRequest,
    requester: Requester,
    joined?: unknown,
  ): Promise<Answer[]> {
    const fault = findPayloadFault('payload', signal.payload, this.#bounds)
    if (fault !== undefined) throw fault
    checkRequester(requester)
    const verb = (tx: Tx) => send(tx, ids, signal, requester)
    if (joined !== undefined) return this.#access.join(joined, verb)
    return this.#access.change('waits.signal', verb)
  }

  async wait(request: WaitRequest): Promise<WaitAnswer> {
    if (request.wait.for === 'children') {
      return rejected(new CommandInvalid('wait.for', 'must not be children: use `flows.invoke`'))
    }
    return this.#access.change('waits.wait', (tx) => wait(tx, request))
  }

  history(id: string): Promise<WaitHistory> {
    return this.#access.look(function* (tx) {
      return historyOf(yield* tx.waitFacts([id]))
    })
  }
}

/** Locks the jobs, decides and writes. A job that is refused does not affect the others. */
function* send(
  tx: Tx,
  ids: readonly string[],
  { name, key, payload }: SignalRequest,
  requester: Requester,
): Verb<Answer[]> {
  const { reads, unknown } = yield* tx.lockJobs(ids)
  // After the lock, so that no signal and no wait can come between.
  const facts = (yield* tx.waitFacts([...reads.keys()])).map((row) => toFact(row.job_id, row))
  const changes = new Changes(tx)
  const sent = new Set<string>()
  const answers = ids.map((id): Answer => {
    const read = reads.get(id)
    if (read === undefined) return rejected(unknown.get(id) ?? new JobNotFound(id))
    const own = facts.filter(({ jobId }) => jobId === id)
    const { known: isStored, awaited } = findSignal(own, { name, key })
    const known = isStored || sent.has(id)
    if (!known && own.filter(({ signal }) => signal !== undefined).length >= SIGNALS_MAX) {
      return rejected(
        new CommandInvalid('signal', `must not be sent more than ${SIGNALS_MAX} times`),
      )
    }
    const command = { kind: 'signal', name, key, known, awaited } as const
    const answer = changes.answer(read, command, requester, payload)
    if (answer.kind === 'done') sent.add(id)
    return answer
  })
  yield* tx.write(changes)
  return answers
}

/** Whether a signal is there is read under the lock of the job, and decided in this transaction. */
function* wait(tx: Tx, { id, fence, wait: asked, trace }: WaitRequest): Verb<WaitAnswer> {
  const { reads, unknown } = yield* tx.lockJobs([id])
  const read = reads.get(id)
  if (read === undefined) return rejected(unknown.get(id) ?? new JobNotFound(id))
  const rows = yield* tx.waitFacts([id])
  const facts = rows.map((row) => toFact(id, row))
  // If the reply to this wait was lost, the attempt has ended: the fence alone would say "stale".
  const earlier = facts.findLast(
    (fact) => fact.execution?.claim === fence.claim && isSameWait(fact.wait, asked),
  )
  if (earlier !== undefined) return { kind: 'suspended', job: read.job, fact: earlier }
  const found = findWait(facts, asked)
  const changes = new Changes(tx)
  const command = { kind: 'wait', fence, ...found } as const
  const answer = changes.answer(read, command, workerIn(trace))
  yield* tx.write(changes)
  if (answer.kind === 'rejected') return answer
  const { job } = answer
  const { waits, signals } = historyOf(rows)
  if (answer.kind !== 'done') {
    const recorded = waits.find((one) => isSameWait(one, asked))
    return { kind: 'over', end: recorded?.end as WaitEnd, job }
  }
  const { fact } = answer
  if (fact.received === undefined) return { kind: 'suspended', job, fact }
  const { signal } = fact.received
  return { kind: 'over', end: endOf(signals.find(({ seq }) => seq === signal)), job, fact }
}

function rejected(error: PawlError): { readonly kind: 'rejected'; readonly error: PawlError } {
  return { kind: 'rejected', error }
}

/** The waits and signals of a job, by its facts. */
function historyOf(rows: readonly WaitFactRow[]): WaitHistory {
  const waits = new Map<string, WaitRecord>()
  const signals = new Map<number, SignalRecord>()
  for (const row of rows) {
    const fact = toFact(row.job_id, row)
    const { seq, at, signal, wait: begun, received } = fact
    if (signal !== undefined) {
      const payload = row.payload ?? 'null'
      signals.set(seq, { seq, at, ...signal, payload, ...senderOf(fact) })
    }
    if (begun !== undefined) waits.set(keyOf(begun), begun)
    if (received !== undefined) {
      const sent = received.signal === undefined ? undefined : signals.get(received.signal)
      if (sent !== undefined) signals.set(sent.seq, { ...sent, receivedBy: seq })
      const known = waits.get(keyOf(received))
      waits.set(keyOf(received), {
        ...whatOf(received),
        until: known?.until ?? at,
        end: received.for === 'children' ? { kind: 'ended' } : endOf(sent),
      })
    }
  }
  return { waits: [...waits.values()], signals: [...signals.values()] }
}

const whatOf = ({ for: what, name, n }: NonNullable<Fact['received']>) => ({ for: what, name, n })

const keyOf = ({ for: what, name, n }: Pick<WaitRecord, 'for' | 'name' | 'n'>) =>
  `${what}/${n}/${name}`

function senderOf({ actor, operator, metadata, note }: Fact): SignalSender {
  const by = operator ?? metadata?.caller ?? actor
  return note === undefined ? { by } : { by, note }
}

function endOf(sent: SignalRecord | undefined): WaitEnd {
  if (sent === undefined) return { kind: 'passed' }
  const { payload, by, note } = sent
  return { kind: 'received', payload, by, ...(note !== undefined && { note }) }
}
