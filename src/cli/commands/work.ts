/**
 * `pawl work`: a worker for the job types of job files. The first signal drains it: it claims
 * nothing more, and running handlers may finish. The second one aborts handlers and releases their
 * jobs; `main.ts` bounds the time for that.
 */
import { hostname } from 'node:os'
import type { Duration } from '../../core/durations.ts'
import { messageOf } from '../../core/errors.ts'
import { isCommitted } from '../../core/job/job.ts'
import type { WebhookOptions } from '../../engine/effects/webhook.ts'
import { ConnectAborted } from '../../engine/errors.ts'
import { pagesOf } from '../../engine/pages.ts'
import type { PawlEvent } from '../../engine/watching/events.ts'
import type { JobWorker } from '../../engine/worker/worker.ts'
import type { Store } from '../../stores/contract/store.ts'
import { NOTICE } from '../../stores/notices.ts'
import { UsageInvalid } from '../errors.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { loadFiles } from '../job-files.ts'
import { withPawl } from '../opening.ts'
import { explainSettings } from '../settings-text.ts'
import { type Call, type CommandSpec, hasFlag, textOf } from '../spec.ts'
import { readDuration } from '../times.ts'
import { shortened, visible } from '../visible.ts'

const MESSAGE_MAX = 200
const EFFECTS_PAGE = 1000

async function work(call: Call): Promise<ExitCode> {
  // Node would end the process if a promise of a handler that nothing awaits is rejected.
  const onRejection = (reason: unknown) => printRejection(call, reason)
  process.on('unhandledRejection', onRejection)
  try {
    return await workOn(call)
  } finally {
    process.off('unhandledRejection', onRejection)
  }
}

function printRejection({ output }: Call, reason: unknown): void {
  const error = messageOf(reason)
  const text = visible(shortened(error, MESSAGE_MAX))
  if (output.json) output.record({ event: 'unhandled', error })
  else output.say(`error: a promise that no code awaits was rejected: ${text}`)
}

async function workOn(call: Call): Promise<ExitCode> {
  const { settings, output } = call
  const { jobs: files, retention } = settings
  explainSettings(call, { jobs: files, retention })
  const { jobs, schedules } = await loadFiles(files.value)
  if (jobs.length === 0) {
    const hint = 'Add a job file: --jobs ./jobs.ts, or "jobs" in pawl.config.ts.'
    throw new UsageInvalid('There are no job types to run', hint)
  }
  const options = optionsOf(call)
  const notify = notifyOf(call)
  const effectTypes = jobs.filter(({ effects }) => effects.size > 0).map(({ name }) => name)
  if (notify !== undefined) effectTypes.push(NOTICE)
  const counts = { succeeded: 0, other: 0 }
  // With --once, for example from cron, processes must not pile up while the store is away.
  const wait = !hasFlag(call, 'once') && call.options.wait !== false
  const onEvent = (event: PawlEvent) => {
    if (event.type === 'connection') printConnection(call, event)
  }
  const opening = { create: true, warns: true, retention: retention.value }
  await withPawl(
    call,
    async (pawl) => {
      const drained = new AbortController()
      const onEvent = (event: PawlEvent) => {
        printEvent(call, event, counts)
        // A worker that sleeps without jobs has found no ready job.
        const isIdle = event.type === 'state' && event.to === 'Idle' && worker?.running === 0
        if (!hasFlag(call, 'once') || !isIdle) return
        // If the store fails now, the next sleep tries again.
        hasDueEffects(pawl.store, effectTypes).then(
          (hasDue) => !hasDue && drained.abort(),
          () => {},
        )
      }
      let worker: JobWorker | undefined
      worker = await pawl.work({ ...options, onEvent })
      output.say(`Worker ${visible(worker.id)} runs jobs of type ${describe(jobs)}.`)
      const stopRequested = firstOf(call.interrupted, drained.signal)
      // The worker ends by itself if this process must not use the store any longer.
      await Promise.race([stopRequested, worker.ended])
      if (call.interrupted.aborted)
        output.say('Waiting for running jobs; press Ctrl-C again to release them.')
      const ended = worker.stop()
      void firstOf(call.interruptedAgain).then(() => worker?.stop())
      await ended
    },
    { ...opening, jobs, schedules, wait, onEvent, ...(notify && { notify }) },
  ).catch((error: unknown) => {
    if (!(error instanceof ConnectAborted)) throw error
  })
  output.say(`Stopped: ${counts.succeeded} attempts succeeded, ${counts.other} did not.`)
  return call.interruptedAgain.aborted ? EXIT.interrupted : EXIT.ok
}

/** The receiver of notices: --notify-url, and the secret from the environment. */
function notifyOf(call: Call): WebhookOptions | undefined {
  const url = textOf(call, 'notifyUrl')
  const allowPrivate = hasFlag(call, 'notifyPrivate')
  if (url === undefined) {
    if (!allowPrivate) return undefined
    throw new UsageInvalid('--notify-private needs --notify-url', 'Add --notify-url URL.')
  }
  const secret = call.settings.notifySecret.value
  if (secret === undefined) {
    const hint =
      'Set PAWL_NOTIFY_SECRET to 16 characters or more; the receiver needs the same value.'
    throw new UsageInvalid('--notify-url needs a secret that signs the notices', hint)
  }
  return { url, secret, allowPrivate }
}

