/** The worker processes of the demo. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const program = fileURLToPath(new URL('worker.js', import.meta.url))

export class Crew {
  readonly #store: string
  readonly #workers = new Set<ChildProcess>()

  constructor(store: string) {
    this.#store = store
  }

  /** Starts a worker. Resolves when it works or has ended. */
  async start(): Promise<void> {
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

  /** Kills the oldest worker with SIGKILL. */
  async kill(): Promise<void> {
    const [worker] = this.#workers
    if (worker !== undefined) await this.#end(worker)
  }

  async killAll(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => this.#end(worker)))
  }

  async #end(worker: ChildProcess): Promise<void> {
    this.#workers.delete(worker)
    if (worker.exitCode !== null || worker.signalCode !== null) return
    const ended = new Promise((resolve) => worker.once('exit', resolve))
    worker.kill('SIGKILL')
    await ended
  }
}
