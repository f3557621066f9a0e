/**
 * The process of `pawl dev` that runs your code: HTTP API and worker. `messages.ts` describes what
 * it says. Each change of the files gets a process of its own, so nothing of the old code is left,
 * and code that ends its process or never returns does not harm `pawl dev` itself.
 */
import { hostname } from 'node:os'
import { PawlError } from '../../core/errors.ts'
import { isCommitted } from '../../core/job/job.ts'
import { withoutSecrets } from '../../core/redact.ts'
import { createPawl } from '../../engine/create-pawl.ts'
import type { Pawl } from '../../engine/pawl.ts'
import { placeOf } from '../../engine/store-options.ts'
import type { PawlEvent } from '../../engine/watching/events.ts'
import { PrometheusMetrics } from '../../engine/watching/prometheus.ts'
import type { JobWorker } from '../../engine/worker/worker.ts'
import { type HttpServer, serveHttp } from '../../http/node.ts'
import { Unexpected } from '../errors.ts'
import { loadFiles } from '../job-files.ts'
import { createOwnFolder } from '../opening.ts'
import { loadRunFiles, servedRuns } from '../run-files.ts'
import { resolveSettings, type Settings } from '../settings.ts'
import { thrownLines } from '../thrown-text.ts'
import type { FromChild, ToChild } from './messages.ts'

const PORTS_TRIED = 20

let settings: Settings | undefined
let pawl: Pawl | undefined
let server: HttpServer | undefined
let worker: JobWorker | undefined
let stops = 0
const metrics = new PrometheusMetrics()

process.on('message', (message: ToChild) => void receive(message).catch(fail))
process.on('disconnect', () => {
  // The parent has died: release what runs, so that nothing works unseen.
  void stop().catch(() => process.exit(1))
  void stop()
})
process.on('unhandledRejection', (reason) => {
  say({ kind: 'event', event: 'unhandled', text: String(reason) })
})
// Ctrl-C reaches every process of a terminal, but the parent decides when this one stops.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})

async function receive(message: ToChild): Promise<void> {
  if (message.kind === 'open') return open(message)
  if (message.kind === 'start') return start(message.port)
  return stop()
}

function say(message: FromChild): void {
  if (process.connected) process.send?.(message)
}

function fail(thrown: unknown): void {
  const error = thrown instanceof PawlError ? thrown : new Unexpected(thrown)
  const { code, message, hint } = error
  process.send?.({ kind: 'failed', code, message, hint } satisfies FromChild, () => process.exit(1))
}

async function open({ options, withJobs }: Extract<ToChild, { kind: 'open' }>): Promise<void> {
  const own = await resolveSettings({ options, env: process.env, cwd: process.cwd() })
  settings = own
  const files = withJobs ? own.jobs.value : []
  const { jobs, schedules } = await loadFiles(files)
  const { value: store, from: storeFrom } = own.store
  const place = placeOf(store)
  if (place.kind === 'sqlite') createOwnFolder(place.options.path)
  const retention = own.retention.value
  pawl = await createPawl({
    store,
    jobs,
    schedules,
    metrics,
    connect: 'wait',
    onFindings: 'warn',
    onEvent: report,
    ...(retention && { retention }),
  })
  say({
    kind: 'opened',
    store: withoutSecrets(store),
    storeFrom,
    configFile: own.configFile,
    jobFiles: files,
    types: jobs.map(({ name }) => name),
    schedules: schedules.map(({ name }) => name),
    port: own.ofProcesses().port.value,
    retention: retention !== undefined || jobs.some((job) => job.retention !== undefined),
  })
}

async function start(port: number): Promise<void> {
  if (pawl === undefined || settings === undefined) throw new Error('start came before open')
  const { queues, concurrency, lease, drain, redactKeys } = settings.ofProcesses()
  const runs = await servedRuns(settings, pawl, await loadRunFiles(settings.runs.value))
  const own = {
    ...(redactKeys.value.length > 0 && { redactKeys: redactKeys.value }),
    ...(runs && { runs }),
  }
  server = await listen({ pawl, metrics, ...own }, port)
  if (pawl.internals.jobs.size > 0) {
    worker = await pawl.work({
      id: `dev-${hostname()}-${process.pid}`,
      concurrency: concurrency.value,
      ...(queues.value.length > 0 && { queues: queues.value }),
      ...(lease.value !== undefined && { lease: lease.value }),
      ...(drain.value !== undefined && { drain: drain.value }),
    })
  }
  const { url } = server
  const used = Number(new URL(url).port)
  const hasDashboard = await answersPage(url)
  say({ kind: 'started', url, port: used, hasDashboard, worker: worker?.id })
}

/** Takes the next free port if the wanted one is taken, and after some tries any. */
async function listen(
  options: Parameters<typeof serveHttp>[0],
  wanted: number,
): Promise<HttpServer> {
  for (let tried = 0; ; tried++) {
    const port = wanted === 0 || tried === PORTS_TRIED ? 0 : wanted + tried
    try {
      return await serveHttp({ ...options, port: port > 65_535 ? 0 : port })
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (port === 0 || (code !== 'EADDRINUSE' && code !== 'EACCES')) throw error
    }
  }
}

async function answersPage(url: string): Promise<boolean> {
  const response = await fetch(`${url}/`, { headers: { accept: 'text/html' } }).catch(() => null)
  await response?.body?.cancel()
  return response?.ok === true
}

/** The first call drains the worker and exits; a second one releases its jobs at once. */
async function stop(): Promise<void> {
  stops++
  const stopped = worker?.stop()
  if (stops > 1) return
  await server?.close()
  say({ kind: 'stopping' })
  await stopped
  await pawl?.close()
  process.exit(0)
}

function report(event: PawlEvent): void {
  switch (event.type) {
    case 'started':
    case 'reported': {
      const { id: jobId, type, state, attempt, outcome, error } = event.job
      const hasSucceeded = outcome === 'succeeded' || isCommitted(event.job)
      const became = hasSucceeded && outcome === null ? 'committed' : state
      const text = error === null ? {} : { text: error.message }
      say({ kind: 'event', event: event.type, jobId, type, state: became, attempt, ...text })
      break
    }
    case 'failed': {
      const { job, attempt, thrown, error } = event
      const lines = thrown === undefined ? [error.message] : thrownLines(thrown)
      const about = { jobId: job.id, type: job.type, attempt, text: lines.join('\n') }
      say({ kind: 'event', event: 'threw', ...about })
      break
    }
    case 'effect': {
      const { key, result, error } = event
      say({ kind: 'event', event: 'effect', text: `${key} ${result} ${error ?? ''}`.trimEnd() })
      break
    }
    case 'error':
    case 'refused':
      say({ kind: 'event', event: event.type, text: String(event.error) })
      break
    case 'lost':
    case 'stuck':
    case 'expired':
      say({ kind: 'event', event: event.type, jobId: event.job.id, type: event.job.type })
  }
}
