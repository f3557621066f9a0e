/** Reads limits, and declares those of a process. */
import { name } from '../../core/checks.ts'
import { CommandInvalid, DefinitionInvalid } from '../../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import { shown } from '../../core/format.ts'
import { concurrency as checkConcurrency, gateName, parseGate } from '../../core/limits/keys.ts'
import { fullName } from '../../core/limits/short-names.ts'
import type { Logger } from '../../core/ports.ts'
import type {
  GateInfo,
  LimitDeclaration,
  LimitInfo,
  LimitRecord,
} from '../../stores/contract/limits.ts'
import type { Requester, Store } from '../../stores/contract/store.ts'
import { LimitUnknown } from '../errors.ts'
import type { AnyJob } from '../job-types.ts'
import type { KeyedLimit, SharedLimit } from './define-limit.ts'

/**
 * A limit: what `defineLimit` returns, or a name such as `openai`, `sync/tenant`, `type/sync` or
 * `queue/mail`.
 */
export type LimitReference = SharedLimit | KeyedLimit | string

/** What is in force for a limit or one key of it, and what runs and waits. */
export interface LimitState extends GateInfo {
  /** Absent if it was never declared and no operator has set it. */
  readonly setting?: LimitInfo
}

/** An operator's number. */
export interface SetLimitOptions {
  /** How many jobs may run; 0 pauses the limit or the key. */
  readonly concurrency: number
  /** Only for this key. */
  readonly key?: string
}

/** Returns the name under which the store keeps a limit, or one key of it. */
export function limitName(limit: LimitReference, key?: string): string {
  const name = typeof limit === 'string' ? fullName(limit) : limit?.limit
  if (name === undefined || parseGate(name) === undefined) {
    throw new CommandInvalid('limit', `must be a limit or its name, not ${shown(limit)}`)
  }
  if (key === undefined) return name
  const { kind, names } = parseGate(name) as { kind: 'shared'; names: readonly string[] }
  return gateName(kind, ...names, key)
}

/** Reads limits. */
export class Limits {
  readonly #store: Store

  /** Use `pawl.limits`. @internal */
  constructor(store: Store) {
    this.#store = store
  }

  /** Every limit that was declared, and every limit or key that an operator has set. */
  async list(): Promise<LimitInfo[]> {
    const limits: LimitInfo[] = []
    let after: string | undefined
    do {
      const page = await this.#store.limits.list({ limit: 1000, ...(after && { after }) })
      limits.push(...page.items)
      after = page.next
    } while (after !== undefined)
    return limits
  }

  /** What is in force, and what runs and waits under it. */
  async get(
    limit: LimitReference,
    options: Pick<SetLimitOptions, 'key'> = {},
  ): Promise<LimitState> {
    checkFields(options, ONE_KEY, { what: 'options' })
    const { key } = options
    const full = limitName(limit, key)
    const setting =
      (await this.#store.limits.get(full)) ?? (await this.#store.limits.get(limitName(limit)))
    const gate = await this.#store.limits.gate(full)
    return { ...gate, ...(setting !== undefined && { setting }) }
  }
}

const SET: FieldChecks<SetLimitOptions> = { concurrency: unchecked, key: name }
const ONE_KEY: FieldChecks<Pick<SetLimitOptions, 'key'>> = { key: name }

/** Sets an operator's number. */
export async function setLimit(
  store: Store,
  limit: LimitReference,
  options: SetLimitOptions,
  requester: Requester,
): Promise<LimitRecord | undefined> {
  checkFields(options, SET, { what: 'options' })
  const { concurrency, key } = options
  await assertKnown(store, limit)
  return store.limits.set(limitName(limit, key), concurrency, requester)
}

/** Removes an operator's number. */
export async function resetLimit(
  store: Store,
  limit: LimitReference,
  options: Pick<SetLimitOptions, 'key'>,
  requester: Requester,
): Promise<LimitRecord | undefined> {
  checkFields(options, ONE_KEY, { what: 'options' })
  const { key } = options
  await assertKnown(store, limit)
  return store.limits.reset(limitName(limit, key), requester)
}

/** A misspelt limit would block nothing, so it is refused. Any queue can have a limit. */
async function assertKnown(store: Store, limit: LimitReference): Promise<void> {
  const name = limitName(limit)
  if (parseGate(name)?.kind === 'queue') return
  if ((await store.limits.get(name)) === undefined) throw new LimitUnknown(name)
}

/** Declares the limits of job types and queues, and logs what contradicts another release. */
export async function declareLimits(
  store: Store,
  jobs: Iterable<AnyJob>,
  queues: Readonly<Record<string, { readonly concurrency?: number | null }>>,
  logger: Logger,
): Promise<void> {
  const declarations = new Map<string, LimitDeclaration>()
  for (const { limits } of jobs) {
    for (const one of limits?.declarations ?? []) addTo(declarations, one)
  }
  for (const [queue, { concurrency }] of Object.entries(queues)) {
    if (concurrency === undefined) continue
    const why = concurrency === null ? undefined : checkConcurrency(concurrency)
    if (why !== undefined) throw new CommandInvalid(`queues.${queue}.concurrency`, why)
    addTo(declarations, { name: gateName('queue', queue), max: concurrency })
  }
  if (declarations.size === 0) return
  for (const { name, warning } of await store.limits.declare([...declarations.values()])) {
    if (warning === undefined) continue
    const message =
      warning === 'kept'
        ? 'A higher version of this limit is in force; this process declares another number'
        : 'Two releases declare this limit with the same version and different numbers'
    logger.warn({ event: `limit.${warning}`, limit: name }, message)
  }
}

function addTo(declarations: Map<string, LimitDeclaration>, one: LimitDeclaration): void {
  const known = declarations.get(one.name)
  if (known !== undefined && (known.max !== one.max || known.version !== one.version)) {
    throw new DefinitionInvalid(`limit ${one.name}`, 'it is defined twice, with different numbers')
  }
  declarations.set(one.name, one)
}
