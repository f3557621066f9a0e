/**
 * The stored definition of a lifecycle: one canonical JSON text for each version. With it a store
 * can detect that a version was changed, and programs that no longer have the code of a version can
 * still understand it.
 *
 *   initial, states (with roles), edges (from, to, on, operator), policy, retryFixed, crash
 *            must not change within a version
 *   from     the mappings of earlier versions; may be added later, must not be changed
 *
 * The meaning of states, `because` and the order of entries are not part of it. Texts of earlier
 * releases have states and edges only. Missing parts are not compared; they are added.
 */
import { encode } from '../canonical-json.ts'
import type { EdgeSpec } from '../machine/define.ts'
import { DEFAULT_POLICY, type JobPolicy } from '../retry.ts'
import {
  type CrashRule,
  defineLifecycle,
  type JobTrigger,
  type Lifecycle,
  type Role,
} from './lifecycle.ts'

interface Definition {
  readonly initial?: string
  readonly states: Readonly<Record<string, Role>>
  readonly edges: readonly Pick<EdgeSpec<string, JobTrigger>, 'from' | 'to' | 'on' | 'operator'>[]
  readonly policy?: JobPolicy
  readonly retryFixed?: boolean
  readonly crash?: CrashRule
  readonly from?: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/** Lifecycles do not change, and every opening of a store compares all of them. */
const texts = new WeakMap<Lifecycle, string>()

/** Returns the canonical text of a lifecycle. */
export function definitionOf(lifecycle: Lifecycle): string {
  const known = texts.get(lifecycle)
  if (known !== undefined) return known
  const text = textOf(dataOf(lifecycle))
  texts.set(lifecycle, text)
  return text
}

/** How a stored definition differs from the program's. */
export type Comparison =
  | { readonly kind: 'same' }
  /** No contradiction, but the stored text is incomplete. `definition` is the complete one. */
  | { readonly kind: 'extended'; readonly definition: string }
  | { readonly kind: 'changed'; readonly parts: readonly string[] }
  /** The stored text does not define a lifecycle, so no release of Pawl has written it. */
  | { readonly kind: 'damaged' }

/** Compares a stored definition with the program's definition of the same version. */
export function compareDefinitions(stored: string, lifecycle: Lifecycle): Comparison {
  if (stored === definitionOf(lifecycle)) return { kind: 'same' }
  const known = parse(stored)
  const own = dataOf(lifecycle)
  const { name, version } = lifecycle
  if (known === undefined || restoreLifecycle(name, version, stored) === undefined) {
    return { kind: 'damaged' }
  }
  const [left, right] = [canonical(known), canonical(own)]
  const parts = PARTS.filter(
    (part) => left[part] !== undefined && encode(left[part]) !== encode(right[part]),
  )
  const [mappings, ownMappings] = [known.from ?? {}, own.from]
  const remapped = Object.keys(mappings).filter(
    (version) =>
      ownMappings[version] !== undefined &&
      encode(mappings[version]) !== encode(ownMappings[version]),
  )
  const changed = [...parts, ...remapped.map((version) => `from ${version}`)]
  if (changed.length > 0) return { kind: 'changed', parts: changed }
  const definition = textOf({ ...own, from: { ...ownMappings, ...mappings } })
  return definition === stored ? { kind: 'same' } : { kind: 'extended', definition }
}

const PARTS = ['initial', 'states', 'edges', 'policy', 'retryFixed', 'crash'] as const

/** Returns the lifecycle of a stored text, without the meanings; `undefined` if it is damaged. */
export function restoreLifecycle(
  name: string,
  version: number,
  stored: string,
): Lifecycle | undefined {
  const data = parse(stored)
  if (data === undefined) return undefined
  const { states, edges, policy = DEFAULT_POLICY, retryFixed = false, crash, from } = data
  try {
    return defineLifecycle({
      name,
      version,
      initial: data.initial ?? initialOf(data),
      states: Object.fromEntries(
        Object.entries(states).map(([state, role]) => [state, { role, meaning: MEANING }]),
      ),
      edges,
      policy,
      retryFixed,
      ...(crash !== undefined && { crash }),
      ...(from !== undefined && { from }),
    })
  } catch {
    return undefined
  }
}

/** Stores do not keep the meanings of states. */
const MEANING = 'Unknown: not stored.'

/** Texts of earlier releases do not name the initial state. It is the first in the list. */
function initialOf({ states }: Definition): string {
  return Object.keys(states)[0] ?? ''
}

function dataOf(lifecycle: Lifecycle): Definition & Required<Pick<Definition, 'from'>> {
  const { machine, roles, policy, retryFixed, crash, from } = lifecycle
  return {
    initial: machine.initial,
    states: Object.fromEntries(roles),
    edges: machine.edges,
    policy,
    retryFixed,
    crash,
    from: Object.fromEntries(
      [...from].map(([version, states]) => [String(version), Object.fromEntries(states)]),
    ),
  }
}

/** Sorts edges and triggers, and drops fields that do not count. */
function canonical(data: Definition): Definition {
  const edges = data.edges.map(({ from, to, on, operator }) => ({
    from,
    to,
    on: [...on].sort(),
    ...(operator && { operator }),
  }))
  edges.sort((a, b) => compare(encode(a), encode(b)))
  return { ...data, edges }
}

function textOf(data: Definition): string {
  return encode(canonical(data))
}

function compare(a: string, b: string): number {
  return a < b ? -1 : 1
}

function parse(text: string): Definition | undefined {
  try {
    const data = JSON.parse(text) as Definition | null
    const isWhole = typeof data?.states === 'object' && Array.isArray(data.edges)
    return isWhole ? data : undefined
  } catch {
    return undefined
  }
}
