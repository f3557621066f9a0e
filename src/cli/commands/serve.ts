/** `pawl serve`: the HTTP API as a process. */
import { PrometheusMetrics } from '../../engine/watching/prometheus.ts'
import { LOOPBACK_HOSTS } from '../../http/access.ts'
import { serveHttp } from '../../http/node.ts'
import { UsageInvalid } from '../errors.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { loadJobFiles } from '../job-files.ts'
import { loggerOf, withPawl } from '../opening.ts'
import { FOLDER_OPTION, loadRunFiles, RUNS_OPTION, servedRuns } from '../run-files.ts'
import { explainSettings } from '../settings-text.ts'
import { type Call, type CommandSpec, hasFlag, wholeOf } from '../spec.ts'

const MIB = 1024 * 1024

async function serve(call: Call): Promise<ExitCode> {
  const { output, settings } = call
  const jobs = await loadJobFiles(settings.jobs.value)
  const metrics = new PrometheusMetrics()
  const options = optionsOf(call)
  const definitions = await loadRunFiles(settings.runs.value)
  await withPawl(
    call,
    async (pawl) => {
      await using runs = await servedRuns(settings, pawl, definitions, loggerOf(call, true))
      const own = runs === undefined ? {} : { runs }
      await using server = await serveHttp({ pawl, metrics, ...options, ...own })
      if (output.json) output.record({ url: server.url })
      else output.line(server.url)
      if (options.dashboard) output.say('Open it in a browser for the dashboard.')
      if (!LOOPBACK_HOSTS.includes(options.host ?? '127.0.0.1')) {
        output.say('Every request needs a token. To create one: pawl token create NAME --role read')
      }
      output.say('Press Ctrl-C to stop.')
      await new Promise<void>((resolve) => {
        call.interrupted.addEventListener('abort', () => resolve(), { once: true })
        if (call.interrupted.aborted) resolve()
      })
    },
    { jobs, metrics, create: true, warns: true, wait: true, onFindings: 'warn' },
  )
  return EXIT.ok
}

function optionsOf(call: Call) {
  const { port, host, basePath, hosts, redactKeys } = call.settings.ofProcesses()
  explainSettings(call, { port, host, basePath, hosts, redactKeys })
  const body = wholeOf(call, 'bodyMax', 1, 1024)
  if (basePath.value !== undefined && !basePath.value.startsWith('/')) {
    throw new UsageInvalid('--base-path must begin with /: --base-path /pawl')
  }
  return {
    port: port.value,
    host: host.value,
    ...(basePath.value !== undefined && { basePath: basePath.value }),
    ...(hosts.value.length > 0 && { hosts: hosts.value }),
    ...(body !== undefined && { bodyBytesMax: body * MIB }),
    ...(redactKeys.value.length > 0 && { redactKeys: redactKeys.value }),
    dashboard: hasFlag(call, 'dashboard'),
  }
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'serve',
    summary: 'Serve the dashboard and the HTTP API: jobs, queues, runs, doctor, metrics',
    details:
      'By default only this machine can reach it, without a token. On another --host every ' +
      'request needs a token: pawl token create. The server has no TLS: put a proxy before it. ' +
      'Runs come from the folder of runs if it exists or --runs is given, otherwise from the ' +
      'store. Clients can start and resume the runs of --runs; this process works on them. The ' +
      'store is created if it does not exist.',
    options: [
      { flags: '--port <number>', says: 'the port; 0 chooses a free one (7070)' },
      { flags: '--host <address>', says: 'the address (127.0.0.1)' },
      { flags: '--base-path <path>', says: 'the path at which a proxy mounts it: /pawl' },
      {
        flags: '--allow-host <name>',
        says: 'a host name that clients may use, such as that of a proxy',
        repeats: true,
      },
      { flags: '--body-max <MiB>', says: 'the largest body of a request (4)' },
      {
        flags: '--redact <member>',
        says: 'a member of payloads whose value is not shown, instead of the default list',
        repeats: true,
      },
      { flags: '--no-dashboard', says: 'serve the API alone' },
      { flags: '--jobs <file>', says: 'a job file: its schemas check inputs', repeats: true },
      RUNS_OPTION,
      FOLDER_OPTION,
      { flags: '--in-store', says: 'show the runs in the store, not in a folder' },
    ],
    examples: [
      ['pawl serve', 'on this machine, at http://127.0.0.1:7070'],
      ['pawl serve --jobs ./jobs.ts --port 8080', 'inputs are checked by the job types'],
      ['pawl serve --host 0.0.0.0 --allow-host jobs.example.org', 'for other machines, by tokens'],
    ],
    drains: true,
    run: serve,
  },
]
