// A store whose worker half is a client of the HTTP protocol: it claims, reports and renews leases
// by requests to a real server on the store that it wraps. All other verbs are those of that store.
// So the contract of stores can be played over HTTP.
import assert from 'node:assert/strict'
import type { Pawl } from 'pawl'
import { createPawl } from 'pawl'
import { type HttpServer, serveHttp } from 'pawl/http'
import {
  CommandInvalid,
  Committed,
  DeadlinePassed,
  InvalidTransition,
  JobNotFound,
  type PawlError,
  StaleFence,
  Unsupported,
  ValueInvalid,
} from '../../src/core/errors.ts'
import { type TraceContext, traceparentOf } from '../../src/core/trace.ts'
import { leaseText, readLease } from '../../src/http/lease-text.ts'
import type { CommitAnswer, CommitTx } from '../../src/stores/contract/commit.ts'
import type {
  Answer,
  ClaimRequest,
  Held,
  Ref,
  Settlement,
  Store,
} from '../../src/stores/contract/store.ts'
import { wrapStore } from '../../src/stores/wrap-store.ts'
import { testEnvironment } from '../../src/testing/test-environment.ts'
import { type Answer as HttpAnswer, send } from './client.ts'

type Body = Record<string, unknown>

/** Every error that a report can be refused with, by its code, with the status of the answer. */
const ERRORS: Readonly<Record<string, [number, (id: string, answer: Body) => PawlError]>> = {
  E_STALE_FENCE: [409, (id) => new StaleFence(id, 'not-held')],
  E_JOB_NOT_FOUND: [404, (id) => new JobNotFound(id)],
  E_DEADLINE_PASSED: [409, (id) => new DeadlinePassed(id, 0)],
  E_COMMITTED: [409, (id) => new Committed(id, 'report')],
  E_UNSUPPORTED: [409, () => new Unsupported('example', 'report')],
  E_COMMAND_INVALID: [400, (_, { title }) => new CommandInvalid('body', String(title))],
  E_REQUEST_REFUSED: [400, (_, { title }) => new CommandInvalid('body', String(title))],
  E_VALUE_INVALID: [400, (_, { title }) => new ValueInvalid('body', String(title))],
  E_TRANSITION_INVALID: [
    409,
    (_, { from, to, allowed }) =>
      new InvalidTransition('example', String(from), String(to), allowed as string[]),
  ],
}

const jsonIn = (text: string | undefined): unknown =>
  text === undefined ? undefined : JSON.parse(text)

/** The worker half. */
class HttpWorker {
  readonly #inner: Store
  readonly #server: HttpServer
  readonly #pawl: Pawl
  /** The lease of a heartbeat contains the id of the job, which a store does not need. */
  readonly #jobIds = new Map<Ref, string>()

  constructor(inner: Store, pawl: Pawl, server: HttpServer) {
    this.#inner = inner
    this.#pawl = pawl
    this.#server = server
  }

  async #post(path: string, body: Body, trace?: TraceContext): Promise<HttpAnswer> {
    const headers = trace && {
      traceparent: traceparentOf(trace),
      ...(trace.traceState !== undefined && { tracestate: trace.traceState }),
    }
    return send(this.#server.url, 'POST', path, { body, ...(headers && { headers }) })
  }

