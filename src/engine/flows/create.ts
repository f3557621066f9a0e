/** Creates flows and batches: all inputs are checked first, then one transaction makes all jobs. */
import { flag, name as nameRule } from '../../core/checks.ts'
import { CommandInvalid } from '../../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import type { FlowRequest } from '../../stores/contract/flows.ts'
import type { JoinableTx } from '../effects/effects.ts'
import type { EnqueueParts } from '../enqueueing.ts'
import type { AnyJob, AnyValue, JobKey } from '../job-types.ts'
import type { HasEnded } from '../results.ts'
import { checkNodeType, FlowBuilder, type FlowNode } from './builder.ts'
import { BatchHandle, FlowHandle } from './handles.ts'
import {
  accepted,
  CALLBACKS,
  type CallbackName,
  contextOf,
  memberItems,
  nodeItem,
} from './items.ts'

/** The options of `pawl.flow`. */
export interface FlowOptions {
  /**
   * There is at most one flow or batch with a key. If it exists, the handle is that of the existing
   * one, and nothing is created.
   * @defaultValue none
   */
  readonly key?: string
  /**
   * A transaction of the same database: from `pawl.transaction`, from a commit, or your own.
   * @defaultValue a transaction of its own
   */
  readonly tx?: JoinableTx
}

/** A job type and its input: the job that a batch makes when its members have ended. */
export type BatchCallback<Input> = readonly [job: JobKey<Input, AnyValue>, input: NoInfer<Input>]

/** The options of `pawl.batch`. */
export interface BatchOptions<OnSuccess = unknown, OnComplete = unknown, OnFailure = unknown>
  extends FlowOptions {
  /**
   * Runs once when all members have succeeded, also if some had to be redriven.
   * @defaultValue none
   */
  readonly onSuccess?: BatchCallback<OnSuccess>
  /**
   * Runs once when all members have ended, in whatever way.
   * @defaultValue none
   */
  readonly onComplete?: BatchCallback<OnComplete>
  /**
   * Runs once when the first member has failed or was cancelled. It is cancelled if all succeed.
   * @defaultValue none
   */
  readonly onFailure?: BatchCallback<OnFailure>
  /**
   * Members can be added until `close`; none of the callbacks starts before that.
   * @defaultValue `false`
   */
  readonly open?: boolean
}

const FLOW: FieldChecks<FlowOptions> = { key: nameRule, tx: unchecked }

const pair = (value: unknown) =>
  Array.isArray(value) && value.length === 2 ? undefined : 'must be a job type and its input'

const BATCH: FieldChecks<BatchOptions> = {
  ...FLOW,
  onSuccess: pair,
  onComplete: pair,
  onFailure: pair,
  open: flag,
}

/** See `pawl.flow`. */
export async function createFlow<Output>(
  parts: EnqueueParts,
  // biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing
  build: (f: FlowBuilder) => FlowNode<Output> | void,
  options: FlowOptions,
): Promise<FlowHandle<Output>> {
  checkFields(options, FLOW, { what: 'options' })
  const builder = new FlowBuilder()
  const { nodes, result } = builder.end(build(builder))
  if (nodes.length === 0) throw new CommandInvalid('flow', 'must have a job')
  const id = parts.environment.ids.next()
  const made: FlowRequest['nodes'][number][] = []
  for (const node of nodes) {
    const { after, onFailure } = node
    made.push({
      item: await nodeItem(contextOf(parts), node),
      ...(after !== undefined && { after }),
      ...(onFailure !== undefined && { onFailure }),
    })
  }
  const { flow, created, hasEnded } = await send(
    parts,
    { id, kind: 'flow', nodes: made, ...keyOf(options) },
    options,
  )
  const own = { ...(result !== undefined && { result: result.n }), ...hasEnded }
  return new FlowHandle<Output>(parts, flow, created, own)
}

/** See `pawl.batch`. */
export async function createBatch<Input>(
  parts: EnqueueParts,
  definition: AnyJob,
  inputs: readonly Input[],
  options: BatchOptions<AnyValue, AnyValue, AnyValue>,
): Promise<BatchHandle<Input>> {
  checkFields(options, BATCH, { what: 'options' })
  const names = (Object.keys(CALLBACKS) as CallbackName[]).filter((name) => options[name])
  const nodes: FlowRequest['nodes'][number][] = []
  for (const name of names) {
    const [callback, input] = options[name] as readonly [AnyJob, unknown]
    checkNodeType(callback)
    const group = { name: 'members', of: 'members', need: CALLBACKS[name], list: true } as const
    const item = await nodeItem(contextOf(parts), { definition: callback, input, options: {} })
    nodes.push({ item, after: [group] })
  }
  for (const item of await memberItems(parts, definition, inputs)) nodes.push({ item })
  const { open = false } = options
  const id = parts.environment.ids.next()
  const request: FlowRequest = { id, kind: 'batch', nodes, open, ...keyOf(options) }
  const { flow, created, hasEnded } = await send(parts, request, options)
  return new BatchHandle<Input>(parts, flow, created, { definition, names, ...hasEnded })
}

function keyOf({ key }: FlowOptions): { readonly key?: string } {
  return key === undefined ? {} : { key }
}

async function send({ store }: EnqueueParts, request: FlowRequest, { tx }: FlowOptions) {
  let asked: HasEnded | undefined
  const onJoined = (ask: HasEnded) => {
    asked = ask
  }
  const answer = await store.flows.create(request, tx === undefined ? {} : { tx, onJoined })
  const { flow, kind } = accepted(answer)
  const hasEnded = asked === undefined ? {} : { hasEnded: asked }
  return { flow, created: kind === 'created', hasEnded }
}
