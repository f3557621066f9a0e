// Real child processes. They run JavaScript that imports the built package, as a user's would, and
// tell what they do in lines of JSON on stdout, or by messages.
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** What a child said until it ended, and how it ended. */
export interface Ended<Said> {
  readonly said: readonly Said[]
  readonly code: number | null
  readonly signal: string | null
  readonly stderr: string
}

/** Runs a program of Node to its end, whatever that end is. */
export async function runChild<Said>(
  program: URL,
  args: unknown,
  command: readonly string[] = [],
  cwd = process.cwd(),
): Promise<Ended<Said>> {
  const line = [...command, process.execPath, fileURLToPath(program), JSON.stringify(args)]
  const [file, ...rest] = line as [string, ...string[]]
  const child = spawn(file, rest, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  // A line that the process did not finish before it died was not said.
  const lines = stdout.split('\n').slice(0, -1)
  return { said: lines.map((text) => JSON.parse(text) as Said), code, signal, stderr }
}

/** A child that does what it is asked by messages, until it is let go. */
export class Helper {
  readonly #child: ChildProcess
  readonly #ended: Promise<never>

  constructor(program: URL) {
    this.#child = fork(fileURLToPath(program), { execArgv: [] })
    this.#ended = once(this.#child, 'exit').then(([code, signal]) => {
      throw new Error(`the child ended early: ${code ?? signal}`)
    })
    this.#ended.catch(() => {})
  }

  /** Asks, and waits for the answer; one question at a time. */
  async ask<Answer>(question: unknown): Promise<Answer> {
    const answered = once(this.#child, 'message')
    this.#child.send(question as object)
    const [answer] = (await Promise.race([answered, this.#ended])) as [Answer]
    return answer
  }

  /** Sends a signal. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Ends the child. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.disconnect()
    await ended
  }
}

/** Starts helpers, waits until each has loaded its program, and ends them afterwards. */
export async function withHelpers<T>(
  program: URL,
  count: number,
  use: (helpers: readonly Helper[]) => Promise<T>,
): Promise<T> {
  const helpers = Array.from({ length: count }, () => new Helper(program))
  try {
    await Promise.all(helpers.map((helper) => helper.ask({ kind: 'ready?' })))
    return await use(helpers)
  } finally {
    await Promise.all(helpers.map((helper) => helper.stop()))
  }
}

/** Does something with every item, a few at a time; the results are in the order of the items. */
export async function mapInLanes<T, Result>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const queue = [...items.entries()]
  const lane = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      results[next[0]] = await work(next[1])
    }
  }
  await Promise.all(Array.from({ length: width }, lane))
  return results
}
