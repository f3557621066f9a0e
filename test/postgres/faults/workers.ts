// The worker processes of a test; worker.mjs says what they do.
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { onTestFinished, vi } from 'vitest'

const PROGRAM = fileURLToPath(new URL('worker.mjs', import.meta.url))
const CONNECTIONS = 4
const BOUND_MS = 60_000

/** What a worker was promised, and what reached it. */
export interface Result {
  readonly accepted: readonly string[]
  readonly doubtful: readonly string[]
  readonly errors: readonly string[]
  readonly settled: number
}

type Said =
  | { readonly kind: 'ready' }
  | { readonly kind: 'progress'; readonly settled: number }
  | ({ readonly kind: 'result' } & Result)

/** Some workers on one database. */
export class Workers {
  readonly #children: ChildProcess[]
  readonly #said = new Map<ChildProcess, Said[]>()
  readonly #ended: string[] = []

  constructor(count: number) {
    this.#children = Array.from({ length: count }, () => fork(PROGRAM, { execArgv: [] }))
    for (const child of this.#children) this.#follow(child)
    onTestFinished(() => {
      for (const child of this.#children) child.kill('SIGKILL')
    })
  }

  /** Lets them open the store, all at once, and waits until they work. */
  async start(url: string, seed: number): Promise<void> {
    for (const [i, child] of this.#children.entries()) {
      const name = `worker-${i}`
      child.send({ kind: 'work', url, name, seed: seed * 100 + i, connections: CONNECTIONS })
    }
    await this.#until('the workers are ready', () => this.#count('ready') === this.#children.length)
  }

  /** How many attempts they have settled. */
  get settled(): number {
    const last = (said: readonly Said[]) =>
      said.reduce((most, one) => ('settled' in one ? Math.max(most, one.settled) : most), 0)
    return [...this.#said.values()].reduce((sum, said) => sum + last(said), 0)
  }

  /** Lets them enqueue so many jobs. */
  allow(jobs: number): void {
    const each = Math.ceil(jobs / this.#children.length)
    this.#assertAll()
    for (const child of this.#children) child.send({ kind: 'allow', jobs: each })
  }

  /** Waits until they have settled so many more; none of them may end meanwhile. */
  async settleMore(count: number): Promise<void> {
    const goal = this.settled + count
    await this.#until(`${count} more are settled`, () => this.settled >= goal)
  }

  /** Lets them bring every job to an end. */
  async finish(): Promise<Result[]> {
    this.#assertAll()
    for (const child of this.#children) child.send({ kind: 'finish' })
    await this.#until('all have finished', () => this.#count('result') === this.#children.length)
    return [...this.#said.values()].map((said) => said.at(-1) as Result & Said)
  }

  #follow(child: ChildProcess): void {
    const said: Said[] = []
    this.#said.set(child, said)
    child.on('message', (one: Said) => {
      said.push(one)
      if (one.kind === 'result') child.disconnect()
    })
    child.on('exit', (code, signal) => {
      if (!said.some(({ kind }) => kind === 'result')) this.#ended.push(String(code ?? signal))
    })
  }

  /** None of them has ended. */
  #assertAll(): void {
    if (this.#ended.length > 0) throw new Error(`a worker ended: ${this.#ended.join()}`)
  }

  #count(kind: Said['kind']): number {
    return [...this.#said.values()].filter((said) => said.some((one) => one.kind === kind)).length
  }

  async #until(what: string, holds: () => boolean): Promise<void> {
    const check = () => {
      if (this.#ended.length === 0 && !holds()) throw new Error(`it did not happen that ${what}`)
    }
    await vi.waitFor(check, { timeout: BOUND_MS, interval: 20 })
    this.#assertAll()
  }
}
