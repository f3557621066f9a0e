/**
 * What resuming a run will do, as a pure function of the run, its history and what was found on the
 * disk. `resume` carries it out and `explain` tells it, so that both always agree.
 *
 *   1. From a transitional state, back to the last stable state that the log visited.
 *   2. If something is to be done again that lies before the present state, back to the last stable
 *      state before it, or to the beginning where there is none. An input that changed is taken
 *      again in the node that took it, because what the node made of it may be another thing now.
 *   3. Inputs that changed are taken anew, and what depends on them is stale. An artifact whose
 *      content was lost or changed is recorded as an issue, what depends on it is stale, and the
 *      item that made it is done again.
 *
 * What somebody forces is recorded first (`forced.ts`), because nothing on the disk tells of it.
 * Going back comes next: if a crash leaves only that, the next look finds the changes again.
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
import type { Place, RunHistory } from './history.ts'
import { type InputChange, isCopy, takeCommands } from './input-files.ts'
import { foldFacts } from './run-log.ts'

/** What is known before a run is resumed. */
export interface ResumeSituation {
  readonly machine: RunMachine
  readonly run: Run
  readonly history: RunHistory
  /** Inputs from outside that are not as they were. */
  readonly changes: readonly InputChange[]
  /** Artifacts whose content is gone or was changed. */
  readonly damaged: readonly string[]
  /** Items that somebody wants to be done again. */
  readonly force: readonly string[]
}

/** A state that a rewind leaves, and where it goes. */
export interface Rewind {
  readonly from: string
  readonly to: string
  readonly reason: 'resume' | 'stale'
}

/** What will be done. */
export interface ResumePlan {
  /** To be told to the run, in this order. */
  readonly commands: readonly RunCommand[]
  /** The run after that. */
  readonly run: Run
  readonly rewinds: readonly Rewind[]
  /** Items to be done again though nothing that they declare has changed. */
  readonly forced: ReadonlySet<string>
}

/** Plans the resumption of a run that has not ended; throws `WorkUnknown`. */
export function planResume(situation: ResumeSituation): ResumePlan {
  const { machine, run, changes, damaged, force } = situation
  const unknown = force.filter((key) => entryOf(run.work_items, key) === undefined)
  if (unknown.length > 0) throw new WorkUnknown(run.run_id, unknown)
  const plan = new Plan(machine, run)
  for (const key of force) plan.tell(forceCommand(key))
  if (machine.machine.states.get(run.run_state)?.transitional === true) {
    plan.tell({ kind: 'rewind', reason: 'resume' })
  }
  const makers = damaged.map((name) => entryOf(run.artifacts_index, name)?.work_item ?? null)
  const forced = new Set([...forcedItems(plan.run), ...makers.filter((key) => key !== null)])
  const tellFound = (to: Plan) => {
    for (const command of takeCommands(run, changes)) to.tell(command)
    for (const name of damaged) tellDamage(to, name)
  }
  const ahead = new Plan(machine, plan.run)
  tellFound(ahead)
  const place = firstPlace(situation, ahead.run, forced)
  if (place !== undefined) {
    plan.tell({ kind: 'rewind', reason: 'stale', to: stableBefore(situation, place.seq) })
  }
  tellFound(plan)
  const { commands, rewinds } = plan
  return { commands, rewinds, forced, run: plan.run }
}

/** A file from outside is simply taken again; anything else is worth an issue. */
function tellDamage(plan: Plan, name: string): void {
  plan.tell({ kind: 'invalidate-artifact', name })
  if (isCopy(plan.run, name)) return
  plan.tell({
    kind: 'open-issue',
    issue: damageIssue(name),
    severity: 'warning',
    message: `The content of artifact ${name} is gone or was changed; it is made again`,
  })
}

/** Where the first thing was done that is to be done again; nothing where there is none. */
function firstPlace(
  { history, damaged, changes }: ResumeSituation,
  run: Run,
  forced: ReadonlySet<string>,
): Place | undefined {
  const items = Object.entries(run.work_items)
    .filter(([key, item]) => isToBeRedone(run, key, item, forced))
    .map(([key]) => history.items.get(key))
  const written = [
    ...damaged.filter((name) => !isCopy(run, name)),
    ...changes.map(({ name }) => name).filter((name) => isCopy(run, name)),
  ].map((name) => history.written.get(name))
  const places = [...items, ...written].filter((place) => place !== undefined)
  return places.sort((a, b) => a.seq - b.seq)[0]
}

function isToBeRedone(run: Run, key: string, item: WorkItem, forced: ReadonlySet<string>): boolean {
  const freshness = freshnessOf(run, requestOf(run, key, item, forced))
  return (
    freshness.kind === 'run' && (freshness.because === 'stale' || freshness.because === 'forced')
  )
}

/** The item as its node asked for it last; what it declared can only be known again by asking. */
export function requestOf(run: Run, key: string, item: WorkItem, forced: ReadonlySet<string>) {
  const parameters = Object.entries(item.inputs).filter(
    ([name]) => entryOf(run.artifacts_index, name) === undefined,
  )
  const inputs = Object.fromEntries(parameters)
  return { key, inputs, code: item.code, forced: forced.has(key) }
}

function stableBefore({ machine, history }: ResumeSituation, seq: number): string {
  const before = history.trail.filter((place) => place.seq < seq)
  return before[before.length - 1]?.state ?? machine.machine.initial
}

/** Commands, and the run after them. */
class Plan {
  readonly commands: RunCommand[] = []
  readonly rewinds: Rewind[] = []
  readonly #machine: RunMachine
  run: Run

  constructor(machine: RunMachine, run: Run) {
    this.#machine = machine
    this.run = run
  }

  tell(command: RunCommand): void {
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
