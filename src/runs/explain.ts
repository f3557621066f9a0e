/**
 * What resuming a run would do, and why each work item would run again or not. The steps are those
 * of `Runs.resume`, in the same order, so that a refusal has the same error.
 */

import { PawlError, RunEnded } from '../core/errors.ts'
import type { RunMachine } from '../core/run/machine.ts'
import { entryOf, type Run, type WorkItem } from '../core/run/run.ts'
import { freshnessOf, type ItemRequest } from '../core/run/staleness.ts'
import type { Environment } from '../environment/system.ts'
import { createFacts } from './creation.ts'
import { machineBefore } from './damage.ts'
import { RunDefinitionUnknown } from './errors.ts'
import { isForced } from './forced.ts'
import { foresee } from './foresee.ts'
import { HistoryNotes, type RunHistory } from './history.ts'
import type { InputDisk } from './input-disk.ts'
import { keepNothing } from './input-files.ts'
import { RunHeld, RunLogDamaged } from './journal/errors.ts'
import type { Damage, Replayed, RunReader } from './journal/journal.ts'
import { endOf } from './orchestrator.ts'
import { planResume, type ResumePlan, type Rewind, requestOf, survey } from './resume-plan.ts'
import { foldFacts } from './run-log.ts'
import type { ResumeOptions } from './runs-options.ts'

/** What happens to an item if its node requests it with the same parameters as before. */
export interface ItemExplanation {
  readonly key: string
  /** The state in which the item was last started. */
  readonly state: string
  readonly status: WorkItem['status']
  readonly attempts: number
  /**
   * What happens when its node requests the item next. `skip`: its stored result is used. `run`: it
   * runs again. `check`: something that it depends on is made again; the item runs if that differs.
   */
  readonly verdict: 'skip' | 'run' | 'check'
  readonly because:
    | 'fresh'
    /** The run has ended, or its log is damaged, so resuming it runs no item. */
    | 'ended'
    /** Resuming is refused: see `refusal`. */
    | 'refused'
    | 'interrupted'
    | 'failed'
    | 'forced'
    | 'damaged'
    | 'input_changed'
    | 'upstream'
    /** Its node may pass other parameters than before. */
    | 'parameters'
  /** The artifact or parameter that is the reason, if any. */
  readonly artifact: string | null
}

/** The result of `explain`. */
export interface RunExplanation {
  readonly runId: string
  readonly state: string
  readonly hasEnded: boolean
  /** The error that resuming would throw in this process now; null if it would not throw. */
  readonly refusal: {
    readonly code: string
    readonly message: string
    readonly hint: string
  } | null
  /**
   * The damage of the log; absent if there is none. If it was not recorded yet, `refusal` is null:
   * resuming the run records the damage and returns a failed outcome with the same `damage`.
   */
  readonly damage?: Damage
  readonly rewinds: readonly Rewind[]
  /** The state whose node would be called first. */
  readonly continuesIn: string
  /** The artifacts of input files that changed. */
  readonly changedInputs: readonly string[]
  /** Artifacts with a missing or changed content. */
  readonly damaged: readonly string[]
  readonly items: readonly ItemExplanation[]
}

interface Explained {
  readonly machine: RunMachine
  readonly plan: ResumePlan
  readonly history: RunHistory
  readonly damaged: readonly string[]
  readonly strict: boolean
  /** Why no item runs, if none does. */
  readonly stays: 'ended' | 'refused' | undefined
}

/** Explains every item of a run, sorted by key. */
function explainItems(explained: Explained): ItemExplanation[] {
  const { run } = explained.plan
  const items = Object.keys(run.work_items)
    .sort()
    .map((key) => explainItem(explained, key, run.work_items[key] as WorkItem))
  return explained.stays !== undefined ? items : foresee({ ...explained, run }, items)
}

function explainItem(explained: Explained, key: string, item: WorkItem): ItemExplanation {
  const { plan, history } = explained
  const { status, attempts } = item
  const state = history.items.get(key)?.state ?? ''
  return { key, state, status, attempts, ...verdictOf(explained, plan.run, key, item) }
}

type Verdict = Pick<ItemExplanation, 'verdict' | 'because' | 'artifact'>

function verdictOf(
  { plan, damaged, strict, stays }: Explained,
  run: Run,
  key: string,
  item: WorkItem,
): Verdict {
  if (stays !== undefined) return { verdict: 'skip', because: stays, artifact: null }
  const request = requestOf(run, key, item, plan.forced)
  const freshness = freshnessOf(run, request)
  if (freshness.kind === 'fresh') return { verdict: 'skip', because: 'fresh', artifact: null }
  const { because, artifact = null } = freshness
  switch (because) {
    case 'forced': {
      if (isForced(run, key)) return { verdict: 'run', because: 'forced', artifact: null }
      const own = damaged.find((name) => entryOf(run.artifacts_index, name)?.work_item === key)
      return { verdict: 'run', because: 'damaged', artifact: own ?? null }
    }
    case 'interrupted':
    case 'failed':
      return { verdict: 'run', because, artifact: null }
    default:
      return hasSameInputs(run, item, request)
        ? {
            verdict: strict ? 'run' : 'check',
            because: 'upstream',
            artifact: causeOf(run, artifact),
          }
        : { verdict: 'run', because: 'input_changed', artifact }
  }
}

