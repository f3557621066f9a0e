// The program as users have it, from dist. `Place.start` is a process. `Place.run` is one as well
// for commands whose subject is the process, and in `npm run prove` once for each command;
// otherwise it runs the line in this process, which takes a tenth of the time.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { freshFolder } from '../processes/folder.ts'
import { isProof } from '../support/extent.ts'

export const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

const COMMAND_LINE = new URL('../../dist/cli/command-line.js', import.meta.url).href

/** How a process ended, and what it said. */
export interface Ended {
  readonly code: number | null
  readonly signal: string | null
  readonly stdout: string
  readonly stderr: string
}

/** Where and how to run it. */
export interface RunOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  readonly program?: string
  /** Run it in a process of its own: its end, its signals or its memory are the subject. */
  readonly ownProcess?: true
}

/** Commands that run until a signal ends them, under the number of their process. */
const OWN_PROCESS = new Set(['demo', 'dev', 'mcp', 'serve', 'telemetry', 'work'])

/** What was run in a process so far: the words of commands, without options and values. */
const proven = new Set<string>()

function isFirst(args: readonly string[]): boolean {
  const command = args.slice(0, 2).join(' ')
  if (proven.has(command)) return false
  proven.add(command)
  return true
}

const isEndless = ([command = '', ...rest]: readonly string[]) =>
  OWN_PROCESS.has(command) && !(command === 'work' && rest.includes('--once'))

/** A folder of its own with a store in it, in which the program is run. */
export class Place {
  readonly folder = freshFolder()
  readonly path = join(this.folder, 'jobs.db')
  readonly store: string
  readonly #env: Readonly<Record<string, string>>

  constructor(store?: string) {
    this.store = store ?? `sqlite:${this.path}`
    this.#env = { PAWL_STORE: this.store, PAWL_OPERATOR: 'ada' }
  }

  /** Runs the program to its end. */
  run(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
    const env = { ...this.#env, ...options.env }
    const whole = { cwd: this.folder, ...options, env }
    const isOwn = options.ownProcess || options.program || isEndless(args)
    if (isOwn || (isProof && isFirst(args))) return ended(start(args, whole), options.input)
    return inTurn(() => runHere(args, whole))
  }

  /** Runs the program, which must succeed, and gives what it printed. */
  async ok(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(args)
    if (code !== 0) throw new Error(`exit code ${code}: ${stderr}`)
    return stdout
  }

  /** The same with --json: its lines as values. */
  async json<T>(...args: string[]): Promise<T[]> {
    return linesOf<T>(await this.ok(...args, '--json'))
  }

  /** Starts the program, and leaves it running. */
  start(args: readonly string[], options: RunOptions = {}): ChildProcessWithoutNullStreams {
    return start(args, { cwd: this.folder, ...options, env: { ...this.#env, ...options.env } })
  }
}

function start(
  args: readonly string[],
  { cwd, env, program = PROGRAM }: RunOptions,
): ChildProcessWithoutNullStreams {
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(process.execPath, [program, ...args], { cwd, env: { PATH, HOME, ...env } })
  // A test that fails leaves no process behind.
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

let last: Promise<unknown> = Promise.resolve()

/** One after the other: this process has one working directory. */
function inTurn<T>(run: () => Promise<T>): Promise<T> {
  const turn = last.then(run)
  last = turn.catch(() => {})
  return turn
}

/** Runs a line in this process, as if it were alone in one of its own. */
async function runHere(args: readonly string[], { cwd, env, input = '' }: RunOptions) {
  const { runLine } = (await import(COMMAND_LINE)) as typeof import('../../src/cli/command-line.ts')
  const { PATH = '', HOME = '' } = process.env
  const before = { cwd: process.cwd(), env: process.env }
  const said = { stdout: '', stderr: '' }
  const sink = (name: 'stdout' | 'stderr') =>
    new Writable({
      write(chunk, _encoding, done) {
        said[name] += String(chunk)
        done()
      },
    })
  const { signal } = new AbortController()
  try {
    process.chdir(cwd ?? before.cwd)
    // A file of jobs that was changed is loaded again, as another process would.
    process.env = { PATH, HOME, JITI_MODULE_CACHE: 'false', ...env }
    const code = await runLine(args, {
      env: process.env,
      stdin: Readable.from(input === '' ? [] : [input]) as NodeJS.ReadStream,
      stdout: sink('stdout'),
      stderr: sink('stderr'),
      listen: () => ({ interrupted: signal, interruptedAgain: signal }),
    })
    return { code, signal: null, ...said }
  } finally {
    process.chdir(before.cwd)
    process.env = before.env
  }
}

/** Waits for the end of a process. */
export async function ended(child: ChildProcessWithoutNullStreams, input = ''): Promise<Ended> {
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text
    })
  }
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  return { code, signal, ...said }
}

/** Lines of JSON. */
export function linesOf<T>(text: string): T[] {
  return text
    .trimEnd()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as T)
}

/** Resolves when a stream has said something that matches. */
export function said(stream: NodeJS.ReadableStream, pattern: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    stream.on('data', (chunk: Buffer | string) => {
      text += String(chunk)
      if (pattern.test(text)) resolve(text)
    })
    stream.once('end', () => reject(new Error(`it never said ${pattern}: ${text}`)))
  })
}
