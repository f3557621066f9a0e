/** The classes of jobs that follow from the options of retention. */
import { createHash } from 'node:crypto'
import { CommandInvalid } from '../../core/errors.ts'
import {
  classesOf,
  classesOfAll,
  ENDED_WORDS,
  type KeepTimes,
  type RetentionClass,
} from '../../core/retention.ts'
import { keepMsOf, type OwnKeepTimes, type RetentionOptions, timesOf } from './options.ts'

/** A class with a name that no other class has. */
export interface NamedClass extends RetentionClass {
  readonly name: string
}

/** What workers of this process remove. */
export interface RetentionPolicy {
  /** Empty if nothing is ever removed. */
  readonly classes: readonly NamedClass[]
  readonly keysMs?: number
  readonly archive?: (lines: string) => Promise<void>
}

/**
 * The policy for some job types: their own times, and those of `createPawl` for the others. Without
 * a list it is one for all types.
 */
export function policyOf(
  options: RetentionOptions,
  types?: Iterable<{ readonly name: string; readonly retention: OwnKeepTimes | undefined }>,
): RetentionPolicy {
  const common = timesOf(options, CommandInvalid)
  const times = new Map<string, KeepTimes>()
  for (const { name, retention } of types ?? []) times.set(name, known({ ...common, ...retention }))
  const { keys, archive } = options
  return {
    classes: (types === undefined ? classesOfAll(known(common)) : classesOf(times)).map((one) => ({
      ...one,
      name: nameOf(one),
    })),
    ...(keys !== undefined && { keysMs: keepMsOf('keys', keys, CommandInvalid) }),
    ...(archive !== undefined && { archive }),
  }
}

/** The times that are limited. */
function known(times: OwnKeepTimes): KeepTimes {
  const limited = ENDED_WORDS.flatMap((word) => {
    const ms = times[word]
    return ms === undefined || ms === null ? [] : [[word, ms] as const]
  })
  return Object.fromEntries(limited)
}

/** A class with other types or another time has another name, so that its pass starts again. */
function nameOf({ outcome, keepMs, types }: RetentionClass): string {
  const hash = createHash('sha256')
    .update(JSON.stringify(types ?? null))
    .digest('hex')
    .slice(0, 16)
  return `${outcome} ${keepMs} ${hash}`
}
