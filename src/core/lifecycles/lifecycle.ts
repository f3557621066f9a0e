/**
 * A lifecycle is a machine for jobs. All lifecycles use the same triggers, so the engine needs no
 * state names: it passes a trigger, and the lifecycle maps it to states.
 *
 * For each state, a trigger compiles to a path of edges: the edges that carry the trigger are
 * followed until no further edge carries it. In `hardened`, running → failed and failed →
 * quarantined both carry `give-up`. Giving up on a running job therefore takes both edges in one
 * step, with one fact. If a path enters and leaves the held state in one step (the cancel of a job
 * that can end only through it), the engine opens an execution and aborts it (rule G1).
 *
 * Roles say what the scheduler may do with a state. A lifecycle has exactly one ready and one held
 * state. The paths for the outcomes of an attempt all start in the held state.
 */
import { flag, oneOf, record } from '../checks.ts'
import { DefinitionInvalid, MachineUnsound } from '../errors.ts'
import { checkDefinition, type FieldChecks, unchecked } from '../fields.ts'
import { defineMachine, type EdgeSpec, type Machine } from '../machine/define.ts'
import { DEFAULT_POLICY, type JobPolicy, mergePolicy, type PolicyOverrides } from '../retry.ts'

/** How the scheduler treats a state. The last three are terminal. */
export type Role =
  | 'idle'
  | 'waiting'
  | 'ready'
  | 'held'
  | 'parked'
  | 'succeeded'
  | 'failed'
  | 'cancelled'

/** How a job ended. */
export type Outcome = 'succeeded' | 'failed' | 'cancelled'

/** The triggers for the outcomes of an attempt. They apply only in the held state. */
const HELD_TRIGGERS = [
  'succeed',
  'retry',
  'fail',
  'give-up',
  'reject',
  'expire',
  'release',
  'suspend',
  'wait',
] as const

/** All triggers that an edge of a lifecycle may carry. */
export const JOB_TRIGGERS = [
  'submit',
  'schedule',
  'due',
  'claim',
  ...HELD_TRIGGERS,
  'exhaust',
  'cancel',
  'park',
  'redrive',
  'discard',
  'reschedule',
  'run-now',
  'signal',
] as const

export type JobTrigger = (typeof JOB_TRIGGERS)[number]

/** Triggers for which every lifecycle must have a path from the held state. */
const REQUIRED: readonly JobTrigger[] = [
  'succeed',
  'fail',
  'give-up',
  'reject',
  'expire',
  'release',
  'cancel',
]

/** What an expired lease costs after the handler has started. */
export interface CrashRule {
  /** The budget that a crash spends. */
  readonly spends: 'crash' | 'failure'
  /** How long the job then waits: as after a failure, or a fixed time. */
  readonly delayMs: 'as-retry' | number
  /** If true, all tries of the job count against the budget, including those before a redrive. */
  readonly everCounted?: boolean
}

export interface LifecycleSpec<S extends string = string, T extends JobTrigger = JobTrigger> {
  readonly name: string
  readonly version: number
  readonly initial: NoInfer<S>
  readonly states: Readonly<Record<S, { readonly role: Role; readonly meaning: string }>>
  readonly edges: readonly EdgeSpec<NoInfer<S>, T>[]
  /** The default policy of jobs of this lifecycle. */
  readonly policy?: PolicyOverrides
  /** If true, a job type that overrides the retry policy is rejected. */
  readonly retryFixed?: boolean
  readonly crash?: CrashRule
  /**
   * For each earlier version whose jobs this version takes over: the new state of each old state. A
   * state that is not listed keeps its name. `migration.ts` has the rules.
   */
  readonly from?: Readonly<Record<number, Readonly<Record<string, NoInfer<S>>>>>
}

const LIFECYCLE: FieldChecks<LifecycleSpec> = {
  // Checked with the machine.
  name: unchecked,
  version: unchecked,
  initial: unchecked,
  states: record,
  edges: unchecked,
  policy: record,
  retryFixed: flag,
  crash: (value) => {
    checkDefinition('crash', value, CRASH)
    return undefined
  },
  from: record,
}

const CRASH: FieldChecks<CrashRule> = {
  spends: (value) => oneOf(value, ['crash', 'failure']),
  delayMs: (value) =>
    value === 'as-retry' || Number.isSafeInteger(value) ? undefined : 'must be a number of ms',
  everCounted: flag,
}

const ROLES = ['idle', 'waiting', 'ready', 'held', 'parked', 'succeeded', 'failed', 'cancelled']

const STATE: FieldChecks<LifecycleSpec['states'][string]> = {
  role: (value) => oneOf(value, ROLES),
  meaning: unchecked,
}

