/** Runs many work items, several at a time. */
import { count } from '../core/checks.ts'
import { CommandInvalid } from '../core/errors.ts'
import { WorkTwice } from './errors.ts'

const CONCURRENCY_DEFAULT = 4
const CONCURRENCY_MAX = 1000
const ITEMS_MAX = 100_000

export interface Keyed<T> {
  readonly key: string
  readonly value: T
}

/** Returns the values with their keys, sorted by key. Throws `WorkTwice` if a key repeats. */
export function byKey<T>(values: Iterable<T>, keyOf: (value: T) => string): Keyed<T>[] {
  const keyed = new Map<string, Keyed<T>>()
  for (const value of values) {
    const key = keyOf(value)
    if (typeof key !== 'string') throw new CommandInvalid('key', 'must be a text')
    if (keyed.has(key)) throw new WorkTwice(key)
    keyed.set(key, { key, value })
    if (keyed.size > ITEMS_MAX) {
      throw new CommandInvalid('values', `must not be more than ${ITEMS_MAX}`)
    }
  }
  return [...keyed.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
}

/**
 * Runs all of them and returns the results in the order of keys. After a failure no further one
 * starts. Those that run are awaited, because their results are stored. A failing item calls `stop`
 * at once: its promise rejects later, when the failure is in the log.
 */
export async function fanOut<T, Result>(
  keyed: readonly Keyed<T>[],
  concurrency: number = CONCURRENCY_DEFAULT,
  work: (one: Keyed<T>, stop: () => void) => Promise<Result>,
): Promise<ReadonlyMap<string, Result>> {
  const why = count(concurrency, 1, CONCURRENCY_MAX)
  if (why !== undefined) throw new CommandInvalid('concurrency', why)
  const results = new Map<string, Result>()
  const failures = new Map<string, unknown>()
  const left = keyed.values()
  let stopped = false
  const stop = () => {
    stopped = true
  }
  const slot = async () => {
    for (const one of left) {
      try {
        results.set(one.key, await work(one, stop))
      } catch (error) {
        failures.set(one.key, error)
        stop()
      }
      if (stopped) return
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, keyed.length) }, slot))
  for (const { key } of keyed) if (failures.has(key)) throw failures.get(key)
  return new Map(keyed.map(({ key }) => [key, results.get(key) as Result]))
}
