/** `pawl telemetry serve`: the local telemetry API. */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { serveTelemetry } from '../../http/telemetry-server.ts'
import { type Call, type CommandSpec, textOf, wholeOf } from '../spec.ts'
import { visible } from '../visible.ts'

const DEFAULT_FILE = '.pawl/telemetry.db'
const DEFAULT_PORT = 7171

async function serve(call: Call): Promise<undefined> {
  const { output } = call
  const path = textOf(call, 'db') ?? DEFAULT_FILE
  const host = textOf(call, 'host')
  const { PAWL_TELEMETRY_TOKEN: token } = process.env
  mkdirSync(dirname(path), { recursive: true })
  await using server = await serveTelemetry({
    path,
    port: wholeOf(call, 'port', 0, 65_535) ?? DEFAULT_PORT,
    ...(host !== undefined && { host }),
    ...(token ? { token } : {}),
  })
  if (output.json) output.record({ url: server.url })
  else output.line(server.url)
  output.say(`Events are stored in ${visible(path)}. Press Ctrl-C to stop.`)
  await new Promise<void>((resolve) => {
    call.interrupted.addEventListener('abort', () => resolve(), { once: true })
    if (call.interrupted.aborted) resolve()
  })
  return undefined
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'telemetry serve',
    summary: 'Serve the local telemetry API: events of runs, by run, trace and commit',
    details:
      'By default only this machine can reach it. Another --host needs a token of 16 characters ' +
      'or more in PAWL_TELEMETRY_TOKEN, which every request must send.',
    options: [
      { flags: '--db <file>', says: 'the SQLite file of events (.pawl/telemetry.db)' },
      { flags: '--port <number>', says: 'the port; 0 chooses a free one (7171)' },
      { flags: '--host <address>', says: 'the address (127.0.0.1)' },
    ],
    examples: [
      ['pawl telemetry serve', 'on this machine'],
      ['pawl telemetry serve --db audit.db --port 8080', 'another file and port'],
    ],
    drains: true,
    run: serve,
  },
]
