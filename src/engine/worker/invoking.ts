/** `invoke` and `invokeMany` of the context: jobs that their parent waits for. */
import { listOf } from '../../core/checks.ts'
import { CommandInvalid } from '../../core/errors.ts'
import { unchecked } from '../../core/fields.ts'
import { AfterMissing } from '../errors.ts'
import { checkNodeType } from '../flows/builder.ts'
import { nodeItem } from '../flows/items.ts'
import { childOutcomeOf } from '../flows/read-after.ts'
import type { AnyJob } from '../job-types.ts'
import type { InvokeManyOptions } from '../options.ts'
import type { ChildOutcome } from '../outcome.ts'
import type { AttemptParts } from './attempt-parts.ts'
import type { Waits } from './waits.ts'

/** How many jobs one call may make. */
const CHILDREN_MAX = 10_000

/** Makes a job for each input and waits for all of them. Returns their outcomes in order. */
export async function invokeJobs(
  waits: Waits,
  parts: Pick<AttemptParts, 'bounds' | 'now'>,
  { name, definition, inputs }: { name: string; definition: AnyJob; inputs: readonly unknown[] },
  options: InvokeManyOptions,
): Promise<readonly ChildOutcome[]> {
  checkNodeType(definition)
  const { name: type, groups } = definition
  if (groups !== undefined) throw new AfterMissing(type, groups.map(nameOf))
  const why = listOf(inputs, CHILDREN_MAX, unchecked)
  if (why !== undefined) throw new CommandInvalid('inputs', why)
  const { concurrency, onParentEnd, ...own } = options
  const children = async () => {
    const items = []
    for (const input of inputs) {
      items.push(await nodeItem(parts, { definition, input, options: own }))
    }
    return items
  }
  const count = inputs.length
  const ends = await waits.invoke({ name, children, count, concurrency, onParentEnd })
  return ends.map((end) => childOutcomeOf(end) as ChildOutcome)
}

function nameOf({ name }: { readonly name: string }): string {
  return name
}
