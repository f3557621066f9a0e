/** Many work items at once, a few at a time. */
import { count } from '../core/checks.ts'
import { CommandInvalid } from '../core/errors.ts'
import { WorkTwice } from './errors.ts'

const CONCURRENCY_DEFAULT = 4
const CONCURRENCY_MAX = 1000
const ITEMS_MAX = 100_000

/** Something to be done under a key. */
export interface Keyed<T> {
  readonly key: string
  readonly value: T
}

/** The values by their keys, in the order of keys; two must not share one. */
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
 * Does all of them, so many at a time, and gives the results in the order of keys. After a failure
 * none is begun; those under way are waited for, because what they finish is kept. Work that fails
 * calls `stop` at once, since the failure itself comes later: when it is in the log.
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
