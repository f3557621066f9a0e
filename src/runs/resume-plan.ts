/**
 * The plan of a resumption. `survey` checks artifacts and input files; `planResume` is a pure
 * function of the run, its history and the result of the survey. `resume` executes the plan and
 * `explain` shows it, so that both agree.
 *
 *   1. If the run is in a transitional state, rewind to the last stable state.
 *   2. If something must be done again that was done before the current state, rewind to the last
 *      stable state before it, or to the initial state. If an input file changed, the node that
 *      took it is called again, because its result may differ.
 *   3. Take changed input files again; whatever depends on them becomes stale. For an artifact with
 *      a missing or changed content, open an issue, mark what depends on it as stale, and run the
 *      item again that made it.
 *
 * Forced items are recorded first (`forced.ts`), because the survey cannot find them again after a
 * crash. Rewinds come next: after a crash, the next survey finds the other changes again.
 */

import type { RunCommand } from '../core/run/commands.ts'
import { decideRun } from '../core/run/decide.ts'
import type { RunFact } from '../core/run/events.ts'
import type { RunMachine } from '../core/run/machine.ts'
import { entryOf, type Run, type WorkItem } from '../core/run/run.ts'
import { freshnessOf } from '../core/run/staleness.ts'
import { damageIssue } from './artifacts.ts'
import { WorkUnknown } from './errors.ts'
import { forceCommand, forcedItems } from './forced.ts'
import type { Position, RunHistory } from './history.ts'
import {
  type InputChange,
  type InputParts,
  isCopy,
  lookAgain,
  takeCommands,
} from './input-files.ts'
import type { RunReader } from './journal/journal.ts'
import { foldFacts } from './run-log.ts'
import type { ResumeOptions } from './runs-options.ts'

/** The run and the result of the survey. */
export interface ResumeSituation {
  readonly machine: RunMachine
  readonly run: Run
  readonly history: RunHistory
  /** Input files that changed. */
  readonly changes: readonly InputChange[]
  /** Artifacts with a missing or changed content. */
  readonly damaged: readonly string[]
  /** Keys of items that the caller forces. */
  readonly force: readonly string[]
}

export interface Rewind {
  readonly from: string
  readonly to: string
  readonly reason: 'resume' | 'stale'
}

export interface ResumePlan {
  /** The commands to apply, in this order. */
  readonly commands: readonly RunCommand[]
  /** The run after these commands. */
  readonly run: Run
  readonly rewinds: readonly Rewind[]
  /** Keys of items that run again although their inputs have not changed. */
  readonly forced: ReadonlySet<string>
}

/** Checks the artifacts and input files of a run, before it is resumed. */
export async function survey(
  known: { readonly machine: RunMachine; readonly run: Run; readonly history: RunHistory },
  inputs: InputParts & Pick<RunReader, 'findDamaged'>,
  { force = [], paranoid = false }: ResumeOptions,
): Promise<ResumeSituation> {
  const { run } = known
  const damaged = await inputs.findDamaged(run.artifacts_index, { paranoid })
  const changes = await lookAgain(inputs, run, { paranoid, damaged: new Set(damaged) })
  return { ...known, changes, damaged, force }
}

/** Plans the resumption of a run that has not ended. Throws `WorkUnknown` for a forced key. */
export function planResume(situation: ResumeSituation): ResumePlan {
  const { machine, run, changes, damaged, force } = situation
  const unknown = force.filter((key) => entryOf(run.work_items, key) === undefined)
  if (unknown.length > 0) throw new WorkUnknown(run.run_id, unknown)
  const plan = new Plan(machine, run)
  for (const key of force) plan.applyCommand(forceCommand(key))
  if (machine.machine.states.get(run.run_state)?.transitional === true) {
    plan.applyCommand({ kind: 'rewind', reason: 'resume' })
  }
  const makers = damaged.map((name) => entryOf(run.artifacts_index, name)?.work_item ?? null)
  const forced = new Set([...forcedItems(plan.run), ...makers.filter((key) => key !== null)])
  const planFound = (to: Plan) => {
    for (const command of takeCommands(run, changes)) to.applyCommand(command)
    for (const name of damaged) planDamage(to, name)
  }
  const ahead = new Plan(machine, plan.run)
  planFound(ahead)
  const first = firstPosition(situation, ahead.run, forced)
  if (first !== undefined) {
    plan.applyCommand({ kind: 'rewind', reason: 'stale', to: stableBefore(situation, first.seq) })
  }
  planFound(plan)
  const { commands, rewinds } = plan
  return { commands, rewinds, forced, run: plan.run }
}

/** A copy of an input file is taken again. Any other artifact gets an issue. */
function planDamage(plan: Plan, name: string): void {
  plan.applyCommand({ kind: 'invalidate-artifact', name })
  if (isCopy(plan.run, name)) return
  plan.applyCommand({
    kind: 'open-issue',
    issue: damageIssue(name),
    severity: 'warning',
    message: `The content of artifact ${name} is missing or was changed. Its work item runs again.`,
  })
}

/** Returns the first position of something that must be done again. */
function firstPosition(
  { history, damaged, changes }: ResumeSituation,
  run: Run,
  forced: ReadonlySet<string>,
): Position | undefined {
  const items = Object.entries(run.work_items)
    .filter(([key, item]) => isToBeRedone(run, key, item, forced))
    .map(([key]) => history.items.get(key))
  const written = [
    ...damaged.filter((name) => !isCopy(run, name)),
    ...changes.map(({ name }) => name).filter((name) => isCopy(run, name)),
  ].map((name) => history.written.get(name))
  const positions = [...items, ...written].filter((position) => position !== undefined)
  return positions.sort((a, b) => a.seq - b.seq)[0]
}

function isToBeRedone(run: Run, key: string, item: WorkItem, forced: ReadonlySet<string>): boolean {
  const freshness = freshnessOf(run, requestOf(run, key, item, forced))
  return (
    freshness.kind === 'run' && (freshness.because === 'stale' || freshness.because === 'forced')
  )
}

/** Returns the request for an item with the parameters of its last start. */
export function requestOf(run: Run, key: string, item: WorkItem, forced: ReadonlySet<string>) {
  const parameters = Object.entries(item.inputs).filter(
    ([name]) => entryOf(run.artifacts_index, name) === undefined,
  )
  const inputs = Object.fromEntries(parameters)
  return { key, inputs, code: item.code, forced: forced.has(key) }
}

function stableBefore({ machine, history }: ResumeSituation, seq: number): string {
  const before = history.trail.filter((position) => position.seq < seq)
  return before[before.length - 1]?.state ?? machine.machine.initial
}

class Plan {
  readonly commands: RunCommand[] = []
  readonly rewinds: Rewind[] = []
  readonly #machine: RunMachine
  run: Run

  constructor(machine: RunMachine, run: Run) {
    this.#machine = machine
    this.run = run
  }

  applyCommand(command: RunCommand): void {
    const decision = decideRun(this.#machine, this.run, command)
    if (decision.kind === 'rejected') throw decision.error
    if (decision.kind === 'same') return
    this.commands.push(command)
    this.run = foldFacts(this.run, decision.facts)
    for (const fact of decision.facts) this.#note(fact)
  }

  #note({ type, data }: RunFact): void {
    if (type !== 'RESUME_REWIND') return
    this.rewinds.push({ from: data.from_state, to: data.to_state, reason: data.reason })
  }
}
