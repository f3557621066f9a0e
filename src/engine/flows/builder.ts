/**
 * Collects the jobs of a flow. A node may only come after nodes that exist, so no flow has a cycle.
 * Nothing is written before the function of `pawl.flow` has returned.
 */
import { oneOf } from '../../core/checks.ts'
import { CommandInvalid } from '../../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import { shown } from '../../core/format.ts'
import type { NodeRange, OnFailure, AfterGroup as StoredGroup } from '../../core/job/links.ts'
import type { JobDefinition } from '../define-job.ts'
import { AfterMissing } from '../errors.ts'
import { type AnyJob, type AnyValue, checkJobType } from '../job-types.ts'
import { checkJobOptions, type EnqueueOptions } from '../options.ts'
import type { AfterGroup, AfterOptions, OutputOfJob, SettledAfter } from './after.ts'

/** A job of a flow that is being built. */
export interface FlowNode<Output = unknown> {
  /** Its number in the flow, from 0. */
  readonly n: number
  /** The name of its job type. */
  readonly type: string
  /** Carries the type of its output; has no value at run time. */
  readonly '~output'?: Output
}

/** The options of a job of a flow. It has no key: the flow has one. */
export type NodeOptions = Pick<
  EnqueueOptions,
  'priority' | 'tags' | 'timeout' | 'deadline' | 'delay' | 'runAt'
>

/** The options of a job that comes after others. */
export interface DependentOptions<A>
  extends Pick<EnqueueOptions, 'priority' | 'tags' | 'timeout' | 'deadline'> {
  /** The jobs that it comes after, by the names of its job type. */
  readonly after: AfterNodes<A>
  /**
   * What to do if one of them does not succeed: wait for an operator ('park'), or end as well. A
   * parked job goes on by itself if the other one is redriven and succeeds.
   * @defaultValue `'park'`
   */
  readonly onFailure?: OnFailure
}

/** The nodes that `after` of a job type asks for. */
export type AfterNodes<A> = {
  readonly [Name in keyof A]: A[Name] extends SettledAfter<infer T> ? NodesOf<T> : NodesOf<A[Name]>
}

type NodesOf<T> = T extends readonly [infer J]
  ? readonly FlowNode<OutputOfJob<J>>[]
  : FlowNode<OutputOfJob<T>>

/** The last argument of `add`: options, which a job type with `after` needs. */
export type NodeArguments<A> = A extends AfterOptions
  ? [options: DependentOptions<A>]
  : [options?: NodeOptions]

/** A node as it was added. */
export interface AddedNode {
  readonly definition: AnyJob
  readonly input: unknown
  readonly options: NodeOptions
  readonly after?: readonly StoredGroup[]
  readonly onFailure?: OnFailure
}

const NODE: FieldChecks<{ after?: unknown; onFailure?: OnFailure | undefined }> = {
  after: unchecked,
  onFailure: (value) => oneOf(value, ['park', 'cancel', 'fail']),
}

/** Builds a flow; see `pawl.flow`. */
export class FlowBuilder {
  readonly #nodes: AddedNode[] = []
  readonly #own = new Set<FlowNode>()
  #isOver = false

  /** Adds a job. Its `after` names nodes that were added before. */
  add<Input, Output, A extends AfterOptions | undefined>(
    definition: JobDefinition<Input, AnyValue, Output, AnyValue, A>,
    input: NoInfer<Input>,
    ...[options]: NodeArguments<A>
  ): FlowNode<Output> {
    if (this.#isOver) {
      throw new CommandInvalid('add', 'must be called before the function of the flow returns')
    }
    checkNodeType(definition)
    const given = (options ?? {}) as NodeOptions & { after?: unknown; onFailure?: OnFailure }
    const { after, onFailure, ...own } = given
    checkFields({ after, onFailure }, NODE, { what: 'options' })
    checkNodeOptions(own, after !== undefined)
    const groups = this.#groupsOf(definition, after)
    if (onFailure !== undefined && groups === undefined) {
      throw new CommandInvalid('onFailure', 'must not be given for a job that comes after nothing')
    }
    const node: FlowNode<Output> = Object.freeze({ n: this.#nodes.length, type: definition.name })
    this.#own.add(node)
    this.#nodes.push({
      ...{ definition, input, options: own },
      ...(groups !== undefined && { after: groups }),
      ...(onFailure !== undefined && { onFailure }),
    })
    return node
  }

