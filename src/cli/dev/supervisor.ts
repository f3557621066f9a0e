/**
 * Keeps one worker process running with the present files. A change starts a new process; when it
 * has loaded the files, the old one drains and the new one takes over the port. If the files cannot
 * be loaded, the old process goes on. If there is none, a process without your code serves the API.
 */
import type { Timers } from '../../core/ports.ts'
import { DevProcess } from './child-process.ts'
import type { Failed, FromChild, Opened, Started } from './messages.ts'

/** Loading may compile TypeScript and wait for a database. */
const OPEN_MS = 60_000
const START_MS = 30_000
const HAND_OVER_MS = 15_000
const DRAINING_MAX = 3
const RESTART_MIN_MS = 1000
const RESTART_MAX_MS = 10_000
/** A process that ran this long did not fail because of how it starts. */
const HEALTHY_MS = 30_000

export interface SupervisorHooks {
  readonly options: Readonly<Record<string, unknown>>
  readonly timers: Timers
  readonly onRunning: (opened: Opened, started: Started) => void
  readonly onFailed: (failed: Failed, keepsOld: boolean) => void
  readonly onEnded: (restartMs: number) => void
  readonly onEvent: (event: Extract<FromChild, { kind: 'event' }>) => void
}

export class Supervisor {
  readonly #hooks: SupervisorHooks
  readonly #processes = new Set<DevProcess>()
  readonly #draining: DevProcess[] = []
  #current: DevProcess | undefined
  #port: number | undefined
  #loading: Promise<void> | undefined
  #isLoadingAgain = false
  #isStopping = false
  #restartMs = RESTART_MIN_MS

  constructor(hooks: SupervisorHooks) {
    this.#hooks = hooks
  }

  /** Loads the files. A call while files are loaded makes it load them once more. */
  load(): Promise<void> {
    if (this.#loading !== undefined) {
      this.#isLoadingAgain = true
      return this.#loading
    }
    this.#loading = this.#loadUntilDone().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  async #loadUntilDone(): Promise<void> {
    do {
      this.#isLoadingAgain = false
      await this.#loadOnce()
    } while (this.#isLoadingAgain && !this.#isStopping)
  }

  async #loadOnce(): Promise<void> {
    const failed = await this.#replace(true)
    if (failed === undefined || this.#isStopping) return
    const keepsOld = this.#current !== undefined
    this.#hooks.onFailed(failed, keepsOld)
    // A second failure has the same cause, such as the configuration, and was printed.
    if (!keepsOld) await this.#replace(false)
  }

  /** Returns what failed; then the current process is still the old one. */
  async #replace(withJobs: boolean): Promise<Failed | undefined> {
    const process = this.#create()
    const { options } = this.#hooks
    const opened = await process.ask({ kind: 'open', options, withJobs }, 'opened', OPEN_MS)
    if (opened.kind === 'failed' || this.#isStopping) {
      process.kill()
      return opened.kind === 'failed' ? opened : undefined
    }
    await this.#release()
    const port = this.#port ?? opened.port
    const started = await process.ask({ kind: 'start', port }, 'started', START_MS)
    if (started.kind === 'failed') {
      process.kill()
      return started
    }
    if (started.port !== 0) this.#port = started.port
    this.#current = process
    void process.ended.then(() => this.#restart(process, Date.now()))
    this.#hooks.onRunning(opened, started)
    return undefined
  }

  #create(): DevProcess {
    const process = new DevProcess(this.#hooks.onEvent)
    this.#processes.add(process)
    void process.ended.then(() => this.#processes.delete(process))
    return process
  }

  /** The old process stops claiming and frees the port; then it finishes its jobs. */
  async #release(): Promise<void> {
    const old = this.#current
    if (old === undefined) return
    this.#current = undefined
    const answer = await old.ask({ kind: 'stop' }, 'stopping', HAND_OVER_MS)
    if (answer.kind === 'failed') old.kill()
    this.#draining.push(old)
    void old.ended.then(() => this.#draining.splice(this.#draining.indexOf(old), 1))
    if (this.#draining.length > DRAINING_MAX) this.#draining[0]?.send({ kind: 'stop' })
  }

  #restart(process: DevProcess, startedAt: number): void {
    if (this.#current !== process || this.#isStopping) return
    this.#current = undefined
    const wasHealthy = Date.now() - startedAt > HEALTHY_MS
    const restartMs = wasHealthy ? RESTART_MIN_MS : this.#restartMs
    this.#restartMs = Math.min(restartMs * 2, RESTART_MAX_MS)
    this.#hooks.onEnded(restartMs)
    this.#hooks.timers.after(restartMs, () => {
      if (this.#current === undefined && !this.#isStopping) void this.load()
    })
  }

  /** Drains all processes. Resolves when they have ended. */
  async stop(): Promise<void> {
    this.#isStopping = true
    const all = [...this.#processes]
    for (const process of all) process.send({ kind: 'stop' })
    await Promise.all(all.map(({ ended }) => ended))
  }

  /** Releases all jobs at once. */
  release(): void {
    for (const process of this.#processes) process.send({ kind: 'stop' })
  }

  kill(): void {
    for (const process of this.#processes) process.kill()
  }
}
