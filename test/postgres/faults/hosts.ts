// Hosts as network namespaces of Linux, each with a cable of its own to this one. What they may not
// do here, or cannot, is told by `findObstacle`.
import { type ChildProcess, execFileSync, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

const PROGRAM = fileURLToPath(new URL('host.mjs', import.meta.url))
/** The system's own tool for networks. */
const IP = 'ip'
/** Of the range that is kept for tests of networks. */
const NETWORK = '198.18'

function ip(...args: readonly string[]): void {
  execFileSync(IP, args, { stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' })
}

/** What the worker answers to a question. */
interface Said {
  readonly id: number
  readonly result?: unknown
  readonly error?: string
}

/** Who waits for the answer to a question. */
interface Waiting {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

/** A host with a worker on it. */
export class Host {
  /** The address under which this host is reached from there. */
  readonly gateway: string
  readonly #name: string
  readonly #cable: string
  readonly #waiting = new Map<number, Waiting>()
  #child: ChildProcess | undefined
  #asked = 0

  constructor(number: number) {
    const unique = `${process.pid % 100_000}`
    this.#name = `pawl-${unique}-${number}`
    this.#cable = `pw${unique}x${number}`
    const network = `${NETWORK}.${process.pid % 256}`
    this.gateway = `${network}.${number * 4 + 1}`
    ip('netns', 'add', this.#name)
    onTestFinished(() => this.#remove())
    ip('link', 'add', this.#cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', this.#name)
    ip('addr', 'add', `${this.gateway}/30`, 'dev', this.#cable)
    ip('link', 'set', this.#cable, 'up')
    ip('-n', this.#name, 'addr', 'add', `${network}.${number * 4 + 2}/30`, 'dev', 'eth0')
    ip('-n', this.#name, 'link', 'set', 'eth0', 'up')
  }

  /** Starts the worker on the database of a server that listens on the gateway. */
  async start(url: string): Promise<void> {
    const execArgv = ['netns', 'exec', this.#name, process.execPath]
    const child = fork(PROGRAM, { execPath: IP, execArgv })
    this.#child = child
    child.on('message', (said: Said) => this.#hear(said))
    child.on('exit', (code) => {
      for (const id of this.#waiting.keys()) this.#hear({ id, error: `the worker ended: ${code}` })
    })
    const connectionString = Object.assign(new URL(url), { hostname: this.gateway }).href
    await this.ask('open', { connectionString })
  }

  /** Lets the worker call a verb of its store. */
  ask<T>(verb: string, ...args: unknown[]): Promise<T> {
    const id = this.#asked++
    return new Promise<unknown>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#child?.send({ id, verb, args })
    }) as Promise<T>
  }

  #hear({ id, result, error }: Said): void {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (error === undefined) waiting?.resolve(result)
    else waiting?.reject(new Error(error))
  }

  /** Pulls the cable; nobody is told. */
  cut(): void {
    ip('link', 'set', this.#cable, 'down')
  }

  /** Puts it in again. */
  heal(): void {
    ip('link', 'set', this.#cable, 'up')
  }

  #remove(): void {
    this.#child?.kill('SIGKILL')
    ip('netns', 'del', this.#name)
  }
}

/** Why there can be no hosts here; undefined if there can. */
export function findObstacle(): string | undefined {
  const name = `pawl-${process.pid}-probe`
  try {
    ip('netns', 'add', name)
  } catch (error) {
    return String(error)
  }
  try {
    ip('link', 'add', `pw${process.pid % 100_000}p`, 'type', 'veth', 'peer', 'eth0', 'netns', name)
    ip('netns', 'exec', name, 'true')
    return undefined
  } catch (error) {
    return String(error)
  } finally {
    ip('netns', 'del', name)
  }
}
