// The guard of one server: a process between a test and the server that it needs. It starts the
// server, kills it on order, and ends it and removes its folder as soon as the test's process has
// gone, however that happened: the channel between the two breaks with either of them.
//
// Argument: the JSON of a `Guarded` (guarded.ts). Orders come as messages, one at a time, and each
// is answered by `{ pid }` or `{ error }`.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const { folder, command, args, user, readyText, quitSignal } = JSON.parse(process.argv[2])
const startMaxMs = 60_000
const endMaxMs = 10_000
let server
let output = ''
let finishing = false

const orders = { start, kill9, end: () => signalAndWait('SIGINT') }
process.on('message', async (order) => {
  if (finishing) return
  try {
    await orders[order]()
    answer({ pid: server?.pid })
  } catch (error) {
    answer({ error: error.message })
  }
})
for (const event of ['disconnect', 'SIGINT', 'SIGTERM', 'SIGHUP']) process.on(event, finish)
// The test may have gone while this program was being loaded.
if (!process.connected) await finish()

/** Whoever asked may have gone meanwhile; the end of the channel tells that, not a failed answer. */
function answer(message) {
  if (process.connected) process.send(message, () => {})
}

async function start() {
  output = ''
  const started = spawn(command, args, { ...user, cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  server = started
  started.once('exit', forget).once('error', forget)
  for (const stream of [started.stdout, started.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
      appendFileSync(join(folder, 'log'), text)
    })
  }
  await once(started, 'spawn')
  const ready = () => output.includes(readyText)
  await until(() => ready() || server !== started, startMaxMs)
  if (!ready()) throw new Error(`The server did not start:\n${output}`)

  function forget() {
    if (server === started) server = undefined
  }
}

async function signalAndWait(signal) {
  server?.kill(signal)
  await until(() => server === undefined, endMaxMs)
}

/** Kills the server with its children, as if the machine had failed. */
async function kill9() {
  const main = server?.pid
  if (!main) return
  // A server that stands still starts no further children while they are listed.
  process.kill(main, 'SIGSTOP')
  await until(() => processes().every(({ pid, state }) => pid !== main || state === 'T'), endMaxMs)
  const doomed = processes().filter(({ pid, parent }) => pid === main || parent === main)
  for (const { pid } of doomed) killIfThere(pid)
  const pids = new Set(doomed.map(({ pid }) => pid))
  const left = () => processes().filter(({ pid }) => pids.has(pid))
  // The children belong to the system now, which need not collect them at once: a process that has
  // ended but was not collected holds nothing any more.
  await until(() => left().every(({ state }) => state === 'Z'), endMaxMs)
  await until(() => server === undefined, endMaxMs)
}

async function finish() {
  if (finishing) return
  finishing = true
  await signalAndWait(quitSignal).catch(kill9)
  removeSharedMemory()
  rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  process.exit(0)
}

/** A PostgreSQL that was killed and not started again leaves a segment and notes its id here. */
function removeSharedMemory() {
  const path = join(folder, 'data', 'postmaster.pid')
  if (!existsSync(path)) return
  const [, id] = readFileSync(path, 'utf8').split('\n')[6]?.trim().split(/\s+/) ?? []
  if (id) spawnSync('ipcrm', ['-m', id])
}

function killIfThere(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}

/** All processes, each with its parent and the letter of its state. */
function processes() {
  if (process.platform !== 'linux') {
    const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid=,state='], { encoding: 'utf8' })
    return stdout.split('\n').map((line) => {
      const [pid, parent, state = ''] = line.trim().split(/\s+/)
      return { pid: Number(pid), parent: Number(parent), state: state[0] }
    })
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        // "pid (name) state parent …", where the name may contain anything.
        const status = readFileSync(`/proc/${name}/stat`, 'utf8')
        const [state, parent] = status.slice(status.lastIndexOf(')') + 2).split(' ')
        return [{ pid: Number(name), parent: Number(parent), state }]
      } catch {
        // It ended meanwhile.
        return []
      }
    })
}

async function until(condition, maxMs) {
  const end = performance.now() + maxMs
  while (!condition()) {
    if (performance.now() > end) throw new Error(`Not within ${maxMs} ms:\n${output}`)
    await sleep(5)
  }
}
