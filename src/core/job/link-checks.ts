/** Checks of the place of a job in a flow, and of what it waits for. */
import { count, flag, isBroken, listOf, name, oneOf, optional, record, uuid } from '../checks.ts'
import type { After, AfterGroup, FlowPlace, Look, NodeRange } from './links.ts'

/** How many children one invoke may have. */
export const INVOKED_MAX = 10_000
/** The highest number of a node. */
const NODE_MAX = 1_000_000
const GROUPS_MAX = 100
const RANGES_MAX = 10_000

/** Returns what is wrong with the place of a job in a flow. */
export function flowPlace(value: FlowPlace): string | undefined {
  return (
    record(value) ??
    uuid(value.id) ??
    count(value.n, 0, NODE_MAX) ??
    optional(value.as, (as) => name(as))
  )
}

/** Returns what is wrong with the dependencies of a job. */
export function afterFault(value: After): string | undefined {
  const why =
    record(value) ??
    oneOf(value.onFailure, ['park', 'cancel', 'fail']) ??
    listOf(value.groups, GROUPS_MAX, group)
  if (why !== undefined) return why
  const { size } = new Set(value.groups.map((one) => one.name))
  return size === value.groups.length ? undefined : 'must not repeat a name'
}

function group(value: AfterGroup): string | undefined {
  return (
    record(value) ??
    name(value.name) ??
    oneOf(value.need, ['success', 'end', 'failure']) ??
    flag(value.list) ??
    (value.of === 'members' ? undefined : listOf(value.of, RANGES_MAX, range))
  )
}

function range(value: NodeRange): string | undefined {
  if (typeof value === 'number') return count(value, 0, NODE_MAX)
  const why = listOf(value, 2, (n: number) => count(n, 0, NODE_MAX))
  if (why !== undefined) return why
  const [first, last] = value
  return value.length === 2 && first <= last ? undefined : 'must have a first and a last number'
}

/** Returns what is wrong with what a store says about the links of a waiter. */
export function lookFault(value: Look): string | undefined {
  const why = record(value) ?? flag(value.open)
  return why ?? [value.failed, value.hit].map((id) => optional(id, uuid)).find(isBroken)
}
