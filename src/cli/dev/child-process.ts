/** One worker process of `pawl dev`, as its parent sees it. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Failed, FromChild, ToChild } from './messages.ts'

const PROGRAM = fileURLToPath(new URL('child.js', import.meta.url))

/** The standard output of your code goes to stderr, because stdout may carry JSON. */
const STDERR = 2

export class DevProcess {
  readonly #child: ChildProcess
  readonly #waiting = new Map<string, (message: FromChild) => void>()
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>
  hasEnded = false

  constructor(onEvent: (event: Extract<FromChild, { kind: 'event' }>) => void) {
    this.#child = fork(PROGRAM, [], { stdio: ['ignore', STDERR, STDERR, 'ipc'] })
    this.#child.on('message', (message: FromChild) => {
      if (message.kind === 'event') onEvent(message)
      else this.#answer(message)
    })
    // Sending to a process that has just ended is no error: `ended` tells.
    this.#child.on('error', () => {})
    this.ended = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => {
        this.hasEnded = true
        const why = signal === null ? `exit code ${code}` : `signal ${signal}`
        this.#answer(failedWith('E_UNEXPECTED', `The process of your code ended with ${why}`))
        resolve()
      })
    })
  }

  /** Sends a message and waits for the answer of this kind. */
  async ask<K extends FromChild['kind']>(
    message: ToChild,
    kind: K,
    timeoutMs: number,
  ): Promise<Extract<FromChild, { kind: K }> | Failed> {
    if (this.hasEnded) return failedWith('E_UNEXPECTED', 'The process of your code has ended')
    const answer = new Promise<FromChild>((resolve) => {
      this.#waiting.set(kind, resolve)
      this.#waiting.set('failed', resolve)
    })
    this.send(message)
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<FromChild>((resolve) => {
      const why = `Your code did not answer within ${timeoutMs / 1000} seconds`
      timer = setTimeout(() => resolve(failedWith('E_UNEXPECTED', why)), timeoutMs)
    })
    const first = await Promise.race([answer, late])
    clearTimeout(timer)
    this.#waiting.clear()
    return first as Extract<FromChild, { kind: K }> | Failed
  }

  send(message: ToChild): void {
    if (this.#child.connected) this.#child.send(message)
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  #answer(message: FromChild): void {
    this.#waiting.get(message.kind)?.(message)
  }
}

function failedWith(code: string, message: string): Failed {
  const hint = 'Look at the output above. Endless loops and process.exit have this effect.'
  return { kind: 'failed', code, message, hint }
}
