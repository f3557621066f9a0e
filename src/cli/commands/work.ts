/**
 * `pawl work`: a worker for the jobs of users' own files. The first signal stops it gently: nothing
 * new, what runs may finish. The second one aborts handlers and releases their jobs; `main.ts`
 * bounds the time for that.
 */
import { hostname } from 'node:os'
import { isCommitted } from '../../core/job/job.ts'
import type { Duration } from '../../engine/durations.ts'
import type { WebhookOptions } from '../../engine/effects/webhook.ts'
import { ConnectAborted } from '../../engine/errors.ts'
import { pagesOf } from '../../engine/pages.ts'
import type { PawlEvent } from '../../engine/watching/events.ts'
import type { JobWorker } from '../../engine/worker/worker.ts'
import { NOTICE } from '../../stores/notices.ts'
import type { Store } from '../../stores/store.ts'
import { UsageInvalid } from '../errors.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { loadJobFiles } from '../job-files.ts'
import { withPawl } from '../opening.ts'
import { type Call, type CommandSpec, hasFlag, textOf, textsOf, wholeOf } from '../spec.ts'
import { readDuration } from '../times.ts'
import { shortened, visible } from '../visible.ts'

const CONCURRENCY_MAX = 10_000
const MESSAGE_MAX = 200
const EFFECTS_PAGE = 1000

async function work(call: Call): Promise<ExitCode> {
  const { settings, output } = call
  const jobs = await loadJobFiles(settings.jobs.value)
  if (jobs.length === 0) {
    throw new UsageInvalid('There are no jobs to work on', 'Name their file: --jobs ./jobs.ts.')
  }
  const options = optionsOf(call)
  const notify = notifyOf(call)
  const effectTypes = jobs.filter(({ effects }) => effects.size > 0).map(({ name }) => name)
  if (notify !== undefined) effectTypes.push(NOTICE)
  const counts = { succeeded: 0, other: 0 }
  // Whoever wants what is ready now, as a cron job does, must not pile up while the store is away.
  const wait = !hasFlag(call, 'once') && call.options.wait !== false
  const onEvent = (event: PawlEvent) => {
    if (event.type === 'connection') tellConnection(call, event)
  }
  await withPawl(
    call,
    async (pawl) => {
      const drained = new AbortController()
      const onEvent = (event: PawlEvent) => {
        tell(call, event, counts)
        // A worker that sleeps and holds nothing has found nothing that is ready.
        const isIdle = event.type === 'state' && event.to === 'Idle' && worker?.running === 0
        if (!hasFlag(call, 'once') || !isIdle) return
        // If that cannot be found out now, the next time that it sleeps will do.
        hasDueEffects(pawl.store, effectTypes).then(
          (hasDue) => !hasDue && drained.abort(),
          () => {},
        )
      }
      let worker: JobWorker | undefined
      worker = await pawl.work({ ...options, onEvent })
      output.say(`Working as ${visible(worker.id)} on ${describe(jobs)}.`)
      const stopAsked = firstOf(call.interrupted, drained.signal)
      // It ends by itself if this process must not use the store any longer.
      await Promise.race([stopAsked, worker.ended])
      if (call.interrupted.aborted) output.say('Finishing what runs; again to stop at once.')
      const ended = worker.stop()
      void firstOf(call.interruptedAgain).then(() => worker?.stop())
      await ended
    },
    { create: true, jobs, warns: true, wait, onEvent, ...(notify && { notify }) },
  ).catch((error: unknown) => {
    if (!(error instanceof ConnectAborted)) throw error
  })
  output.say(`Stopped: ${counts.succeeded} succeeded, ${counts.other} did not.`)
  return call.interruptedAgain.aborted ? EXIT.interrupted : EXIT.ok
}

/** Where notices are sent: --notify-url and the secret of the environment. */
function notifyOf(call: Call): WebhookOptions | undefined {
  const url = textOf(call, 'notifyUrl')
  const allowPrivate = hasFlag(call, 'notifyPrivate')
  if (url === undefined) {
    if (!allowPrivate) return undefined
    throw new UsageInvalid('--notify-private needs a receiver', 'Add --notify-url URL.')
  }
  const secret = call.settings.notifySecret.value
  if (secret === undefined) {
    const hint = 'Set PAWL_NOTIFY_SECRET to 16 characters or more that the receiver knows, too.'
    throw new UsageInvalid('--notify-url needs a secret to sign notices with', hint)
  }
  return { url, secret, allowPrivate }
}

