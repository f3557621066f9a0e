/**
 * `evolveRun` folds events into the run. Like the job's fold it needs no rules, only what the event
 * says, and it checks that the event follows from the run before it.
 */
import { LedgerBroken } from '../errors.ts'
import type { RunEvent, RunEventData } from './events.ts'
import { entryOf, type Run, type WorkItem } from './run.ts'

/** The run after an event; the first event of a run needs none before it. */
export function evolveRun(run: Run | null, event: RunEvent): Run {
  const problem = findProblem(run, event)
  if (problem !== undefined) throw new LedgerBroken(`run ${event.run_id}`, event.seq, problem)
  if (event.type === 'RUN_CREATED') return newRun(event, event.data)
  return { ...(run as Run), last_seq: event.seq, ...changeOf(run as Run, event) }
}

/** The run that a whole log folds to. */
export function foldRun(events: readonly RunEvent[]): Run | null {
  return events.reduce<Run | null>(evolveRun, null)
}

function findProblem(run: Run | null, event: RunEvent): string | undefined {
  if (run === null) {
    if (event.seq !== 1) return 'the first event is missing'
    return event.type === 'RUN_CREATED' ? undefined : 'the first event is not RUN_CREATED'
  }
  if (event.type === 'RUN_CREATED') return 'the run is created a second time'
  if (event.run_id !== run.run_id) return `it belongs to another run than ${run.run_id}`
  if (event.seq !== run.last_seq + 1) return `it does not follow ${run.last_seq}`
  if (event.type !== 'RUN_STATE_CHANGED' && event.type !== 'RESUME_REWIND') return undefined
  const { from_state, to_state } = event.data
  if (from_state !== run.run_state) return `it starts in ${from_state}, not in ${run.run_state}`
  const visited = event.type !== 'RESUME_REWIND' || run.stable_trail.includes(to_state)
  return visited ? undefined : `it rewinds to ${to_state}, which was not visited`
}

function newRun(event: RunEvent, data: RunEventData['RUN_CREATED']): Run {
  return {
    run_id: event.run_id,
    run_state: data.state,
    machine: { name: data.machine, version: data.machine_version },
    last_seq: event.seq,
    section_states: {},
    artifacts_index: {},
    work_items: {},
    issues: {},
    validation: null,
    fix_attempts: 0,
    max_fix_attempts: data.max_fix_attempts,
    stable_trail: data.stable ? [data.state] : [],
    commits: [],
    ended_because: null,
  }
}

function changeOf(run: Run, event: Exclude<RunEvent, { type: 'RUN_CREATED' }>): Partial<Run> {
  switch (event.type) {
    case 'RUN_STATE_CHANGED':
      return changeOfState(run, event.data)
    case 'RESUME_REWIND':
      return changeOfRewind(run, event.data.to_state)
    case 'RUN_FAILED':
    case 'RUN_CANCELLED':
      return { ended_because: event.data.reason }
    case 'ARTIFACT_WRITTEN':
    case 'ARTIFACT_STALE':
    case 'ARTIFACT_REVALIDATED':
      return { artifacts_index: { ...run.artifacts_index, ...changeOfArtifact(run, event) } }
    case 'WORK_ITEM_STARTED':
    case 'WORK_ITEM_FINISHED':
    case 'WORK_ITEM_FAILED':
      return {
        work_items: { ...run.work_items, [event.data.key]: changeOfItem(run, event) },
        ...(event.type === 'WORK_ITEM_FINISHED' && disownStale(run, event.data.key)),
      }
    case 'SECTION_STATE_CHANGED': {
      const { section, to_state } = event.data
      return { section_states: { ...run.section_states, [section]: to_state } }
    }
    case 'VALIDATION_RECORDED':
      return { validation: { ok: event.data.ok, ts: event.ts } }
    case 'ISSUE_OPENED':
    case 'ISSUE_RESOLVED':
      return { issues: { ...run.issues, [event.data.issue]: changeOfIssue(run, event) } }
    case 'COMMIT_LINKED':
      return { commits: [...run.commits, event.data.sha] }
    case 'LOG_TAIL_DISCARDED':
      return {}
  }
}

function changeOfState(run: Run, data: RunEventData['RUN_STATE_CHANGED']): Partial<Run> {
  return {
    run_state: data.to_state,
    ...(data.stable && { stable_trail: [...run.stable_trail, data.to_state] }),
    ...(data.fixing && { fix_attempts: run.fix_attempts + 1 }),
    ...(data.validating && { validation: null }),
  }
}

/** The fix attempts survive a rewind; otherwise crashing would be a way to have more of them. */
function changeOfRewind(run: Run, to: string): Partial<Run> {
  const end = run.stable_trail.lastIndexOf(to) + 1
  return { run_state: to, validation: null, stable_trail: run.stable_trail.slice(0, end) }
}

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

function changeOfArtifact(
  run: Run,
  event: Of<'ARTIFACT_WRITTEN' | 'ARTIFACT_STALE' | 'ARTIFACT_REVALIDATED'>,
): Run['artifacts_index'] {
  const { name } = event.data
  if (event.type === 'ARTIFACT_WRITTEN') {
    const { name: _name, ...written } = event.data
    return { [name]: { ...written, ts: event.ts, stale_because: null } }
  }
  const artifact = known(run, event, entryOf(run.artifacts_index, name))
  const stale_because = event.type === 'ARTIFACT_STALE' ? event.data.because : null
  return { [name]: { ...artifact, stale_because } }
}

function changeOfItem(
  run: Run,
  event: Of<'WORK_ITEM_STARTED' | 'WORK_ITEM_FINISHED' | 'WORK_ITEM_FAILED'>,
): WorkItem {
  const before = entryOf(run.work_items, event.data.key)
  if (event.type === 'WORK_ITEM_STARTED') {
    const { inputs, code, worker } = event.data
    const attempts = (before?.attempts ?? 0) + 1
    const declared = Object.keys(inputs).sort()
    const fresh = { started_at: event.ts, finished_at: null, error: null }
    return { status: 'started', attempts, inputs, declared, code, worker, ...fresh }
  }
  const item = known(run, event, before)
  return event.type === 'WORK_ITEM_FINISHED'
    ? { ...item, status: 'finished', inputs: event.data.inputs, finished_at: event.ts }
    : { ...item, status: 'failed', error: event.data.error, finished_at: event.ts }
}

/** An output that is still stale when its item has finished is no longer one of its outputs. */
function disownStale(run: Run, key: string): Partial<Run> {
  const stale = Object.entries(run.artifacts_index).filter(
    ([, { work_item, stale_because }]) => work_item === key && stale_because !== null,
  )
  const disowned = stale.map(([name, artifact]) => [name, { ...artifact, work_item: null }])
  return { artifacts_index: { ...run.artifacts_index, ...Object.fromEntries(disowned) } }
}

function changeOfIssue(
  run: Run,
  event: Of<'ISSUE_OPENED' | 'ISSUE_RESOLVED'>,
): Run['issues'][string] {
  if (event.type === 'ISSUE_OPENED') {
    const { severity, message } = event.data
    return { status: 'open', severity, message, opened_at: event.ts, resolved_at: null }
  }
  const issue = known(run, event, entryOf(run.issues, event.data.issue))
  return { ...issue, status: 'resolved', resolved_at: event.ts }
}

/** What an event speaks of must have been made by an earlier one. */
function known<T>(run: Run, event: RunEvent, found: T | undefined): T {
  if (found !== undefined) return found
  throw new LedgerBroken(`run ${run.run_id}`, event.seq, `${event.type} names nothing that exists`)
}
