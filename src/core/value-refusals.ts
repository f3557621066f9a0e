/**
 * Completes the error for a value that cannot be stored. The writer stops at the first problem and
 * knows only its path. Here, where speed does not matter, a circle is found, a size is measured and
 * a long path is cut.
 */
import type { JsonBounds } from './canonical-json.ts'
import { ValueInvalid } from './errors.ts'
import { size } from './format.ts'

/** Paths in messages are cut to about this length. */
const PATH_MAX = 120
/** A value that is so much larger than its bound is not measured. */
const MEASURED = 2
/** How many members are visited to find a circle. */
const STEPS_MAX = 100_000

/** Returns the error to throw instead of `error`. `encode` writes the value with other bounds. */
export function explainRefusal(
  error: unknown,
  value: unknown,
  bounds: JsonBounds,
  encode: (bounds: JsonBounds) => string,
): unknown {
  // The value is so deep that the writer ran out of stack.
  const refusal = error instanceof RangeError ? new ValueInvalid('$', TOO_DEEP) : error
  if (!(refusal instanceof ValueInvalid)) return error
  const { path, why } = refusal.details as { path: string; why: string }
  if (/nested|too large/.test(why)) {
    const circle = findCircle(value)
    if (circle !== undefined) {
      const hint = 'Replace the reference by an id, or leave it out.'
      return new ValueInvalid(cut(circle.path), `refers back to ${cut(circle.to)}`, hint)
    }
  }
  if (/too large|larger than/.test(why)) return tooLarge(bounds, encode)
  return new ValueInvalid(cut(path), why, refusal.hint)
}

const TOO_DEEP = 'is nested too deeply'

function tooLarge({ bytesMax, depthMax }: JsonBounds, encode: (bounds: JsonBounds) => string) {
  const most = bytesMax * MEASURED
  let measured = `more than ${size(most)}`
  try {
    // The text is ASCII for the most part, so its length is a good measure.
    measured = `about ${size(encode({ bytesMax: most, depthMax }).length)}`
  } catch {
    // It is larger than what is measured, or it has another problem further on.
  }
  return new ValueInvalid(
    '$',
    `is too large: ${measured}, and at most ${size(bytesMax)} are allowed`,
    'Store the data elsewhere and pass a reference, or raise payloadBytesMax of createPawl.',
  )
}

/** Keeps both ends of a path. */
function cut(path: string): string {
  const half = PATH_MAX / 2
  return path.length <= PATH_MAX ? path : `${path.slice(0, half)}…${path.slice(-half)}`
}

interface Visit {
  readonly value: object
  readonly path: string
  readonly rest: Iterator<[step: string, child: unknown]>
}

/** Finds a reference to an enclosing object; stops after `STEPS_MAX` members. */
function findCircle(root: unknown): { path: string; to: string } | undefined {
  const enclosing = new Map<object, string>()
  const searched = new Set<object>()
  const visits: Visit[] = []
  const enter = (value: unknown, path: string) => {
    if (typeof value !== 'object' || value === null || searched.has(value)) return
    enclosing.set(value, path)
    visits.push({ value, path, rest: childrenOf(value)[Symbol.iterator]() })
  }
  enter(root, '$')
  for (let i = 0; i < STEPS_MAX; i++) {
    const visit = visits.at(-1)
    if (visit === undefined) return undefined
    const next = visit.rest.next()
    if (next.done === true) {
      enclosing.delete(visit.value)
      searched.add(visit.value)
      visits.pop()
      continue
    }
    const [step, child] = next.value
    const path = `${visit.path}${step}`
    const to = enclosing.get(child as object)
    if (to !== undefined) return { path, to }
    enter(child, path)
  }
  return undefined
}

function* childrenOf(value: object): Iterable<[step: string, child: unknown]> {
  if (Array.isArray(value)) {
    for (const [i, child] of value.entries()) yield [`[${i}]`, child]
  } else if (value instanceof Map || value instanceof Set) {
    const name = value instanceof Map ? 'map' : 'set'
    for (const [i, child] of [...value].entries()) yield [`.${name}[${i}]`, child]
  } else {
    for (const key of Object.keys(value)) yield [`.${key}`, (value as Record<string, unknown>)[key]]
  }
}
