// Child processes for the scripts that run before anything is installed.
import { spawn } from 'node:child_process'
import { delimiter, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

// Every path in these scripts is relative to the repository, wherever they are called from.
process.chdir(fileURLToPath(new URL('..', import.meta.url)))

const env = {
  ...process.env,
  PATH: [resolve('node_modules/.bin'), process.env.PATH].join(delimiter),
}

/** Exit codes by which a shell reports that a signal ended a process. */
const signalExitCodes = { SIGINT: 130, SIGTERM: 143 }

/**
 * Runs a command to its end and collects what it prints. With `progress` what it writes to file
 * descriptor 3 is shown at once on stderr. When this process is asked to stop, it asks the command
 * to stop and waits for that, since an interrupted npm first takes back what it has done; asked
 * again, it waits no longer.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {{ progress?: boolean, env?: Record<string, string> }} [options]
 * @returns {Promise<{ ok: boolean, stdout: string, stderr: string }>}
 */
export function run(command, args, { progress = false, env: more = {} } = {}) {
  return new Promise((settle) => {
    const child = spawn(command, args, {
      env: { ...env, ...more },
      stdio: ['ignore', 'pipe', 'pipe', ...(progress ? [2] : [])],
      // npm and the tools are batch files on Windows, which only a shell can start.
      shell: process.platform === 'win32',
    })
    const stdout = collect(child.stdout)
    const stderr = collect(child.stderr)
    let stoppedBy
    const stop = (signal) => {
      child.kill(stoppedBy ? 'SIGKILL' : signal)
      stoppedBy = signal
    }
    for (const signal in signalExitCodes) process.on(signal, stop)
    const finish = (ok, note = '') => {
      if (stoppedBy) process.exit(signalExitCodes[stoppedBy])
      for (const signal in signalExitCodes) process.off(signal, stop)
      settle({ ok, stdout: stdout(), stderr: stderr() + note })
    }
    child.once('error', (error) => finish(false, `${command}: ${error.message}\n`))
    child.once('close', (code) => finish(code === 0))
  })
}

function collect(readable) {
  const chunks = []
  readable?.on('data', (chunk) => chunks.push(chunk))
  return () => Buffer.concat(chunks).toString()
}