/** Returns true if effects of these types are due. Deliveries in progress are awaited anyway. */
async function hasDueEffects(store: Store, types: readonly string[]): Promise<boolean> {
  for (const type of types) {
    const read = (page: { limit: number; after?: string }) =>
      store.listEffects({ state: 'pending', type }, page)
    for await (const { items } of pagesOf(read, { size: EFFECTS_PAGE })) {
      if (items.some(({ runAt }) => runAt <= store.now())) return true
    }
  }
  return false
}

/** Resolves when one of the signals is aborted. */
function firstOf(...signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of signals) {
      signal.addEventListener('abort', () => resolve(), { once: true })
      if (signal.aborted) resolve()
    }
  })
}

function optionsOf(call: Call) {
  const { queues, concurrency, lease, drain } = call.settings.ofProcesses()
  explainSettings(call, { queues, concurrency, lease, drain })
  const duration = (value: Duration, name: string) =>
    typeof value === 'string' ? readDuration(value, name) : value
  return {
    id: textOf(call, 'id') ?? `${hostname()}-${process.pid}`,
    concurrency: concurrency.value,
    ...(queues.value.length > 0 && { queues: queues.value }),
    ...(lease.value !== undefined && { lease: duration(lease.value, 'lease') }),
    ...(drain.value !== undefined && { drain: duration(drain.value, 'drain') }),
  }
}

function describe(jobs: readonly { readonly name: string }[]): string {
  return visible(jobs.map(({ name }) => name).join(', '))
}

/** The log already says what the command waits for. */
function printConnection(
  { output }: Call,
  { state, waitedMs, error }: Extract<PawlEvent, { type: 'connection' }>,
): void {
  const fields = { state, waitedMs, code: error?.code, error: error?.message }
  if (output.json) output.record({ event: 'connection', ...fields })
  else if (state === 'Connected') output.say('Connected to the store.')
}

/** Prints the events that an operator wants to see. */
function printEvent(
  { output }: Call,
  event: PawlEvent,
  counts: { succeeded: number; other: number },
) {
  const short = (text: string) => visible(shortened(text, MESSAGE_MAX))
  switch (event.type) {
    case 'error':
    case 'refused': {
      const jobId = event.type === 'refused' ? event.jobId : undefined
      if (output.json) output.record({ event: event.type, jobId, error: String(event.error) })
      else output.say(`error: ${short(String(event.error))}`)
      break
    }
    case 'effect': {
      const { type: name, ...rest } = event
      const why = event.error === undefined ? '' : `  ${short(event.error)}`
      if (output.json) output.record({ event: name, ...rest })
      else output.line(`${visible(event.key)} ${event.result} in try ${event.tries}${why}`)
      break
    }
    case 'lost':
    case 'stuck':
    case 'unstuck':
    case 'silent':
    case 'expired': {
      const { id: jobId } = event.job
      const what = event.type === 'expired' && event.isStalled ? 'stalled' : event.type
      if (output.json) output.record({ event: what, jobId })
      else output.line(`${jobId} ${what}`)
      break
    }
    case 'started':
    case 'reported': {
      const { id: jobId, type, state, attempt, outcome, error } = event.job
      // A committed job has succeeded, even if effects are not delivered yet.
      const hasSucceeded = outcome === 'succeeded' || isCommitted(event.job)
      if (event.type === 'reported') counts[hasSucceeded ? 'succeeded' : 'other']++
      const why = error === null ? '' : `  ${short(error.message)}`
      const fields = { event: event.type, jobId, type, state, attempt, error: error?.message }
      if (output.json) output.record(fields)
      else if (event.type === 'started') {
        output.explain(`${jobId} ${visible(type)} attempt ${attempt}`)
      } else {
        const became = hasSucceeded && outcome === null ? 'committed' : visible(state)
        output.line(`${jobId} ${visible(type)} ${became} in attempt ${attempt}${why}`)
      }
    }
  }
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'work',
    summary: 'Run the jobs of your TypeScript or JavaScript files',
    details:
      'Runs every exported job type. SIGTERM or Ctrl-C waits for running jobs and ends with exit ' +
      'code 0; a second signal releases them at once. The store is created if it does not exist. ' +
      'If the database cannot be reached or the file is locked, the command waits, at the start ' +
      'and later. With --json each event is one line.',
    options: [
      { flags: '--jobs <file>', says: 'a job file', repeats: true },
      { flags: '--queue <queue>', says: 'only this queue; earlier ones first', repeats: true },
      { flags: '--concurrency <count>', says: 'how many jobs at a time (10 if absent)' },
      { flags: '--once', says: 'stop when no job is ready' },
      { flags: '--no-wait', says: 'fail if the store cannot be reached, as --once does' },
      { flags: '--lease <duration>', says: 'how long a lease lasts without renewal (30s)' },
      { flags: '--drain <duration>', says: 'how long to wait for running jobs at the end (25s)' },
      { flags: '--notify-url <url>', says: 'send notices to this URL (PAWL_NOTIFY_SECRET)' },
      { flags: '--notify-private', says: 'allow a receiver in a private network' },
      { flags: '--id <name>', says: 'the id of the worker; host and process id if absent' },
    ],
    examples: [
      ['pawl work --jobs ./jobs.ts', 'until it is stopped'],
      ['pawl work --jobs ./jobs.ts --queue mail --concurrency 4', 'one queue, four at a time'],
      [
        'pawl work --jobs ./jobs.ts --notify-url https://api.example.org/jobs',
        'sends notices of jobs with notify: true',
      ],
      ['pawl work --jobs ./jobs.ts --once', 'only ready jobs, for cron and tests'],
    ],
    drains: true,
    run: work,
  },
]
