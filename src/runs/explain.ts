/** Why each work item of a run will be done again when the run is resumed, or will not. */
import type { RunMachine } from '../core/run/machine.ts'
import { entryOf, type Run, type WorkItem } from '../core/run/run.ts'
import { freshnessOf, type ItemRequest } from '../core/run/staleness.ts'
import { isForced } from './forced.ts'
import { foresee } from './foresee.ts'
import type { RunHistory } from './history.ts'
import { type ResumePlan, type Rewind, requestOf } from './resume-plan.ts'

/** What will become of an item, if its node asks for it again as it did last. */
export interface ItemExplanation {
  readonly key: string
  /** The state in which it was last begun. */
  readonly state: string
  readonly status: WorkItem['status']
  readonly attempts: number
  /**
   * What happens when its node asks for it next. `skip`: its result is remembered. `run`: it is
   * done again. `check`: something before it is done again, and if that comes out the same, it is
   * skipped.
   */
  readonly verdict: 'skip' | 'run' | 'check'
  readonly because:
    | 'fresh'
    /** The run has ended, so that resuming it does nothing. */
    | 'ended'
    /** Resuming is refused; see `refusal`. */
    | 'refused'
    | 'interrupted'
    | 'failed'
    | 'forced'
    | 'damaged'
    | 'input_changed'
    | 'upstream'
    /** Its node may hand it other parameters than the last time. */
    | 'parameters'
  /** The artifact or parameter that is the reason, where one is. */
  readonly artifact: string | null
}

/** What resuming a run would do. */
export interface RunExplanation {
  readonly runId: string
  readonly state: string
  readonly hasEnded: boolean
  /** The error that resuming would throw here and now; null if it would not. */
  readonly refusal: {
    readonly code: string
    readonly message: string
    readonly hint: string
  } | null
  readonly rewinds: readonly Rewind[]
  /** The state whose node would be called first. */
  readonly continuesIn: string
  /** Inputs from outside that are not as they were. */
  readonly changedInputs: readonly string[]
  /** Artifacts whose content is gone or was changed. */
  readonly damaged: readonly string[]
  readonly items: readonly ItemExplanation[]
}

/** What is explained: the plan of a resumption, and what it was made from. */
export interface Explained {
  readonly machine: RunMachine
  readonly plan: ResumePlan
  readonly history: RunHistory
  readonly damaged: readonly string[]
  readonly strict: boolean
  /** Why nothing is done, if nothing is. */
  readonly stays: 'ended' | 'refused' | undefined
}

/** Explains every item of a run, in the order of keys. */
export function explainItems(explained: Explained): ItemExplanation[] {
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

/** Whether what it read has the same hashes, though it may yet be made again with others. */
function hasSameInputs(run: Run, item: WorkItem, { inputs }: ItemRequest): boolean {
  return Object.entries(item.inputs).every(([name, sha256]) => {
    const now = entryOf(inputs, name) ?? entryOf(run.artifacts_index, name)?.sha256
    return now === sha256
  })
}

/** What made the output of an item stale. */
function causeOf(run: Run, output: string | null): string | null {
  return output === null ? null : (entryOf(run.artifacts_index, output)?.stale_because ?? null)
}