/**
 * A checked lifecycle with its compiled paths. `CanWait` carries whether its jobs can wait to the
 * type of their handlers' context; `boolean` if the compiler does not know.
 */
export interface Lifecycle<S extends string = string, CanWait extends boolean = boolean> {
  readonly name: string
  readonly version: number
  readonly machine: Machine<S, JobTrigger>
  readonly roles: ReadonlyMap<string, Role>
  readonly ready: S
  readonly held: S
  readonly succeeded: S
  /** If undefined, a parked job keeps its state and has a reason instead (rule G7). */
  readonly parked: S | undefined
  /** For each trigger, the state in which its paths end. An absent trigger is unsupported. */
  readonly targets: ReadonlyMap<JobTrigger, S>
  readonly paths: ReadonlyMap<string, ReadonlyMap<JobTrigger, readonly S[]>>
  readonly policy: JobPolicy
  readonly retryFixed: boolean
  readonly crash: CrashRule
  /** For each earlier version that migrates to this one, the new names of renamed states. */
  readonly from: ReadonlyMap<number, ReadonlyMap<string, S>>
  /** Whether a handler may sleep and wait: true if an edge carries `wait`. */
  readonly canWait: CanWait
}

/** Whether some edge of these triggers carries `wait`. */
type Waits<T extends JobTrigger> = [JobTrigger] extends [T]
  ? boolean
  : 'wait' extends T
    ? true
    : false

/** Builds a lifecycle. Throws `MachineUnsound` with all problems of the definition. */
export function defineLifecycle<const S extends string, const T extends JobTrigger>(
  spec: LifecycleSpec<S, T>,
): Lifecycle<S, Waits<T>> {
  checkDefinition('lifecycle', spec as LifecycleSpec, LIFECYCLE)
  const entries = Object.entries<LifecycleSpec['states'][string]>(spec.states)
  for (const [name, state] of entries) checkDefinition(`state ${name}`, state, STATE)
  const roles = new Map(entries.map(([state, { role }]) => [state as S, role]))
  const machine = defineMachine<S, JobTrigger>({
    name: spec.name,
    version: spec.version,
    initial: spec.initial,
    sameState: 'noop',
    states: Object.fromEntries(
      entries.map(([state, { role, meaning }]) => [
        state,
        { meaning, terminal: outcomeOf(role) !== undefined },
      ]),
    ) as MachineSpecStates<S>,
    edges: spec.edges as LifecycleSpec<S>['edges'],
  })
  const sole = (role: Role) => statesWith(roles, role)
  const [ready, held, succeeded] = [sole('ready'), sole('held'), sole('succeeded')]
  const problems = [
    ...oneOnly('ready', ready),
    ...oneOnly('held', held),
    ...oneOnly('succeeded', succeeded),
    ...(sole('parked').length > 1 ? ['it has more than one parked state'] : []),
    ...mappingFaults(spec, roles),
  ]
  if (problems.length > 0) throw new MachineUnsound(spec.name, problems)

  const paths = compilePaths(machine, held[0] as S)
  const targets = targetsOf(paths)
  const lifecycle: Lifecycle<S, Waits<T>> = {
    name: spec.name,
    version: spec.version,
    machine,
    roles,
    ready: ready[0] as S,
    held: held[0] as S,
    succeeded: succeeded[0] as S,
    parked: sole('parked')[0],
    targets,
    paths,
    policy: mergePolicy(DEFAULT_POLICY, spec.policy ?? {}),
    retryFixed: spec.retryFixed ?? false,
    crash: spec.crash ?? { spends: 'crash', delayMs: 'as-retry' },
    from: new Map(
      Object.entries<Readonly<Record<string, S>>>(spec.from ?? {}).map(
        ([version, states]) => [Number(version), new Map(Object.entries(states))] as const,
      ),
    ),
    canWait: targets.has('wait') as Waits<T>,
  }
  const pathProblems = findPathProblems(lifecycle)
  if (pathProblems.length > 0) throw new MachineUnsound(spec.name, pathProblems)
  return Object.freeze(lifecycle)
}

/** Returns the problems of `from` that can be found without the earlier versions. */
function mappingFaults(
  { version, from = {} }: Pick<LifecycleSpec, 'version' | 'from'>,
  roles: ReadonlyMap<string, Role>,
): string[] {
  return Object.entries(from).flatMap(([old, states]) => {
    const isEarlier = /^[1-9]\d{0,8}$/.test(old) && Number(old) < version
    const strays = Object.entries(states).filter(([, to]) => !roles.has(to))
    return [
      ...(isEarlier ? [] : [`"from" names ${old}, which is not a version before ${version}`]),
      ...strays.map(
        ([state, to]) => `"from" maps ${old}'s ${state} to ${to}, which is not a state`,
      ),
    ]
  })
}