  /** What a refused request says, as the library would have thrown it. */
  #errorOf(answer: HttpAnswer, id = ''): PawlError {
    const [status, make] = ERRORS[answer.json?.code] ?? []
    assert.ok(make, `an error that no store answers with: ${answer.text}`)
    assert.equal(answer.status, status, answer.text)
    return make(id, answer.json)
  }

  claim = async (request: ClaimRequest): Promise<Held[]> => {
    const answer = await this.#post('/api/v1/claim', { ...request })
    if (answer.status !== 200) throw this.#errorOf(answer)
    const held: Held[] = []
    for (const claimed of answer.json.jobs) {
      const { lease, leaseUntil, started, input, traceparent, tracestate, ...rest } = claimed
      const { steps, waits, ...own } = rest
      const { ref, jobId } = readLease(lease)
      const job = await this.#inner.get(jobId)
      assert.ok(job, `a job was claimed that does not exist: ${jobId}`)
      assert.deepEqual({ ...job, ...own }, job, 'a claim shows the job as it is')
      assert.deepEqual(
        [leaseUntil, started],
        [job.execution?.leaseUntil, job.execution?.status === 'IN_PROGRESS'],
      )
      assert.deepEqual([traceparent, tracestate], [null, null])
      assert.equal((await this.#inner.payloads(jobId))?.input, JSON.stringify(input))
      const known = await this.#inner.steps(ref)
      const texts = steps.map((one: { result: unknown }) => JSON.stringify(one.result))
      assert.deepEqual(
        texts,
        known.map(({ payload }) => payload),
      )
      assert.equal(waits.length, (await this.#inner.waits.history(jobId)).waits.length)
      this.#jobIds.set(ref, jobId)
      held.push({ ref, job, input: JSON.stringify(input) })
    }
    return held
  }

  settle = async (settlements: readonly Settlement[], next?: ClaimRequest) => {
    const answers: Answer[] = []
    for (const one of settlements) answers.push(await this.#settleOne(one))
    return { answers, claimed: next === undefined ? [] : await this.claim(next) }
  }

  async #settleOne({ held, command, payload, progress, trace }: Settlement): Promise<Answer> {
    const { kind, fence } = command
    const { job, ref } = held
    const execution = { ...job.execution, claim: fence.claim } as typeof job.execution
    const lease = leaseText({ ref, job: { ...job, attempt: fence.attempt, execution }, input: '' })
    const body = { lease, result: jsonIn(payload), progress: jsonIn(progress) }
    const [verb, own] = REPORTS[kind](command as never)
    const { result, ...rest } = body
    const hasResult = kind === 'step' || kind === 'commit'
    const sent = { ...(hasResult ? body : rest), ...own }
    const answer = await this.#post(`/api/v1/leases/${verb}`, sent, trace)
    if (answer.status !== 200) return { kind: 'rejected', error: this.#errorOf(answer, job.id) }
    return this.#answered(answer.json, job.id)
  }

  /** The store says what the answer leaves out; what it contains has to agree. */
  async #answered({ kind, ...shown }: HttpAnswer['json'], id: string): Promise<Answer> {
    const job = await this.#inner.get(id)
    assert.ok(job)
    const { state, outcome, runAt } = job
    assert.deepEqual(shown, { id, state, outcome, runAt })
    if (kind !== 'done') return { kind, job }
    const fact = (await this.#inner.facts(id)).at(-1)
    assert.ok(fact)
    return { kind, job, fact }
  }

  heartbeat = async (beats: Parameters<Store['heartbeat']>[0], leaseMs: number) => {
    const refs = new Map<string, Ref>()
    const sent = beats.map(({ ref, fence, progress }) => {
      const id = this.#jobIds.get(ref) ?? 'unknown'
      const execution = { claim: fence.claim }
      const lease = leaseText({ ref, job: { id, attempt: fence.attempt, execution } } as Held)
      refs.set(lease, ref)
      return { lease, progress: jsonIn(progress) }
    })
    const answer = await this.#post('/api/v1/leases/heartbeat', { beats: sent, leaseMs })
    if (answer.status !== 200) throw this.#errorOf(answer)
    const refsOf = (leases: readonly string[]) => leases.map((one) => refs.get(one) as Ref)
    const { lost, cancelling } = answer.json
    return { lost: refsOf(lost), cancelling: refsOf(cancelling) }
  }

  /** A worker over HTTP has done its work before it commits, so the function runs first. */
  commit = async (held: Held, ...[work, closing]: WorkAndClosing): Promise<CommitAnswer> => {
    const effects: { name: string; payload: unknown }[] = []
    const tx = {
      effect: (name: string, text: string) => effects.push({ name, payload: JSON.parse(text) }),
    }
    const result = jsonIn(await work(tx as unknown as CommitTx))
    const { usage, progress, trace } = closing?.() ?? {}
    const body = { lease: leaseText(held), result, effects, usage, progress: jsonIn(progress) }
    const answer = await this.#post('/api/v1/leases/commit', body, trace)
    const { id } = held.job
    if (answer.status !== 200) return { kind: 'rejected', error: this.#errorOf(answer, id) }
    const { kind, job } = (await this.#answered(answer.json, id)) as {
      kind: 'done'
      job: Held['job']
    }
    return { kind, job, result: (await this.#inner.payloads(id))?.result }
  }

  close = async (): Promise<void> => {
    await this.#server.close()
    await this.#pawl.close()
    await this.#inner.close()
  }
}

type WorkAndClosing = Parameters<Store['commit']> extends [unknown, ...infer Rest] ? Rest : never
type Commands = { [C in Settlement['command'] as C['kind']]: C }

/** How each command is reported: the verb, and the fields of its body. */
const REPORTS: { [K in keyof Commands]: (command: Commands[K]) => [verb: string, body: Body] } = {
  start: () => ['start', { progress: undefined }],
  step: ({ name, n }) => ['step', { name, n, progress: undefined }],
  commit: ({ usage }) => ['commit', { usage }],
  fail: ({ failure: { message, kind, retryAfterMs }, usage }) => [
    'fail',
    { message, kind, retryAfterMs, usage },
  ],
  release: () => ['release', {}],
  suspend: ({ runAt }) => ['snooze', { runAt }],
  cancel: () => ['cancel', {}],
}

/**
 * The store with its worker half over HTTP. The clock of the server stands still, so its claims
 * recover no expired leases by themselves: the cases of the contract say when that is done.
 */
export async function overHttp(inner: Store): Promise<Store> {
  const pawl = await createPawl({ store: inner, environment: testEnvironment() })
  const server = await serveHttp({ pawl, types: 'any', dashboard: false })
  const worker = new HttpWorker(inner, pawl, server)
  // The first claim looks for expired leases; there are none yet.
  assert.deepEqual(await worker.claim({ worker: 'w', limit: 1, leaseMs: 1000, start: true }), [])
  const { claim, settle, heartbeat, commit, close } = worker
  return wrapStore(inner, { claim, settle, heartbeat, commit, close })
}
