/**
 * Limit keys: which gates a job counts in. They are made when a job is enqueued and never change,
 * except by a replacement of its input.
 *
 * A gate is what is counted. Its name is a path of a kind and escaped parts, so that no key of a
 * user can name the gate of another limit:
 *
 *   queue/<queue>                 all jobs of a queue; no job has it among its keys
 *   type/<type>                   all jobs of a type
 *   job/<type>/<limit>/<key>      jobs of a type that have the same key
 *   shared/<limit>[/<key>]        jobs of any type that name the limit
 *   rate/<type>/<throttle>[/<key>]  starts of jobs of a type
 *   strict/<type>/<key>           jobs of a type that run one at a time, in order of enqueue
 *   group/<queue>[/<key>]         jobs of a queue that take turns with other groups; without a key,
 *                                 the jobs of the queue that have no group
 *
 * A row has the keys of its job as one text, sorted and separated by spaces. `=5` behind a gate is
 * the number that the job's own function returned, `+5` the units that its start takes. Behind a
 * group `=5` is its weight. `=0` behind a strict group says that the job does not hold its group
 * while it is parked. The group of a job is the first of its keys: indexes rely on it.
 */
import { count, listOf } from '../checks.ts'

/** A gate that a job counts in. */
export interface LimitKey {
  readonly gate: string
  /** How many jobs of this gate may run, if a function of the input said so. */
  readonly max?: number
  /** How many units a start takes from a throttle; 1 if absent. */
  readonly units?: number
  /** How many jobs of a group start in its turn; 1 if absent. */
  readonly weight?: number
  /** Of a strict group: the job does not hold its group while it is parked. */
  readonly skip?: true
}

/** How many limits and throttles one job can have. */
export const LIMIT_KEYS_MAX = 8
/** The largest number of jobs that a limit can allow. */
export const CONCURRENCY_MAX = 1_000_000
/** The largest number of units of a throttle. */
export const UNITS_MAX = 1_000_000_000
/** The largest weight of a group. */
export const WEIGHT_MAX = 1000
/** The longest name of a gate, in UTF-16 units. It is part of an index. */
export const GATE_MAX = 600

/** The kinds of gates, with the number of parts that name the limit. A key may follow. */
const LIMIT_PARTS = { queue: 1, type: 1, job: 2, shared: 1, rate: 2, strict: 1, group: 1 } as const

export type GateKind = keyof typeof LIMIT_PARTS

const PARTS: ReadonlyMap<string | undefined, number> = new Map(Object.entries(LIMIT_PARTS))

/** Returns the name of a limit or a gate. */
export function gateName(kind: GateKind, ...parts: readonly string[]): string {
  return [kind, ...parts.map(escapePart)].join('/')
}

