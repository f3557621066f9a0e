/**
 * The rules of retention: which ended jobs are removed, and how far a pass over them has come.
 *
 *   class    jobs of some types that ended in one way and are kept for the same time
 *   cursor   the position of the last ended job that a pass over a class has looked at. A class
 *            with other types or another time is another class, so it starts at the first job
 *
 * A pass starts again after a day: a job that could not be removed when the pass came to it, for
 * example because it was locked, is then seen again.
 */
import { encode } from './canonical-json.ts'
import type { Outcome } from './lifecycles/lifecycle.ts'

/** How a job ended, with the same meaning in every lifecycle. */
export const ENDED_WORDS = ['succeeded', 'failed', 'cancelled'] as const
export type EndedWord = (typeof ENDED_WORDS)[number]

/** How long ended jobs are kept, in milliseconds; an absent outcome is kept without limit. */
export type KeepTimes = { readonly [Word in EndedWord]?: number }

/** Jobs that are kept for the same time. */
export interface RetentionClass {
  readonly outcome: EndedWord
  readonly keepMs: number
  /** In order; all types if absent. */
  readonly types?: readonly string[]
}

/** Returns how a job ended. Some lifecycles have no outcome for cancelled jobs: they fail. */
export function endedWordOf(outcome: Outcome, reason: string | null): EndedWord {
  return outcome === 'failed' && reason === 'cancelled' ? 'cancelled' : outcome
}

/** The classes of some job types. */
export function classesOf(types: ReadonlyMap<string, KeepTimes>): RetentionClass[] {
  const classes = new Map<string, { outcome: EndedWord; keepMs: number; types: string[] }>()
  for (const [type, keep] of types) {
    for (const outcome of ENDED_WORDS) {
      const keepMs = keep[outcome]
      if (keepMs === undefined) continue
      const key = `${outcome} ${keepMs}`
      const found = classes.get(key) ?? { outcome, keepMs, types: [] }
      classes.set(key, found)
      found.types.push(type)
    }
  }
  return [...classes.values()].map((one) => ({ ...one, types: one.types.toSorted() }))
}

/** The classes if all job types have the same times. */
export function classesOfAll(times: KeepTimes): RetentionClass[] {
  return ENDED_WORDS.flatMap((outcome) => {
    const keepMs = times[outcome]
    return keepMs === undefined ? [] : [{ outcome, keepMs }]
  })
}

/** The longest time for which jobs or keys can be kept. */
export const KEEP_MAX_MS = 100 * 366 * 86_400_000

/** A pass starts again after this time. */
export const PASS_MAX_MS = 86_400_000

/** How many cursors are kept; those that were moved longest ago are dropped. */
export const CURSORS_MAX = 200

/** How far the pass over a class is, and when it started. */
interface Pass {
  readonly since: number
  readonly cursor: string
}

/** The passes over all classes, by the name of the class. */
export type Passes = ReadonlyMap<string, Pass>

/** Reads passes. A text that is not what `writePasses` has written counts as no passes. */
export function readPasses(text: string | undefined): Passes {
  const passes = new Map<string, Pass>()
  for (const one of listIn(text)) {
    const [name, since, cursor] = Array.isArray(one) ? one : []
    if (typeof name !== 'string' || typeof cursor !== 'string') continue
    if (Number.isSafeInteger(since)) passes.set(name, { since, cursor })
  }
  return passes
}

function listIn(text: string | undefined): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(text ?? '[]')
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}

export function writePasses(passes: Passes): string {
  return encode([...passes].map(([name, { since, cursor }]) => [name, since, cursor]))
}

/** The pass without a name: a worker moves it whenever it has looked after retention. */
export const LOOK = ''

/** When a worker last started to look after retention, to the day. */
export function lastLookOf(text: string | undefined): number | undefined {
  return readPasses(text).get(LOOK)?.since
}

/** Where to go on in a class; `undefined` for its first job. */
export function cursorOf(passes: Passes, name: string, now: number): string | undefined {
  const pass = passes.get(name)
  const isCurrent = pass !== undefined && pass.since <= now && now - pass.since < PASS_MAX_MS
  return isCurrent ? pass.cursor : undefined
}

/** Moves the cursor of a class. */
export function movePass(passes: Passes, name: string, cursor: string, now: number): Passes {
  const before = cursorOf(passes, name, now) === undefined ? undefined : passes.get(name)
  const others = [...passes].filter(([other]) => other !== name)
  const moved = [name, { since: before?.since ?? now, cursor }] as const
  return new Map([...others, moved].slice(-CURSORS_MAX))
}

/** The largest number of jobs that one step looks at. */
export const STEP_MAX = 500
/** The smallest, and the first one. */
export const STEP_MIN = 10
export const STEP_FIRST = 50
/** A step that takes longer, or reads more, is followed by one that is half as large. */
export const STEP_MS = 50
export const STEP_CHARACTERS = 16 * 1024 * 1024

/** How many jobs the next step looks at, from what the last one took. */
export function nextStep(
  limit: number,
  { forMs, characters }: { readonly forMs: number; readonly characters: number },
): number {
  const isLarge = forMs > STEP_MS || characters > STEP_CHARACTERS
  if (isLarge) return Math.max(STEP_MIN, Math.floor(limit / 2))
  const isSmall = forMs * 2 <= STEP_MS && characters * 2 <= STEP_CHARACTERS
  return isSmall ? Math.min(STEP_MAX, limit * 2) : limit
}
