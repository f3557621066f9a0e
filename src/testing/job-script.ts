/**
 * A job in memory. Each command is decided; its fact is kept and folded into the job. This is what
 * a store does, without a database, so tests and examples can play the life of a job command by
 * command under their own clock.
 */
import { flag, record } from '../core/checks.ts'
import type { PawlError } from '../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import type { Command, Context, Fence } from '../core/job/commands.ts'
import { decide } from '../core/job/decide.ts'
import { decideMigrate } from '../core/job/decide-migrate.ts'
import type { Decision } from '../core/job/decision.ts'
import { evolve } from '../core/job/evolve.ts'
import type { Fact } from '../core/job/facts.ts'
import type { Job } from '../core/job/job.ts'
import { findSignal, findWait } from '../core/job/waits.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Random } from '../core/ports.ts'
import { ManualClock } from './manual-clock.ts'
import { SeededRandom } from './seeded-random.ts'
import { SequentialIds } from './sequential-ids.ts'

/** The options of `JobScript`; each has a deterministic default. */
export interface JobScriptOptions {
  readonly clock?: ManualClock
  readonly random?: Random
  readonly ids?: SequentialIds
}

const OPTIONS: FieldChecks<JobScriptOptions> = { clock: record, random: record, ids: record }

/** The options of `claim`. */
interface ScriptClaim {
  readonly worker?: string
  readonly leaseMs?: number
  readonly start?: boolean
}

// The rules of commands check the values.
const CLAIM: FieldChecks<ScriptClaim> = { worker: unchecked, leaseMs: unchecked, start: flag }

/** Context fields that the caller of a command can set. */
export type ScriptRequester = Partial<Omit<Context, 'now' | 'random'>>

/** One job, played command by command. */
export class JobScript {
  /** The current version; `versions` has all versions that the job has had. */
  lifecycle: Lifecycle
  readonly versions: Lifecycle[]
  readonly clock: ManualClock
  readonly facts: Fact[] = []
  /** The errors of rejected commands, in order. A rejected command leaves no fact. */
  readonly refusals: PawlError[] = []
  readonly #random: Random
  readonly #ids: SequentialIds
  #job: Job | null = null

  constructor(lifecycle: Lifecycle, options: JobScriptOptions = {}) {
    checkFields(options, OPTIONS, { what: 'options' })
    this.lifecycle = lifecycle
    this.versions = [lifecycle]
    this.clock = options.clock ?? new ManualClock()
    this.#random = options.random ?? new SeededRandom(1)
    this.#ids = options.ids ?? new SequentialIds()
  }

  /** The current job; throws if it does not exist yet. */
  get job(): Job {
    if (this.#job === null) throw new Error('The script has not created its job yet')
    return this.#job
  }

  /** The fence of the current lease; throws if the job is not held. */
  get fence(): Fence {
    const { attempt, execution } = this.job
    if (execution === null) throw new Error('The job is not held')
    return { attempt, claim: execution.claim }
  }

  /** Decides a command. The fact of an accepted command is kept and folded. */
  applyCommand(command: Command, requester: ScriptRequester = {}): Decision {
    const context: Context = {
      actor: 'client',
      ...requester,
      now: this.clock.now(),
      random: this.#random.next(),
    }
    return this.#keep(decide(this.lifecycle, this.#job, this.complete(command), context))
  }

  /** Migrates the job to a later version of its lifecycle; with a fence, as the lease holder. */
  migrate(next: Lifecycle, fence?: Fence): Decision {
    const context = { actor: 'engine', now: this.clock.now(), random: 0 } as const
    const decision = this.#keep(decideMigrate(this.lifecycle, next, this.job, context, fence))
    if (decision.kind === 'fact') {
      this.lifecycle = next
      this.versions.push(next)
    }
    return decision
  }

  #keep(decision: Decision): Decision {
    if (decision.kind === 'fact') {
      this.#job = evolve(this.#job, decision.fact)
      this.facts.push(decision.fact)
    } else if (decision.kind === 'rejected') {
      this.refusals.push(decision.error)
    }
    return decision
  }

  /** Adds what only the ledger knows: which steps, signals and waits the job has had. */
  complete(command: Command): Command {
    if (command.kind === 'signal') return { ...findSignal(this.facts, command), ...command }
    if (command.kind === 'wait') return { ...command, ...findWait(this.facts, command.wait) }
    if (command.kind !== 'step') return command
    const { name, n } = command
    const known = this.facts.some(({ step }) => step?.name === name && step.n === n)
    return { ...command, known }
  }

  /** Creates the job; absent fields have defaults. */
  create(fields: Partial<Omit<Extract<Command, { kind: 'create' }>, 'kind'>> = {}): Decision {
    const defaults = { jobId: this.#ids.next(), type: 'example', queue: 'default' }
    return this.applyCommand({ kind: 'create', ...defaults, ...fields })
  }

  /** Claims the job for 30 seconds, and starts it unless `start` is false. */
  claim(options: ScriptClaim = {}): Decision {
    checkFields(options, CLAIM, { what: 'options' })
    const { worker = 'worker-1', leaseMs = 30_000, start = true } = options
    const claim = this.#ids.next()
    const leaseUntil = this.clock.now() + leaseMs
    return this.applyCommand(
      { kind: 'claim', claim, worker, leaseUntil, start },
      { actor: 'worker' },
    )
  }

  /** Sends a command in the name of an operator. */
  operate(command: Command, operator = 'ann', note = 'looked into it'): Decision {
    const actor = command.kind === 'repair' ? 'doctor' : 'operator'
    return this.applyCommand(command, { actor, operator, note })
  }
}
