/** The group of a job type: whose jobs take turns, or run one at a time in order. */
import { callable, count, oneOf, record } from '../../core/checks.ts'
import { DefinitionInvalid } from '../../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import { gateName, WEIGHT_MAX } from '../../core/limits/keys.ts'
import { LimitKeyInvalid } from '../errors.ts'
import { evaluate, gateWith, type Part } from './job-limits.ts'

/** Groups of a queue that take turns. */
export interface RotatingGroup<Input> {
  /** Returns the key for the input of a job. Jobs of one queue with the same key are a group. */
  readonly key: (input: Input) => string
  /**
   * How many jobs of the group start in its turn, from 1 to 1000. With a function, the number of
   * the newest job counts for its key.
   * @defaultValue 1
   */
  readonly weight?: number | ((input: Input) => number)
  readonly order?: never
  readonly onParked?: never
}

/** Groups whose jobs run one at a time, in the order in which they were enqueued. */
export interface StrictGroup<Input> {
  /** Returns the key for the input of a job. Jobs of the type with the same key are a group. */
  readonly key: (input: Input) => string
  readonly order: 'strict'
  /**
   * Whether a job that is parked holds its group until an operator decides, or is skipped.
   * @defaultValue `'hold'`
   */
  readonly onParked?: 'hold' | 'skip'
  readonly weight?: never
}

/** How jobs of one key relate to each other and to those of other keys. */
export type GroupOptions<Input> = RotatingGroup<Input> | StrictGroup<Input>

const refuse = (field: string, why: string) => new DefinitionInvalid(`group ${field}`, why)

/** What a program may pass in spite of the types. */
interface Loose {
  readonly key: (input: unknown) => string
  readonly weight?: number | ((input: unknown) => number)
  readonly order?: string
  readonly onParked?: string
}

const GROUP: FieldChecks<Loose> = {
  key: callable,
  weight: unchecked,
  order: (value) => oneOf(value, ['strict']),
  onParked: (value) => oneOf(value, ['hold', 'skip']),
}

/** The part of a job type's limits that its group makes; `undefined` if it has none. */
export function groupPartOf(
  type: string,
  queue: string,
  group: GroupOptions<never> | undefined,
): Part | undefined {
  if (group === undefined) return undefined
  const why = record(group)
  if (why !== undefined) throw refuse('options', why)
  const options = group as unknown as Loose
  checkFields(options, GROUP, { what: 'group', refuse })
  const { key, weight, order, onParked } = options
  if (typeof key !== 'function') throw refuse('key', 'must be a function of the input')
  if (order === undefined) {
    if (onParked !== undefined) throw refuse('onParked', "must come with order: 'strict'")
    return rotatingPart(type, queue, key, weight ?? 1)
  }
  if (weight !== undefined) throw refuse('weight', "must not come with order: 'strict'")
  return strictPart(type, key, onParked === 'skip')
}

function strictPart(type: string, key: Loose['key'], isSkipped: boolean): Part {
  const of = { type, limit: 'group' }
  return {
    declaration: { name: gateName('strict', type), max: 1 },
    key: (input) => {
      const gate = gateWith('strict', [type], evaluate(of, 'key', key, input), of)
      return isSkipped ? { gate, skip: true } : { gate }
    },
  }
}

function rotatingPart(
  type: string,
  queue: string,
  key: Loose['key'],
  weight: NonNullable<Loose['weight']>,
): Part {
  const of = { type, limit: 'group' }
  if (typeof weight !== 'function') {
    const why = count(weight, 1, WEIGHT_MAX)
    if (why !== undefined) throw refuse('weight', why)
  }
  return {
    declaration: { name: gateName('group', queue), max: null },
    key: (input) => {
      const gate = gateWith('group', [queue], evaluate(of, 'key', key, input), of)
      if (typeof weight !== 'function') return weight === 1 ? { gate } : { gate, weight }
      const own = evaluate(of, 'weight', weight, input)
      const why = count(own, 1, WEIGHT_MAX)
      if (why !== undefined) throw new LimitKeyInvalid(type, 'group', `its weight ${why}`)
      return { gate, weight: own }
    },
  }
}
