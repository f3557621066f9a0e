/**
 * What is compared: each contender is a library on a database, opened as its documentation says.
 * The measurements (`measures.ts`) know nothing of a library but this interface, so all do the same
 * work: jobs with the same small input, whose handlers do nothing or run five durable steps.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** How many durable steps a job with steps has. */
export const STEPS = 5

/** The input of every job. */
export const PAYLOAD = {
  to: 'ann@example.org',
  subject: 'Hello',
  lines: ['One', 'Two', 'Three'],
} as const

export const QUEUE = 'mail'
export const TYPE = 'send-mail'

/** Where a contender works and how. */
export interface Opening {
  /** The folder with the packages of the peers. */
  readonly home: string
  /** A connection string, the path of a SQLite file, or the port of a Redis. */
  readonly place: string
  /** The settings of `settings.ts`, as the adapter of the contender reads them. */
  readonly options: Settings
  /** Whether handlers run durable steps. */
  readonly steps: boolean
}

export type Settings = Readonly<Record<string, unknown>>

/** What the database says of the jobs. */
export interface Counts {
  /** Jobs that have not been started. */
  readonly waiting: number
  /** Jobs that are recorded as finished; a library that deletes them counts what is gone. */
  readonly finished: number
  /** Steps that are recorded. */
  readonly steps: number
}

/** An open contender. */
export interface Session {
  /** Adds one job; it is durable, as far as the settings promise, when this returns. */
  add(): Promise<unknown>
  /** Adds many jobs by the fastest public call. */
  addMany(jobs: number): Promise<void>
  /** Starts a worker, and returns how it is stopped; stopping waits for running handlers. */
  work(handler: () => void | Promise<void>): Promise<() => Promise<void>>
  count(): Promise<Counts>
  close(): Promise<void>
}

/** Opens a contender; its tables exist afterwards. */
export type Open = (opening: Opening) => Promise<Session>

/** Loads a package of the peers. The process must run with `--experimental-import-meta-resolve`. */
export async function loadPeer<T>(home: string, name: string): Promise<T> {
  const parent = pathToFileURL(join(home, 'package.json')).href
  return (await import(import.meta.resolve(name, parent))) as T
}

/** Splits a number of jobs into calls of at most so many. */
export async function inBatches(
  jobs: number,
  most: number,
  add: (count: number) => Promise<unknown>,
): Promise<void> {
  for (let left = jobs; left > 0; left -= most) await add(Math.min(left, most))
}

/** Runs a call so often, by so many callers at once. */
export async function byCallers(
  jobs: number,
  callers: number,
  call: () => Promise<unknown>,
): Promise<void> {
  let left = jobs
  const caller = async () => {
    while (left-- > 0) await call()
  }
  await Promise.all(Array.from({ length: callers }, caller))
}

/** As many of one value. */
export function repeat<T>(count: number, value: T): T[] {
  return Array.from({ length: count }, () => value)
}