  /** Ends the building. Returns the nodes and the one that the function has returned. @internal */
  end(returned: unknown): { nodes: readonly AddedNode[]; result: FlowNode | undefined } {
    this.#isOver = true
    if (returned === undefined || returned === null) {
      return { nodes: this.#nodes, result: undefined }
    }
    if (this.#own.has(returned as FlowNode)) {
      return { nodes: this.#nodes, result: returned as FlowNode }
    }
    const why = `must return a node of this flow or nothing, not ${shown(returned)}`
    throw new CommandInvalid('flow', why)
  }

  #groupsOf(definition: AnyJob, after: unknown): readonly StoredGroup[] | undefined {
    const { name: type, groups } = definition
    if (groups === undefined) {
      if (after === undefined) return undefined
      throw new CommandInvalid('after', `must not be given: ${type} comes after nothing`)
    }
    const names = groups.map(({ name }) => name)
    if (typeof after !== 'object' || after === null) throw new AfterMissing(type, names)
    const unknown = Object.keys(after).find((name) => !names.includes(name))
    if (unknown !== undefined) {
      throw new CommandInvalid(`after.${unknown}`, `is not a name in \`after\` of ${type}`)
    }
    return groups.map((group) =>
      this.#groupOf(group, (after as Record<string, unknown>)[group.name]),
    )
  }

  #groupOf(group: AfterGroup, given: unknown): StoredGroup {
    const { name, type, need, isList } = group
    const field = `after.${name}`
    if (isList !== Array.isArray(given)) {
      throw new CommandInvalid(field, isList ? 'must be a list of nodes' : 'must be one node')
    }
    const nodes = (isList ? given : [given]) as readonly FlowNode[]
    for (const node of nodes) {
      if (!this.#own.has(node)) {
        throw new CommandInvalid(field, 'must be nodes of this flow, which f.add returned before')
      }
      if (node.type === type) continue
      throw new CommandInvalid(field, `must be of type ${type}, and node ${node.n} is ${node.type}`)
    }
    const numbers = nodes.map(({ n }) => n)
    if (new Set(numbers).size < numbers.length) {
      throw new CommandInvalid(field, 'must not name a node twice')
    }
    return { name, of: rangesOf(numbers), need, list: isList }
  }
}

/** Refuses job types of which an enqueue may return another job. */
export function checkNodeType(definition: AnyJob): void {
  checkJobType(definition)
  if (definition.admission === undefined) return
  const why =
    `must not have rateLimit, debounce or singleton, and ${definition.name} has: others wait ` +
    'for this job, so it must not become another one'
  throw new CommandInvalid('job', why)
}

/** Refuses options that a job of a flow, a batch or an invoke cannot have. */
function checkNodeOptions(options: object, isDependent: boolean): void {
  for (const name of ['key', 'onConflict', 'hold', 'jobId', 'tx']) {
    if (!(name in options)) continue
    throw new CommandInvalid(name, 'must not be given for one job of several that belong together')
  }
  for (const name of isDependent ? ['delay', 'runAt'] : []) {
    if (!(name in options)) continue
    throw new CommandInvalid(name, 'must not be given: the job starts when those before it end')
  }
  checkJobOptions(options)
}

/** Numbers as ranges, in their order: 3, 4, 5, 9 becomes [3, 5], 9. */
function rangesOf(numbers: readonly number[]): NodeRange[] {
  const ranges: [first: number, last: number][] = []
  for (const n of numbers) {
    const last = ranges[ranges.length - 1]
    if (last !== undefined && n === last[1] + 1) last[1] = n
    else ranges.push([n, n])
  }
  return ranges.map(([first, last]) => (first === last ? first : [first, last]))
}
