// What the fault tests share: a database of the test's own, stores on it that end with the test, a
// network that can be broken, and short words for jobs.
import { randomUUID } from 'node:crypto'
import {
  type ClaimRequest,
  type EnqueueItem,
  type Held,
  openPostgresStore,
  type PostgresOptions,
  type Settlement,
  type Store,
} from 'pawl/postgres'
import { DEFAULT_POLICY, type Fact, type JobPolicy, standard } from 'pawl/rules'
import type { Client } from 'pg'
import { onTestFinished } from 'vitest'
import { systemEnvironment } from '../../../src/environment/system.ts'
import { freshStoreDatabase } from '../../support/postgres/databases.ts'
import { type PostgresOptions as Server, startPostgres } from '../../support/postgres/server.ts'
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts'

const { ids } = systemEnvironment()

/** An operator with a name and a reason. */
export const OPERATOR = { actor: 'operator', operator: 'ann', note: 'after the fault' } as const
const LEASE_MS = 30_000

/** Many tries, at once. */
export const PATIENT: JobPolicy = {
  ...DEFAULT_POLICY,
  retry: { ...DEFAULT_POLICY.retry, max: 1000, delayMs: 10, jitter: 0 },
  crashesMax: 1000,
  releasesMax: 1000,
}

/** The connection string of a new database on the shared server. */
export function ownDatabase(): Promise<string> {
  return freshStoreDatabase()
}

/** A server of the test's own. */
export async function ownServer(settings: Server['settings'] = {}) {
  const server = await startPostgres({ settings })
  onTestFinished(() => server.stop())
  return server
}

/** A proxy in front of a server, for as long as the test lasts. */
export async function proxyTo(url: string): Promise<TcpProxy> {
  const { hostname: host, port } = new URL(url)
  const proxy = await startTcpProxy({ host, port: Number(port || 5432) })
  onTestFinished(() => proxy.close())
  return proxy
}

/** A store that is closed when the test has ended, whatever was done to its network. */
export async function open(url: string, options: PostgresOptions = {}): Promise<Store> {
  const store = await openPostgresStore({ connectionString: url, connections: 4, ...options })
  onTestFinished(() => store.close())
  return store
}

/** A new job. */
export function item(command: Partial<EnqueueItem['command']> = {}): EnqueueItem {
  return {
    lifecycle: standard,
    command: { jobId: ids.next(), type: 'order', queue: 'main', ...command },
    input: '{"n":1}',
  }
}

/** Enqueues jobs that must be accepted, and gives their ids. */
export async function accepted(store: Store, items: readonly EnqueueItem[]): Promise<string[]> {
  const answers = await store.enqueue(items)
  return answers.map((answer) => {
    if (answer.kind !== 'created') throw new Error(`answered ${answer.kind}`)
    return answer.job.id
  })
}

/** What a worker asks for; one job, unless said otherwise. */
export function request(fields: Partial<ClaimRequest> = {}): ClaimRequest {
  return { worker: 'worker-1', limit: 1, leaseMs: LEASE_MS, start: true, ...fields }
}

/** Enqueues one job, and claims it. */
export async function hold(store: Store, fields: Partial<ClaimRequest> = {}): Promise<Held> {
  const queue = randomUUID()
  await accepted(store, [item({ queue, policy: PATIENT })])
  const [held] = await store.claim(request({ queues: [queue], ...fields }))
  if (held === undefined) throw new Error('nothing was claimed')
  return held
}

/** The fence of a holder. */
function fenceOf({ job }: Held) {
  return { attempt: job.attempt, claim: job.execution?.claim ?? '' }
}

/** A lease to be renewed. */
export function beatOf(held: Held) {
  return { ref: held.ref, fence: fenceOf(held) }
}

/** A plain success. */
export function success(held: Held): Settlement {
  return { held, command: { kind: 'commit', fence: fenceOf(held) }, payload: '"settled"' }
}

/** A failure, for good or for now. */
export function failed(held: Held, kind: 'terminal' | 'transient' = 'terminal'): Settlement {
  const failure = { class: kind === 'terminal' ? kind : 'retryable', kind, message: 'no' } as const
  return { held, command: { kind: 'fail', fence: fenceOf(held), failure } }
}

/** What happened to a job, in order. */
export async function triggersOf(store: Store, id: string): Promise<Fact['trigger'][]> {
  return (await store.facts(id)).map(({ trigger }) => trigger)
}

/** Makes a table of the user's own, with a row for each commit. */
export async function makeUserRows(client: Client, schema = 'public'): Promise<void> {
  await client.query(`CREATE TABLE ${schema}.user_rows (job uuid NOT NULL)`)
}

/** The jobs that have a row of the user's own, once for each row. */
export async function userRows(client: Client, schema = 'public'): Promise<string[]> {
  const { rows } = await client.query(`SELECT job FROM ${schema}.user_rows ORDER BY job`)
  return rows.map(({ job }) => job)
}
