import type { PawlError } from '../core/errors.ts'
import type { RunCommand } from '../core/run/commands.ts'
import { decideRun, type RunDecision } from '../core/run/decide.ts'
import { type RunEvent, toEvents } from '../core/run/events.ts'
import { evolveRun } from '../core/run/evolve.ts'
import type { RunMachine } from '../core/run/machine.ts'
import type { Run } from '../core/run/run.ts'
import { ManualClock } from './manual-clock.ts'
import { SequentialIds } from './sequential-ids.ts'

/** A run in memory. Each command is decided; its events are kept and folded into the run. */
export class RunScript {
  readonly machine: RunMachine
  readonly clock = new ManualClock()
  readonly events: RunEvent[] = []
  /** The errors of rejected commands, in order. A rejected command leaves no event. */
  readonly refusals: PawlError[] = []
  readonly #ids = new SequentialIds()
  readonly #runId: string
  #run: Run | null = null

  constructor(machine: RunMachine, runId = 'run-1') {
    this.machine = machine
    this.#runId = runId
  }

  /** The current run; throws if it does not exist yet. */
  get run(): Run {
    if (this.#run === null) throw new Error('The script has not created its run yet')
    return this.#run
  }

  /** Decides a command. Events of an accepted command are kept and folded. */
  applyCommand(command: RunCommand): RunDecision {
    const decision = decideRun(this.machine, this.#run, command)
    if (decision.kind === 'rejected') this.refusals.push(decision.error)
    if (decision.kind !== 'facts') return decision
    const envelope = {
      ts: new Date(this.clock.now()).toISOString(),
      trace_id: 'trace-1',
      span_id: 'span-1',
      actor: 'test',
    }
    const lastSeq = this.#run?.last_seq ?? 0
    const newId = () => this.#ids.next()
    for (const event of toEvents(this.#runId, lastSeq, decision.facts, envelope, newId)) {
      this.#run = evolveRun(this.#run, event)
      this.events.push(event)
    }
    return decision
  }

  /** Moves through these states in order; stops at the first rejection. */
  walk(...states: readonly string[]): RunDecision {
    let decision: RunDecision = { kind: 'same' }
    for (const to of states) {
      decision = this.applyCommand({ kind: 'move', to })
      if (decision.kind === 'rejected') break
    }
    return decision
  }
}
