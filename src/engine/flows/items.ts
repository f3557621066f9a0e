/** Builds the items of flows, batches and invokes, whose ids the store derives. */
import { listOf } from '../../core/checks.ts'
import { CommandInvalid } from '../../core/errors.ts'
import { unchecked } from '../../core/fields.ts'
import type { Need } from '../../core/job/links.ts'
import type { FlowAnswer, FlowItem } from '../../stores/contract/flows.ts'
import { type ItemContext, itemOf } from '../enqueue-item.ts'
import type { EnqueueParts } from '../enqueueing.ts'
import { AfterMissing } from '../errors.ts'
import type { AnyJob } from '../job-types.ts'
import { type AddedNode, checkNodeType } from './builder.ts'

/** What each callback of a batch waits for, in the order of their nodes. */
export const CALLBACKS = {
  onSuccess: 'success',
  onComplete: 'end',
  onFailure: 'failure',
} as const satisfies Record<string, Need>

export type CallbackName = keyof typeof CALLBACKS

/** The items of members; each input is checked. */
export async function memberItems(
  parts: EnqueueParts,
  definition: AnyJob,
  inputs: readonly unknown[],
): Promise<FlowItem[]> {
  checkNodeType(definition)
  if (definition.groups !== undefined) {
    throw new AfterMissing(
      definition.name,
      definition.groups.map(({ name }) => name),
    )
  }
  const why = listOf(inputs, INPUTS_MAX, unchecked)
  if (why !== undefined) throw new CommandInvalid('inputs', why)
  const context = contextOf(parts)
  const items: FlowItem[] = []
  for (const input of inputs) {
    items.push(await nodeItem(context, { definition, input, options: {} }))
  }
  return items
}

const INPUTS_MAX = 20_000

/** What items are built with. */
export function contextOf({ store, bounds }: EnqueueParts): Pick<ItemContext, 'now' | 'bounds'> {
  return { now: () => store.now(), bounds }
}

/** The item of a job whose id is derived. */
export async function nodeItem(
  { now, bounds }: Pick<ItemContext, 'now' | 'bounds'>,
  { definition, input, options }: Pick<AddedNode, 'definition' | 'input' | 'options'>,
): Promise<FlowItem> {
  const ids = { next: () => '' }
  const context = { ids, bounds, now, isNode: true }
  const { command, ...item } = await itemOf(definition, input, options, context)
  const { jobId: _, ...own } = command
  return { ...item, command: own }
}

/** Throws a rejection. */
export function accepted(answer: FlowAnswer): Exclude<FlowAnswer, { kind: 'rejected' }> {
  if (answer.kind === 'rejected') throw answer.error
  return answer
}
