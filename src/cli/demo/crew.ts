/** Worker processes that are killed with kill -9 while they work, and replaced by new ones. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const program = fileURLToPath(new URL('worker.js', import.meta.url))

/** The processes that work now. */
export class Crew {
  readonly #store: string
  readonly #workers = new Set<ChildProcess>()

  constructor(store: string) {
    this.#store = store
  }

  /** Starts a worker, and resolves when it works or has ended. */
  async hire(): Promise<void> {
    const worker = fork(program, [this.#store], {
      execArgv: [],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    this.#workers.add(worker)
    await new Promise<void>((resolve) => {
      worker.once('message', () => resolve())
      worker.once('exit', () => resolve())
    })
  }

  /** Kills the worker that has worked longest, without warning. */
  async kill(): Promise<void> {
    const [worker] = this.#workers
    if (worker !== undefined) await this.#end(worker)
  }

  /** Kills everybody. */
  async dismiss(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => this.#end(worker)))
  }

  async #end(worker: ChildProcess): Promise<void> {
    this.#workers.delete(worker)
    if (worker.exitCode !== null || worker.signalCode !== null) return
    const gone = new Promise((resolve) => worker.once('exit', resolve))
    worker.kill('SIGKILL')
    await gone
  }
}