/** Whether effects of these types wait to be delivered now; those being delivered are finished. */
async function hasDueEffects(store: Store, types: readonly string[]): Promise<boolean> {
  for (const type of types) {
    const ask = (page: { limit: number; after?: string }) =>
      store.listEffects({ state: 'pending', type }, page)
    for await (const { items } of pagesOf(ask, { size: EFFECTS_PAGE })) {
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
  const queues = textsOf(call, 'queue')
  const concurrency = wholeOf(call, 'concurrency', 1, CONCURRENCY_MAX)
  const [lease, drain] = [textOf(call, 'lease'), textOf(call, 'drain')]
  const duration = (text: string, name: string): Duration => readDuration(text, name)
  return {
    id: textOf(call, 'id') ?? `${hostname()}-${process.pid}`,
    ...(queues.length > 0 && { queues }),
    ...(concurrency !== undefined && { concurrency }),
    ...(lease !== undefined && { lease: duration(lease, 'lease') }),
    ...(drain !== undefined && { drain: duration(drain, 'drain') }),
  }
}

function describe(jobs: readonly { readonly name: string }[]): string {
  return visible(jobs.map(({ name }) => name).join(', '))
}

/** The logger says in words what is waited for. */
function tellConnection(
  { output }: Call,
  { state, waitedMs, error }: Extract<PawlEvent, { type: 'connection' }>,
): void {
  const fields = { state, waitedMs, code: error?.code, error: error?.message }
  if (output.json) output.record({ event: 'connection', ...fields })
  else if (state === 'Connected') output.say('The store is there.')
}

/** One line for each attempt that begins, and for whatever else an operator would like to see. */
function tell({ output }: Call, event: PawlEvent, counts: { succeeded: number; other: number }) {
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
      else output.line(`${visible(event.key)} ${event.result} after ${event.tries}${why}`)
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
      // Its effects may still be on their way, but what it did is true.
      const hasSucceeded = outcome === 'succeeded' || isCommitted(event.job)
      if (event.type === 'reported') counts[hasSucceeded ? 'succeeded' : 'other']++
      const why = error === null ? '' : `  ${short(error.message)}`
      const fields = { event: event.type, jobId, type, state, attempt, error: error?.message }
      if (output.json) output.record(fields)
      else if (event.type === 'started') {
        output.explain(`${jobId} ${visible(type)} attempt ${attempt}`)
      } else {
        const became = hasSucceeded && outcome === null ? 'committed' : visible(state)
        output.line(`${jobId} ${visible(type)} ${became} after ${attempt}${why}`)
      }
    }
  }
}

/** The command that works. */
export const commands: readonly CommandSpec[] = [
  {
    name: 'work',
    summary: 'Work on the jobs of your own TypeScript or JavaScript files',
    details:
      'Every export that defineJob made is worked on. SIGTERM or Ctrl-C finishes what runs and ' +
      'ends with exit code 0; a second signal releases it at once. The store is made where ' +
      'there is none. A database that is away or a file that is locked is waited for, before ' +
      'and while it works. With --json each event is one line.',
    options: [
      { flags: '--jobs <file>', says: 'a file of jobs', repeats: true },
      { flags: '--queue <queue>', says: 'only this queue; the first comes first', repeats: true },
      { flags: '--concurrency <count>', says: 'how many jobs at a time (10 if absent)' },
      { flags: '--once', says: 'stop when nothing is ready any more' },
      { flags: '--no-wait', says: 'fail if the store is away; so does --once' },
      { flags: '--lease <duration>', says: 'how long a job stays with a silent worker (30s)' },
      { flags: '--drain <duration>', says: 'how long to wait for what runs when stopped (25s)' },
      { flags: '--notify-url <url>', says: 'POST notices of jobs here (PAWL_NOTIFY_SECRET)' },
      { flags: '--notify-private', says: 'the receiver may be in the own network' },
      { flags: '--id <name>', says: 'the name of the worker; host and process if absent' },
    ],
    examples: [
      ['pawl work --jobs ./jobs.ts', 'until it is stopped'],
      ['pawl work --jobs ./jobs.ts --queue mail --concurrency 4', 'one queue, four at a time'],
      [
        'pawl work --jobs ./jobs.ts --notify-url https://api.example.org/jobs',
        'sends notices of jobs with notify: true',
      ],
      ['pawl work --jobs ./jobs.ts --once', 'what is ready now, for cron and for tests'],
    ],
    drains: true,
    run: work,
  },
]
