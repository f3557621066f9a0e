/**
 * The processes of a run: workers, a client and an operator. A process that is ended on purpose is
 * replaced; one that ends by itself has broken P16, and so has one that met an
 * error which no outage explains.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ChildSettings, Said } from './settings.ts'

/** The programs beside this file. */
export type Role = 'worker' | 'client' | 'operator' | 'blocker'

/** What all processes of a run are told alike. */
export type Common = Pick<ChildSettings, 'store' | 'receiver' | 'notes'> & {
  readonly seed: number
  /** The folder of the logs. */
  readonly folder: string
}

const READY_MAX_MS = 60_000
/** Draining, the grace of handlers that do not listen, and a slow machine. */
const STOP_MAX_MS = 30_000

/** One process. */
export class Member {
  readonly name: string
  readonly role: Role
  /** The jobs whose leases it took for lost: these it cannot give back. */
  readonly lost = new Set<string>()
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown>
  readonly #ready: Promise<unknown>
  /** Somebody has told it to end. */
  #isDismissed = false
  #isReady = false

  constructor(role: Role, settings: ChildSettings, folder: string, broken: (what: string) => void) {
    this.role = role
    this.name = settings.name
    const program = fileURLToPath(new URL(`./${role}.js`, import.meta.url))
    const log = openSync(join(folder, `${this.name}.log`), 'a')
    this.#child = fork(program, [JSON.stringify(settings)], {
      execArgv: [],
      stdio: ['ignore', log, log, 'ipc'],
    })
    this.#ready = new Promise<void>((resolve) => {
      this.#child.on('message', (said: Said) => {
        if (said.kind === 'lost') this.lost.add(said.jobId)
        else if (said.kind === 'fatal') broken(`${this.name}: ${said.error}`)
        else this.#isReady = true
        resolve()
      })
    })
    this.#exited = once(this.#child, 'exit')
    this.#child.on('exit', (code, signal) => {
      const isDone = settings.count !== undefined && code === 0
      if (this.#isDismissed || isDone) return
      broken(`${this.name} ended by itself with ${signal ?? `code ${code}`}; see its log`)
    })
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  get isReady(): boolean {
    return this.isAlive && this.#isReady && !this.#isDismissed
  }

  /** Resolves when it does its work, or has ended. */
  async ready(): Promise<void> {
    await within(READY_MAX_MS, `${this.name} is ready`, Promise.race([this.#ready, this.#exited]))
  }

  /** Resolves with its exit code, null where a signal has killed it. */
  async ends(maxMs: number): Promise<number | null> {
    await within(maxMs, `${this.name} ends`, this.#exited)
    return this.#child.exitCode
  }

  /** Sends a signal that does not end it. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal)
  }

  /** Kills it without warning. */
  async kill(): Promise<void> {
    this.#isDismissed = true
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  /** Asks it to end, as a service manager would. */
  terminate(): void {
    this.#isDismissed = true
    this.#child.kill('SIGTERM')
  }
}

/** Everybody. */
export class Company {
  /** What must not have happened to any process. */
  readonly broken: string[] = []
  readonly #common: Common
  readonly #members = new Set<Member>()
  #hired = 0

  constructor(common: Common) {
    this.#common = common
    process.once('exit', () => this.#killAll())
  }

  /** Starts a process; its seed and name are its own. */
  hire(role: Role, more: Partial<ChildSettings> = {}): Member {
    const { folder, seed, ...common } = this.#common
    const n = ++this.#hired
    const settings = { ...common, name: `${role}-${n}`, seed: seed * 1000 + n, ...more }
    const member = new Member(role, settings, folder, (what) => this.broken.push(what))
    this.#members.add(member)
    return member
  }

  /** Those of a role that do their work just now. */
  at(role: Role): Member[] {
    return [...this.#members].filter((member) => member.role === role && member.isReady)
  }

  /** Starts processes until there are so many of a role. */
  async staff(role: Role, count: number): Promise<void> {
    for (const member of this.#members) if (!member.isAlive) this.#members.delete(member)
    const there = [...this.#members].filter((member) => member.role === role).length
    for (let i = there; i < count; i++) this.hire(role)
    await Promise.all([...this.#members].map((member) => member.ready()))
  }

  /** Asks a process to end, which it must do with 0. */
  async stop(member: Member): Promise<void> {
    member.terminate()
    const code = await member.ends(STOP_MAX_MS).catch(() => 'never')
    if (code !== 0) this.broken.push(`${member.name} was asked to stop and ended with ${code}`)
  }

  /** Kills everybody that is left. */
  async close(): Promise<void> {
    await Promise.all([...this.#members].filter((one) => one.isAlive).map((one) => one.kill()))
  }

  #killAll(): void {
    for (const member of this.#members) if (member.isAlive) void member.kill()
  }
}

/** Waits for something, up to a time limit. */
async function within<T>(maxMs: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${maxMs} ms: ${what}`)), maxMs)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