function escapePart(part: string): string {
  return part.replace(/[%/ =+]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

function unescapePart(part: string): string {
  return part.replace(/%(2[05BF]|3D)/g, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
}

/** What the name of a gate says. */
export interface GateParts {
  readonly kind: GateKind
  /** The name of its limit: the gate without its key. */
  readonly limit: string
  /** The parts of that name, as the user wrote them. */
  readonly names: readonly string[]
  readonly key?: string
}

/** Returns the parts of a name, or `undefined` if it does not name a gate. */
export function parseGate(gate: string): GateParts | undefined {
  const [kind, ...parts] = gate.split('/')
  const needed = PARTS.get(kind) ?? 0
  const isWhole = parts.length === needed || parts.length === needed + 1
  if (needed === 0 || !isWhole || parts.includes('')) return undefined
  const names = parts.slice(0, needed)
  const key = parts[needed]
  return {
    kind: kind as GateKind,
    limit: [kind, ...names].join('/'),
    names: names.map(unescapePart),
    ...(key !== undefined && { key: unescapePart(key) }),
  }
}

/** Returns the name of the limit of a gate. */
export function limitOf(gate: string): string {
  return parseGate(gate)?.limit ?? gate
}

/** Returns true if a gate counts starts, not running jobs. */
export function isRate(gate: string): boolean {
  return gate.startsWith('rate/')
}

/** Returns true if a gate counts the jobs of a queue. */
export function isQueueGate(gate: string): boolean {
  return gate.startsWith('queue/')
}

/** Returns true if the jobs of a gate run one at a time, in order of enqueue. */
export function isStrict(gate: string): boolean {
  return gate.startsWith('strict/')
}

/** Returns true if a gate is a group that takes turns with other groups of its queue. */
export function isRotating(gate: string): boolean {
  return gate.startsWith('group/')
}

/** The order in which gates are locked everywhere: those of queues, groups, then by name. */
export function compareGates(a: string, b: string): number {
  const ranks = rankOf(a) - rankOf(b)
  if (ranks !== 0) return ranks
  return a < b ? -1 : a > b ? 1 : 0
}

function rankOf(gate: string): number {
  if (isQueueGate(gate)) return 0
  return isStrict(gate) || isRotating(gate) ? 1 : 2
}

/** Returns keys as the text of a row; null if there are none. */
export function writeKeys(keys: readonly LimitKey[]): string | null {
  if (keys.length === 0) return null
  return keys
    .toSorted((a, b) => compareGates(a.gate, b.gate))
    .map(writeKey)
    .join(' ')
}

function writeKey({ gate, max, units, weight, skip }: LimitKey): string {
  const number = skip ? 0 : (max ?? weight)
  const own = number === undefined ? '' : `=${number}`
  return `${gate}${own}${units === undefined ? '' : `+${units}`}`
}

const WRITTEN = /^([^ =+]+)(?:=(\d+))?(?:\+(\d+))?$/

/** Returns the keys of a row. A text that Pawl did not write has none. */
export function readKeys(text: string | null): LimitKey[] {
  return (text ?? '').split(' ').flatMap((one): LimitKey | [] => {
    const [, gate, max, units] = WRITTEN.exec(one) ?? []
    if (gate === undefined) return []
    return {
      gate,
      ...(max !== undefined && numberOf(gate, Number(max))),
      ...(units !== undefined && { units: Number(units) }),
    }
  })
}

function numberOf(gate: string, number: number): Pick<LimitKey, 'max' | 'weight' | 'skip'> {
  if (isStrict(gate)) return { skip: true }
  return isRotating(gate) ? { weight: number } : { max: number }
}

/** Returns the strict group of a job by the text of its keys; `undefined` if it has none. */
export function strictGroupOf(text: string | null): Pick<LimitKey, 'gate' | 'skip'> | undefined {
  if (text === null || !isStrict(text)) return undefined
  return readKeys(text)[0]
}

/** Checks the keys of a new job. */
export function limitKeys(keys: readonly LimitKey[]): string | undefined {
  const why = listOf(keys, LIMIT_KEYS_MAX, limitKey)
  if (why !== undefined) return why
  const gates = new Set(keys.map(({ gate }) => gate))
  if (gates.size < keys.length) return 'must not repeat'
  const groups = keys.filter(({ gate }) => isStrict(gate) || isRotating(gate))
  return groups.length > 1 ? 'must not name two groups' : undefined
}

function limitKey(key: LimitKey): string | undefined {
  const { gate, max, units, weight, skip } = key
  const why = gateFault(gate)
  if (why !== undefined) return why
  if (isQueueGate(gate)) return 'must not name a queue, whose limit needs no key'
  if (isStrict(gate) || isRotating(gate)) return groupFault(key)
  if (weight !== undefined || skip !== undefined) return 'must not have the options of groups'
  if (max !== undefined) return isRate(gate) ? 'must not have a maximum' : concurrency(max)
  if (units === undefined) return undefined
  return isRate(gate) ? count(units, 1, UNITS_MAX) : 'must not have units'
}

function groupFault({ gate, max, units, weight, skip }: LimitKey): string | undefined {
  if (parseGate(gate)?.key === undefined) return 'must name the key of a group'
  if (max !== undefined || units !== undefined) return 'must not give a group a number'
  if (isStrict(gate)) return weight === undefined ? undefined : 'must not give it a weight'
  if (skip !== undefined) return 'must not skip jobs of a group that takes turns'
  return weight === undefined ? undefined : count(weight, 1, WEIGHT_MAX)
}

/** Checks how many jobs may run. */
export function concurrency(value: number): string | undefined {
  return count(value, 0, CONCURRENCY_MAX)
}

/** Checks the name of a gate or a limit. */
export function gateFault(gate: string): string | undefined {
  if (typeof gate !== 'string' || parseGate(gate) === undefined) return 'must be names of gates'
  if (gate.length > GATE_MAX) return `must not be longer than ${GATE_MAX} characters`
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  const isStorable = !/\p{Surrogate}|[\0-\x1f =+]/u.test(gate)
  return isStorable ? undefined : 'must be escaped names without control characters'
}
