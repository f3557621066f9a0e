// A worker process of a test; worker.mjs says what it does.
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { WorkOptions } from 'pawl'
import type { WorkerState } from 'pawl/telemetry'
import { onTestFinished } from 'vitest'
import { until } from './until.ts'

const PROGRAM = fileURLToPath(new URL('worker.mjs', import.meta.url))

/** What a worker process tells. */
type Said =
  | { readonly kind: 'open' | 'working' }
  | { readonly kind: 'started'; readonly jobId: string; readonly attempt: number }
  | {
      readonly kind: 'aborted' | 'refused'
      readonly jobId: string
      readonly attempt: number
      readonly code: string
    }
  | { readonly kind: 'lost'; readonly jobId: string }
  | { readonly kind: 'state'; readonly state: WorkerState }

type Options = Omit<WorkOptions, 'onEvent' | 'onStuck'> & {
  /** The place where the process kills itself: a crash point, or `handler`. */
  readonly dieAt?: string
  /** It does so only once it was asked to stop. */
  readonly diesWhileStopping?: true
}

/** How a process ended. */
interface End {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** One worker process; it does not outlive the test. */
export class WorkerProcess {
  /** Everything that it has told, in order. */
  readonly said: Said[] = []
  /** How it ended; nothing while it lives. */
  end: End | undefined
  readonly #child: ChildProcess

  private constructor(store: string, options: Options & { readonly waits?: true }) {
    this.#child = fork(PROGRAM, [JSON.stringify({ store, ...options })], { execArgv: [] })
    this.#child.on('message', (said: Said) => this.said.push(said))
    this.#child.on('exit', (code, signal) => {
      this.end = { code, signal }
    })
    onTestFinished(() => void this.#child.kill('SIGKILL'))
  }

  /** Starts a process, and waits until it works, or has ended already. */
  static async start(store: string, options: Options = {}): Promise<WorkerProcess> {
    const process = new WorkerProcess(store, options)
    const isWorking = () => process.said.some(({ kind }) => kind === 'working')
    await until('the process works', () => isWorking() || process.end !== undefined)
    return process
  }

  /** Starts a process that has opened the store, and works once that is ordered by `work`. */
  static async open(store: string, options: Options): Promise<WorkerProcess> {
    const process = new WorkerProcess(store, { ...options, waits: true })
    await process.tells({ kind: 'open' })
    return process
  }

  /** Waits for something that the process is to tell; it may not end before. */
  async tells(what: Said, count = 1): Promise<void> {
    const wanted = JSON.stringify(what)
    const isTold = () => this.said.filter((said) => JSON.stringify(said) === wanted).length >= count
    await until(`it tells ${count} × ${wanted}`, () => {
      if (isTold()) return true
      if (this.end !== undefined) throw new Error(`it ended: ${JSON.stringify(this.end)}`)
      return false
    })
  }

  /** Lets the handler of a job go on, or a process that waits for it begin its `work`. */
  order(what: string): void {
    this.#child.send({ order: what })
  }

  /** Sends a signal. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Waits until the process has ended. */
  async ends(): Promise<End> {
    await until('the process ends', () => this.end !== undefined)
    return this.end as End
  }

  /** Kills it without warning. */
  async kill9(): Promise<void> {
    this.signal('SIGKILL')
    await this.ends()
  }
}
