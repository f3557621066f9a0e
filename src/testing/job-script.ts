/**
 * A job in memory: commands go in, facts are kept, the fold is the job. It is what a store does
 * around the core, without the store, so tests and examples can play a job's life command by
 * command under a clock that they own.
 */
import type { PawlError } from '../core/errors.ts'
import type { Command, Context, Fence } from '../core/job/commands.ts'
import { decide } from '../core/job/decide.ts'
import { decideMigrate } from '../core/job/decide-migrate.ts'
import type { Decision } from '../core/job/decision.ts'
import { evolve } from '../core/job/evolve.ts'
import type { Fact } from '../core/job/facts.ts'
import type { Job } from '../core/job/job.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Random } from '../core/ports.ts'
import { ManualClock } from './manual-clock.ts'
import { SeededRandom } from './seeded-random.ts'
import { SequentialIds } from './sequential-ids.ts'

/** What a script may be given instead of its defaults. */
export interface JobScriptOptions {
  readonly clock?: ManualClock
  readonly random?: Random
  readonly ids?: SequentialIds
}

/** What of the context a command may bring along. */
export type ScriptAsker = Partial<Omit<Context, 'now' | 'random'>>

/** One job, played command by command. */
export class JobScript {
  /** The version that decides now; every one that the job has followed is in `versions`. */
  lifecycle: Lifecycle
  readonly versions: Lifecycle[]
  readonly clock: ManualClock
  readonly facts: Fact[] = []
  /** Why commands were refused, in order; a refusal leaves no fact. */
  readonly refusals: PawlError[] = []
  readonly #random: Random
  readonly #ids: SequentialIds
  #job: Job | null = null

  constructor(lifecycle: Lifecycle, options: JobScriptOptions = {}) {
    this.lifecycle = lifecycle
    this.versions = [lifecycle]
    this.clock = options.clock ?? new ManualClock()
    this.#random = options.random ?? new SeededRandom(1)
    this.#ids = options.ids ?? new SequentialIds()
  }

  /** The job as it is now. */
  get job(): Job {
    if (this.#job === null) throw new Error('the script has not created its job yet')
    return this.#job
  }

  /** The fence of whoever holds the job now. */
  get fence(): Fence {
    const { attempt, execution } = this.job
    if (execution === null) throw new Error('nobody holds the job')
    return { attempt, claim: execution.claim }
  }

  /** Decides a command; an accepted fact is kept and folded. */
  tell(command: Command, asker: ScriptAsker = {}): Decision {
    const context: Context = {
      actor: 'client',
      ...asker,
      now: this.clock.now(),
      random: this.#random.next(),
    }
    return this.#keep(decide(this.lifecycle, this.#job, this.complete(command), context))
  }

  /** Migrates the job to a later version of its lifecycle, as its holder if a fence is given. */
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

  /** Adds what only the keeper of a ledger knows: whether a step is in it already. */
  complete(command: Command): Command {
    if (command.kind !== 'step') return command
    const { name, n } = command
    const known = this.facts.some(({ step }) => step?.name === name && step.n === n)
    return { ...command, known }
  }

  /** Creates the job; what is not given has a plain default. */
  create(fields: Partial<Omit<Extract<Command, { kind: 'create' }>, 'kind'>> = {}): Decision {
    const defaults = { jobId: this.#ids.next(), type: 'example', queue: 'default' }
    return this.tell({ kind: 'create', ...defaults, ...fields })
  }

  /** Claims the job for 30 seconds, and starts it unless told otherwise. */
  claim({ worker = 'worker-1', leaseMs = 30_000, start = true } = {}): Decision {
    const claim = this.#ids.next()
    const leaseUntil = this.clock.now() + leaseMs
    return this.tell({ kind: 'claim', claim, worker, leaseUntil, start }, { actor: 'worker' })
  }

  /** An operator's command, with a name and a note. */
  operate(command: Command, operator = 'ann', note = 'looked into it'): Decision {
    const actor = command.kind === 'repair' ? 'doctor' : 'operator'
    return this.tell(command, { actor, operator, note })
  }
}
