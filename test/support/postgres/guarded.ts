// A server program that cannot outlive the test process that started it; guard.mjs says how.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What the guard must know of its server. */
export interface Guarded {
  /** The server's own folder, which goes with it. */
  readonly folder: string
  readonly command: string
  readonly args: readonly string[]
  readonly user: User
  /** What the server prints when it can be used. */
  readonly readyText: string
  /** What ends the server at once. */
  readonly quitSignal: NodeJS.Signals
}

/** Whose process it is; empty for our own. */
export interface User {
  readonly uid?: number
  readonly gid?: number
}

type Order = 'start' | 'kill9' | 'end'

/** The servers refuse to run as root, so there they run as the user that owns nothing. */
export const serverUser: User = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

/** A new temporary folder that belongs to the user of the servers. */
export function serverFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `pawl-${name}-`))
  const { uid, gid } = serverUser
  if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid)
  return folder
}

/**
 * A free port of 127.0.0.1. It lies below those that systems give to outgoing connections, so that
 * none of them takes it while its server is down.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000)
    const probe = createServer()
    const free = await new Promise<boolean>((resolve) => {
      probe.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!free) continue
    await new Promise((resolve) => probe.close(resolve))
    return port
  }
}

/** One server with its guard. */
export class GuardedServer {
  readonly #guard: ChildProcess
  readonly #guarded: Guarded
  readonly #exited: Promise<unknown>
  #pid: number | undefined

  /** Starts the guard alone: from here on the folder will be removed. */
  constructor(guarded: Guarded) {
    this.#guarded = guarded
    const program = fileURLToPath(new URL('guard.mjs', import.meta.url))
    // In a session of its own, an interrupt from the terminal does not reach it.
    this.#guard = fork(program, [JSON.stringify(guarded)], { execArgv: [], detached: true })
    this.#exited = once(this.#guard, 'exit')
    // A server that a test forgot does not keep its process from ending.
    this.#guard.unref()
    this.#guard.channel?.unref()
  }

  /** The server's process; undefined when it is down by our order. */
  get pid(): number | undefined {
    return this.#pid
  }

  /** Everything that the server has printed. */
  get log(): string {
    return readFileSync(join(this.#guarded.folder, 'log'), 'utf8')
  }

  /** Starts the server, and waits until it can be used. */
  async start(): Promise<void> {
    await this.#order('start')
  }

  /** Kills the server and its children with SIGKILL, and waits until they have gone. */
  async kill9(): Promise<void> {
    await this.#order('kill9')
  }

  /** Asks the server to end, and waits until it has. */
  async end(): Promise<void> {
    await this.#order('end')
  }

  /** Ends the server and its guard, and removes the folder. */
  async stop(): Promise<void> {
    this.#pid = undefined
    if (!this.#guard.connected) return
    this.#guard.ref()
    this.#guard.disconnect()
    await this.#exited
  }

  async #order(order: Order): Promise<void> {
    this.#guard.channel?.ref()
    const answered = once(this.#guard, 'message')
    this.#guard.send(order)
    const gone = this.#exited.then(() => [{ error: 'The guard of the server has gone.' }])
    const [answer] = await Promise.race([answered, gone])
    this.#guard.channel?.unref()
    const { pid, error } = answer as { pid?: number; error?: string }
    if (error !== undefined) throw new Error(error)
    this.#pid = pid
  }
}
