/** `pawl dev`: store, worker and HTTP API for development, loaded again when files change. */
import { dirname, relative, resolve } from 'node:path'
import { findConfig } from '../config-file.ts'
import type { Failed, FromChild, Opened, Started } from '../dev/messages.ts'
import { Supervisor } from '../dev/supervisor.ts'
import { type Watch, watchFiles } from '../dev/watch.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Call, type CommandSpec, textOf } from '../spec.ts'
import { shortened, visible } from '../visible.ts'

const MESSAGE_MAX = 400
const KILL_MS = 1000

async function dev(call: Call): Promise<ExitCode> {
  const { output, options, environment, interrupted, interruptedAgain } = call
  const { timers } = environment
  let jobFiles: readonly string[] = []
  const supervisor = new Supervisor({
    options,
    timers,
    onRunning: (opened, started) => {
      jobFiles = opened.jobFiles
      printRunning(call, opened, started)
    },
    onFailed: (failed, keepsOld) => printFailed(call, failed, keepsOld),
    onEnded: (ms) => output.say(`The process of your code ended. It starts again in ${ms} ms.`),
    onEvent: (event) => printEvent(call, event),
  })
  const watch = watchOf(
    call,
    () => jobFiles,
    () => {
      if (output.json) output.record({ event: 'changed' })
      else output.line('Files have changed; loading them.')
      void supervisor.load()
    },
  )
  void supervisor.load()
  await aborted(interrupted)
  watch.stop()
  output.say('Waiting for running jobs; press Ctrl-C again to release them.')
  const stopped = supervisor.stop()
  void aborted(interruptedAgain).then(() => {
    supervisor.release()
    timers.after(KILL_MS, () => supervisor.kill())
  })
  await stopped
  output.say('Stopped.')
  return interruptedAgain.aborted ? EXIT.interrupted : EXIT.ok
}

/**
 * Watches the folder of the configuration, or the current one, and the job files. Only the worker
 * processes run the configuration: an error in it must not end this one.
 */
function watchOf(call: Call, jobFiles: () => readonly string[], onChange: () => void): Watch {
  const config = () => configOf(call)
  const folders = () => [dirname(config() ?? resolve('pawl.config.ts'))]
  return watchFiles(folders, jobFiles, call.environment.timers, onChange)
}

function configOf(call: Call): string | undefined {
  const named = textOf(call, 'config') ?? (process.env.PAWL_CONFIG || undefined)
  if (named !== undefined) return resolve(named)
  try {
    return findConfig(process.cwd())
  } catch {
    return undefined
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
    if (signal.aborted) resolve()
  })
}

function printRunning({ output }: Call, opened: Opened, started: Started): void {
  const { kind: _, ...files } = opened
  const { kind: __, ...server } = started
  if (output.json) {
    output.record({ event: 'running', ...files, ...server })
    return
  }
  const here = (path: string) => visible(relative(process.cwd(), path) || path)
  const { types, schedules, configFile, jobFiles, port } = opened
  const taken = started.port === port || port === 0 ? '' : ` (port ${port} is taken)`
  const rows: [string, string][] = [
    ['store', `${visible(opened.store)} (from ${visible(opened.storeFrom)})`],
    ['config', configFile === undefined ? 'none; pawl init writes one' : here(configFile)],
    ['jobs', types.length === 0 ? 'none' : `${visible(types.join(', '))} (${jobFiles.map(here)})`],
    ...(schedules.length > 0
      ? [['schedules', visible(schedules.join(', '))] as [string, string]]
      : []),
    ['worker', started.worker === undefined ? 'none' : visible(started.worker)],
    ['HTTP API', `${started.url}/api/v1${taken}`],
    ...(started.hasDashboard ? [['dashboard', `${started.url}/`] as [string, string]] : []),
    ['retention', opened.retention ? 'on' : 'off: ended jobs are kept without limit'],
  ]
  output.line(output.style('bold', 'pawl dev'))
  for (const [name, text] of rows) output.line(`  ${output.style('dim', name.padEnd(10))} ${text}`)
  const [type] = types
  if (type !== undefined)
    output.line(`Enqueue a job: pawl job enqueue ${visible(type)} '{}' --wait 30s`)
  output.line('Files are watched. Press Ctrl-C to stop.')
}

function printFailed({ output }: Call, failed: Failed, keepsOld: boolean): void {
  const { code, message, hint } = failed
  if (output.json) {
    output.record({ event: 'failed', code, message, hint, keepsOld })
    return
  }
  output.line(output.style('red', `error: ${visible(message)}`))
  output.line(`  what to do: ${visible(hint)}`)
  const left = keepsOld ? 'The worker with the last good files goes on.' : 'No worker runs.'
  output.line(`  ${left} Waiting for a change of the files. (${code})`)
}

function printEvent({ output }: Call, event: Extract<FromChild, { kind: 'event' }>): void {
  const { kind: _, event: name, jobId, type = '', state, attempt, text } = event
  if (output.json) {
    output.record({ event: name, jobId, type, state, attempt, text })
    return
  }
  const why = text === undefined ? '' : `  ${visible(shortened(text, MESSAGE_MAX))}`
  if (name === 'started') output.explain(`${jobId} ${visible(type)} attempt ${attempt}`)
  else if (name === 'reported') {
    const style = state === 'succeeded' || state === 'committed' ? 'green' : 'yellow'
    const became = output.style(style, visible(state ?? ''))
    output.line(`${jobId} ${visible(type)} ${became} in attempt ${attempt}${why}`)
  } else if (name === 'threw') {
    for (const line of (text ?? '').split('\n')) output.line(output.style('dim', visible(line)))
  } else output.line(`${[jobId, name].filter(Boolean).join(' ')}${why}`)
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'dev',
    summary: 'Run store, worker and HTTP API for development, with reload on change',
    details:
      'Uses the configuration file; without a store in it, SQLite in ./.pawl/. Your code runs in ' +
      'a process of its own. When a file of the project changes, a new process loads the files; ' +
      'then the old one finishes its jobs. If a file cannot be loaded, the error is printed and ' +
      'the last good worker goes on. Only this machine can reach the HTTP API. If the port is ' +
      'taken, the next free one is used. What your code prints goes to stderr.',
    options: [
      { flags: '--jobs <file>', says: 'a job file', repeats: true },
      { flags: '--port <number>', says: 'the port of the HTTP API; 0 chooses a free one (7070)' },
      { flags: '--queue <queue>', says: 'only this queue; earlier ones first', repeats: true },
      { flags: '--concurrency <count>', says: 'how many jobs at a time (10 if absent)' },
    ],
    examples: [
      ['pawl dev', 'with pawl.config.*'],
      ['pawl dev --jobs ./jobs.ts --port 8080', 'without a configuration file'],
    ],
    drains: true,
    readsNoConfig: true,
    run: dev,
  },
]