type MachineSpecStates<S extends string> = Readonly<
  Record<S, { readonly meaning: string; readonly terminal: boolean }>
>

/** Returns how a job in a state of this role has ended; `undefined` if it has not. */
export function outcomeOf(role: Role | undefined): Outcome | undefined {
  return role === 'succeeded' || role === 'failed' || role === 'cancelled' ? role : undefined
}

/** Returns the states that a trigger leads through; `undefined` if it does not apply. */
export function pathOf(
  lifecycle: Lifecycle,
  from: string,
  trigger: JobTrigger,
): readonly string[] | undefined {
  return lifecycle.paths.get(from)?.get(trigger)
}

/** Returns the policy of a job type. Throws `DefinitionInvalid` if the lifecycle fixes it. */
export function policyFor(lifecycle: Lifecycle, overrides: PolicyOverrides = {}): JobPolicy {
  if (lifecycle.retryFixed && overrides.retry !== undefined) {
    throw new DefinitionInvalid('retry', `lifecycle "${lifecycle.name}" fixes its retry policy`)
  }
  return mergePolicy(lifecycle.policy, overrides)
}

function statesWith<S extends string>(roles: ReadonlyMap<S, Role>, role: Role): S[] {
  return [...roles].filter(([, own]) => own === role).map(([state]) => state)
}

function oneOnly(role: Role, states: readonly string[]): string[] {
  return states.length === 1 ? [] : [`it has ${states.length} ${role} states instead of one`]
}

function compilePaths<S extends string>(
  machine: Machine<S, JobTrigger>,
  held: S,
): Map<S, Map<JobTrigger, readonly S[]>> {
  const isHeldOnly = (trigger: JobTrigger) => HELD_TRIGGERS.some((other) => other === trigger)
  const follow = (from: S, trigger: JobTrigger): S[] => {
    const path: S[] = []
    let edge = machine.byTrigger.get(from)?.get(trigger)
    while (edge !== undefined) {
      if (edge.to === from || path.includes(edge.to)) {
        throw new MachineUnsound(machine.name, [`the path of ${trigger} from ${from} is a cycle`])
      }
      path.push(edge.to)
      edge = machine.byTrigger.get(edge.to)?.get(trigger)
    }
    return path
  }
  return new Map(
    [...machine.states.keys()].map((state) => [
      state,
      new Map(
        JOB_TRIGGERS.filter((trigger) => state === held || !isHeldOnly(trigger))
          .map((trigger) => [trigger, follow(state, trigger)] as const)
          .filter(([, path]) => path.length > 0),
      ),
    ]),
  )
}

function targetsOf<S extends string>(
  paths: ReadonlyMap<S, ReadonlyMap<JobTrigger, readonly S[]>>,
): Map<JobTrigger, S> {
  const ends = [...paths.values()].flatMap((byTrigger) =>
    [...byTrigger].map(([trigger, path]) => [trigger, path[path.length - 1] as S] as const),
  )
  return new Map(ends)
}

function findPathProblems(lifecycle: Lifecycle): string[] {
  const { name, ready, held, succeeded, targets, paths } = lifecycle
  const problems: string[] = []
  for (const trigger of REQUIRED) {
    if (pathOf(lifecycle, held, trigger) === undefined) {
      problems.push(`${held} has no edge for ${trigger}`)
    }
  }
  const oneHop: [JobTrigger, string, string][] = [
    ['claim', ready, held],
    ['succeed', held, succeeded],
  ]
  for (const [trigger, from, to] of oneHop) {
    if (pathOf(lifecycle, from, trigger)?.join() !== to) {
      problems.push(`${trigger} must lead from ${from} to ${to} in one step`)
    }
  }
  for (const trigger of ['submit', 'due', 'release', 'redrive', 'run-now', 'signal'] as const) {
    const target = targets.get(trigger)
    if (target !== undefined && target !== ready) {
      problems.push(`${trigger} must end in ${ready}, not in ${target}`)
    }
  }
  for (const [from, byTrigger] of paths) {
    for (const [trigger, path] of byTrigger) {
      if (path[path.length - 1] !== targets.get(trigger)) {
        problems.push(`${trigger} from ${from} does not end in ${targets.get(trigger)}`)
      }
    }
  }
  if (lifecycle.parked !== targets.get('park')) {
    problems.push(`${name} must have a parked state and a path to it by park, or neither`)
  }
  for (const trigger of ['fail', 'give-up', 'reject', 'cancel'] as const) {
    const role = lifecycle.roles.get(targets.get(trigger) ?? '')
    // A finished attempt must not lead back to the queue: the number of attempts would be
    // unbounded.
    if (role === 'idle' || role === 'waiting' || role === 'ready' || role === 'held') {
      problems.push(`${trigger} must end or park the job, not leave it ${role}`)
    }
  }
  return problems
}
