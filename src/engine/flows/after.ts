/**
 * What a job type comes after. The names and job types in `after` of `defineJob` are part of the
 * type of the job: `pawl.flow` asks for jobs of these types, and the handler receives their outputs
 * under the same names.
 *
 *   bill: invoice            the output of one job; it must succeed
 *   pages: [render]          the outputs of any number of jobs, in order; each must succeed
 *   mail: settled(notify)    the outcome of one job, whatever it is
 *   mails: settled([notify]) the outcomes of any number of jobs, in order
 */
import { name as checkName, reservedName } from '../../core/checks.ts'
import { DefinitionInvalid } from '../../core/errors.ts'
import { shown } from '../../core/format.ts'
import type { JobDefinition } from '../define-job.ts'
import type { AnyJob, AnyValue } from '../job-types.ts'
import type { ChildOutcome } from '../outcome.ts'

/** One job of a type, or any number of them. */
export type OneOrList = AnyJob | readonly [AnyJob]

/** Marks a dependency that may also fail or be cancelled. */
export interface SettledAfter<T extends OneOrList = OneOrList> {
  readonly settled: T
}

/** What a job type comes after, by the names under which its handler receives it. */
export type AfterOptions = Readonly<Record<string, OneOrList | SettledAfter>>

/** What a handler receives in `after`. */
export type AfterValues<A> = A extends AfterOptions
  ? { readonly [Name in keyof A]: ValueOf<A[Name]> }
  : undefined

type ValueOf<D> =
  D extends SettledAfter<infer T>
    ? T extends readonly [infer J]
      ? readonly ChildOutcome<OutputOfJob<J>>[]
      : ChildOutcome<OutputOfJob<T>>
    : D extends readonly [infer J]
      ? readonly OutputOfJob<J>[]
      : OutputOfJob<D>

/** The type of a job type's output. */
export type OutputOfJob<J> =
  J extends JobDefinition<AnyValue, AnyValue, infer Output, AnyValue, AnyValue> ? Output : never

/** The job is needed to have ended, whatever its outcome is; see `after` of `defineJob`. */
export function settled<T extends AnyJob>(job: T): SettledAfter<T>
/** The same for any number of jobs of one type. */
export function settled<T extends AnyJob>(jobs: readonly [T]): SettledAfter<readonly [T]>
/** The same for one job type or a list of one. */
export function settled(job: OneOrList): SettledAfter {
  return Object.freeze({ settled: job })
}

/** One name in `after`, checked. */
export interface AfterGroup {
  readonly name: string
  /** The name of the job type. */
  readonly type: string
  readonly need: 'success' | 'end'
  readonly isList: boolean
}

/** How many names `after` may have. */
const GROUPS_MAX = 32

/** Checks `after` of a job type; throws `DefinitionInvalid`. */
export function afterGroupsOf(after: AfterOptions | undefined): readonly AfterGroup[] | undefined {
  if (after === undefined) return undefined
  const entries = Object.entries(after)
  if (entries.length === 0 || entries.length > GROUPS_MAX) {
    throw new DefinitionInvalid('after', `must have from 1 to ${GROUPS_MAX} names`)
  }
  return entries.map(([name, dependency]) => {
    const why = checkName(name) ?? reservedName(name)
    if (why !== undefined) throw new DefinitionInvalid('after', why)
    return groupOf(name, dependency)
  })
}

function groupOf(name: string, dependency: AfterOptions[string]): AfterGroup {
  const isSettled = typeof dependency === 'object' && dependency !== null && 'settled' in dependency
  const jobs: unknown = isSettled ? dependency.settled : dependency
  const isList = Array.isArray(jobs)
  const [job, ...more] = (isList ? jobs : [jobs]) as readonly AnyJob[]
  const isType = typeof job?.implement === 'function' && more.length === 0
  if (isType) return { name, type: job.name, need: isSettled ? 'end' : 'success', isList }
  const form = `must be a job type, a list of one, or settled(…) of them, not ${shown(dependency)}`
  throw new DefinitionInvalid(`after.${name}`, form)
}