/** Returns true if the inputs have the same hashes. They may still be made again. */
function hasSameInputs(run: Run, item: WorkItem, { inputs }: ItemRequest): boolean {
  return Object.entries(item.inputs).every(([name, sha256]) => {
    const now = entryOf(inputs, name) ?? entryOf(run.artifacts_index, name)?.sha256
    return now === sha256
  })
}

/** Returns what made the output of an item stale. */
function causeOf(run: Run, output: string | null): string | null {
  return output === null ? null : (entryOf(run.artifacts_index, output)?.stale_because ?? null)
}

export interface ExplainParts {
  readonly disk: InputDisk
  readonly environment: Environment
  machineOf(run: Run, reader: RunReader): Promise<RunMachine>
  /** Throws the error of `resume` if this process cannot work on the run. */
  checkDefinition(run: Run, reader: RunReader): Promise<unknown>
}

export async function explainRun(
  reader: RunReader,
  options: ResumeOptions,
  parts: ExplainParts,
): Promise<RunExplanation> {
  const history = new HistoryNotes()
  let replayed: Replayed
  try {
    replayed = await reader.replay(history.note)
  } catch (error) {
    if (!(error instanceof RunLogDamaged)) throw error
    return explainDamaged(reader, error.damage, history, parts)
  }
  const { run, damage } = replayed
  const machine = await parts.machineOf(run, reader)
  const refusal = await findRefusal(reader, run, machine, parts)
  const hasEnded = endOf(machine, run) !== undefined
  const { disk, environment } = parts
  const inputs = {
    disk,
    now: () => environment.clock.now(),
    keep: keepNothing,
    read: (name: string, sha256: string) => reader.readArtifact(name, sha256),
    findDamaged: reader.findDamaged.bind(reader),
  }
  const situation = await survey({ machine, run, history }, inputs, options)
  const { damaged, changes } = situation
  const asIs = { commands: [], run, rewinds: [], forced: new Set<string>() }
  const isRefused = refusal !== undefined && !isOfProcess(refusal)
  const plan = hasEnded || isRefused ? asIs : planResume(situation)
  const { strict = false } = options
  const stays = hasEnded ? 'ended' : isRefused ? 'refused' : undefined
  return {
    runId: reader.runId,
    state: run.run_state,
    hasEnded,
    refusal: refusal === undefined ? null : refusalOf(refusal),
    ...(damage && { damage }),
    rewinds: plan.rewinds,
    continuesIn: plan.run.run_state,
    changedInputs: changes.map(({ name }) => name).filter((name) => !name.startsWith('run:')),
    damaged,
    items: explainItems({ machine, plan, history, damaged, strict, stays }),
  }
}

/** Explains a run whose damage was not recorded yet. Resuming it makes it fail. */
async function explainDamaged(
  reader: RunReader,
  damage: Damage,
  history: RunHistory,
  { machineOf }: ExplainParts,
): Promise<RunExplanation> {
  const before = damage.line > 1 ? await reader.asOf(damage.line - 1) : undefined
  const machine = await machineBefore(before ?? null, (run) => machineOf(run, reader))
  const run = before ?? (foldFacts(null, createFacts(machine)) as Run)
  const ended = endOf(machine, run)
  const holder = await reader.holder()
  const refusal =
    holder !== undefined
      ? new RunHeld(reader.runId, holder)
      : ended && new RunEnded(reader.runId, run.run_state)
  const plan = { commands: [], run, rewinds: [], forced: new Set<string>() }
  return {
    runId: reader.runId,
    state: run.run_state,
    hasEnded: ended !== undefined,
    refusal: refusal === undefined ? null : refusalOf(refusal),
    damage,
    rewinds: [],
    continuesIn: ended === undefined ? machine.failed : run.run_state,
    changedInputs: [],
    damaged: [],
    items: explainItems({ machine, plan, history, damaged: [], strict: false, stays: 'ended' }),
  }
}

/** Returns the error that resuming would throw before it makes a plan. */
async function findRefusal(
  reader: RunReader,
  run: Run,
  machine: RunMachine,
  { checkDefinition }: ExplainParts,
): Promise<PawlError | undefined> {
  const holder = await reader.holder()
  if (holder !== undefined) return new RunHeld(reader.runId, holder)
  const ended = endOf(machine, run)
  if (ended !== undefined) {
    return ended.kind === 'done' ? undefined : new RunEnded(reader.runId, run.run_state)
  }
  try {
    await checkDefinition(run, reader)
    return undefined
  } catch (error) {
    if (error instanceof PawlError) return error
    throw error
  }
}

/** Returns true if another process, or this one later, could resume the run. */
function isOfProcess(refusal: PawlError): boolean {
  return refusal instanceof RunHeld || refusal instanceof RunDefinitionUnknown
}

function refusalOf({ code, message, hint }: PawlError): NonNullable<RunExplanation['refusal']> {
  return { code, message, hint }
}
