/**
 * `evolveRun` folds events into the run. It needs no rules, only the event, and it checks that the
 * event follows from the run before it.
 *
 * `changeOf` computes what an event changes. The change is applied in one of two ways: to a copy of
 * the run (`evolveRun`), or in place to a run that only the fold can see (`RunFold`). In place,
 * each event takes the same time, regardless of the size of the run.
 */
import { LedgerBroken } from '../errors.ts'
import type { RunEvent, RunEventData } from './events.ts'
import { keepNames, staleNamesOf } from './known-names.ts'
import { type CollectionName, countRevisions, type Revisions } from './revisions.ts'
import { type Artifact, entryOf, type Issue, type Run, type WorkItem } from './run.ts'

/** Returns the run after an event. `run` is null before the first event. */
export function evolveRun(run: Run | null, event: RunEvent): Run {
  const problem = findProblem(run, event)
  if (problem !== undefined) throw new LedgerBroken(`run ${event.run_id}`, event.seq, problem)
  if (event.type === 'RUN_CREATED') return newRun(event, event.data)
  const before = run as Run
  const { fields, entries = [] } = changeOf(before, event)
  const after = { ...before, last_seq: event.seq }
  assignFields(after, fields)
  for (const { collection, key, value } of entries) {
    Object.assign(after, { [collection]: { ...after[collection], [key]: value } })
  }
  return after
}

/** Returns the run that a complete log folds to. */
export function foldRun(events: Iterable<RunEvent>): Run | null {
  const fold = new RunFold()
  for (const event of events) fold.add(event)
  return fold.run
}

/**
 * Folds events one by one into its own run, which it changes in place. A caller that needs the run
 * as it is now must copy it. Events can be undone in reverse order until they are settled.
 */
export class RunFold {
  #run: Run | null = null
  /** The names of stale artifacts. */
  readonly #stale = new Set<string>()
  /** The names of everything that was read. Undone reads stay in it. */
  readonly #read = new Set<string>()
  #revisions: Revisions | undefined
  #undos: Undo[] | undefined

  get run(): Run | null {
    return this.#run
  }

  /** Adds the next event. Throws `LedgerBroken` if it does not follow. */
  add(event: RunEvent): void {
    const run = this.#run
    const problem = findProblem(run, event)
    if (problem !== undefined) throw new LedgerBroken(`run ${event.run_id}`, event.seq, problem)
    if (event.type === 'RUN_CREATED') {
      this.#run = newRun(event, event.data)
      keepNames(this.#run, { stale: this.#stale, read: this.#read })
      this.#revisions = countRevisions(this.#run)
      return
    }
    const own = run as Run
    const change = changeOf(own, event)
    this.#undos?.push(undoOf(own, change))
    assignFields(own, change.fields)
    ;(own as { last_seq: number }).last_seq = event.seq
    if (change.entries !== undefined) for (const entry of change.entries) this.#put(own, entry)
  }

  /** Makes later events undoable. A log that is only read does not need this. */
  toUndoable(): RunFold {
    this.#undos ??= []
    return this
  }

  /** Undoes every event after `seq`. Events before `toUndoable` or `settle` cannot be undone. */
  undoAfter(seq: number): void {
    if (seq === 0) {
      this.#run = null
      this.#stale.clear()
    }
    while (this.#run !== null && this.#run.last_seq > seq) {
      const undo = this.#undos?.pop()
      if (undo === undefined) return
      assignFields(this.#run, undo.fields)
      for (const entry of undo.entries) this.#put(this.#run, entry)
    }
  }

  /** Drops the undo data of events up to and including `seq`. */
  settle(seq: number): void {
    const undos = this.#undos ?? []
    const first = undos.findIndex(({ fields }) => fields.last_seq >= seq)
    undos.splice(0, first < 0 ? undos.length : first)
  }

  #put(run: Run, { collection, key, value }: Entry | Absence): void {
    const record = run[collection] as Record<string, unknown>
    ;(this.#revisions as Revisions)[collection]++
    if (value === undefined) delete record[key]
    else put(record, key, value)
    if (collection === 'work_items' && value !== undefined) {
      for (const name in value.inputs) this.#read.add(name)
    }
    if (collection !== 'artifacts_index') return
    if (value === undefined || value.stale_because === null) this.#stale.delete(key)
    else this.#stale.add(key)
  }
}

/** The values that an event replaced. */
interface Undo {
  readonly fields: Partial<Run> & { readonly last_seq: number }
  readonly entries: readonly (Entry | Absence)[]
}

/** An entry that did not exist. */
interface Absence {
  readonly collection: CollectionName
  readonly key: string
  readonly value: undefined
}

function undoOf(run: Run, { fields, entries }: Change): Undo {
  const before: Record<string, unknown> = { last_seq: run.last_seq }
  for (const name in fields) before[name] = run[name as keyof Run]
  return {
    fields: before as Undo['fields'],
    entries: entries?.map((entry) => entryBefore(run, entry)) ?? [],
  }
}

function entryBefore(run: Run, { collection, key }: Entry): Entry | Absence {
  return { collection, key, value: entryOf<unknown>(run[collection], key) } as Entry | Absence
}

/** Sets fields of a run. An undefined field is deleted, because a snapshot must not contain it. */
function assignFields(run: Run, fields: Partial<Run> | undefined): void {
  const own = run as unknown as Record<string, unknown>
  for (const name in fields) {
    const value = fields[name as keyof Run]
    if (value === undefined) delete own[name]
    else own[name] = value
  }
}

/** Sets an entry. Assigning to `__proto__` would change the prototype of the record. */
function put(record: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') record[key] = value
  else Object.defineProperty(record, key, { value, ...PLAIN })
}

const PLAIN = { configurable: true, enumerable: true, writable: true }

function findProblem(run: Run | null, event: RunEvent): string | undefined {
  if (run === null) {
    if (event.seq !== 1) return 'the first event is missing'
    return event.type === 'RUN_CREATED' ? undefined : 'the first event is not RUN_CREATED'
  }
  if (event.type === 'RUN_CREATED') return 'the run is created a second time'
  if (event.run_id !== run.run_id) return `it does not belong to run ${run.run_id}`
  if (event.seq !== run.last_seq + 1) return `it does not follow ${run.last_seq}`
  if (event.type === 'FIX_ATTEMPTED' || event.type === 'FIX_ATTEMPTS_RESET') {
    return findMiscount(run, event)
  }
  if (event.type !== 'RUN_STATE_CHANGED' && event.type !== 'RESUME_REWIND') return undefined
  const { from_state, to_state } = event.data
  if (from_state !== run.run_state) return `it starts in ${from_state}, not in ${run.run_state}`
  const isRewind = event.type === 'RESUME_REWIND' && event.data.initial !== true
  const visited = !isRewind || run.stable_trail.includes(to_state)
  return visited ? undefined : `it rewinds to ${to_state}, which was not visited`
}

function findMiscount(
  { fix_attempts, fix_pending }: Run,
  event: Of<'FIX_ATTEMPTED' | 'FIX_ATTEMPTS_RESET'>,
): string | undefined {
  if (event.type === 'FIX_ATTEMPTS_RESET') {
    const { spent } = event.data
    return spent === fix_attempts
      ? undefined
      : `it resets ${spent} fix attempts, but there were ${fix_attempts}`
  }
  if (fix_pending !== true) return 'it counts a fix attempt that was not started'
  const { attempt } = event.data
  return attempt === fix_attempts + 1
    ? undefined
    : `it counts fix attempt ${attempt} after ${fix_attempts}`
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

/** What an event changes: fields of the run and entries of its collections. */
interface Change {
  readonly fields?: Partial<Run>
  readonly entries?: readonly Entry[]
}

type Entry =
  | { readonly collection: 'artifacts_index'; readonly key: string; readonly value: Artifact }
  | { readonly collection: 'work_items'; readonly key: string; readonly value: WorkItem }
  | { readonly collection: 'section_states'; readonly key: string; readonly value: string }
  | { readonly collection: 'issues'; readonly key: string; readonly value: Issue }

function changeOf(run: Run, event: Exclude<RunEvent, { type: 'RUN_CREATED' }>): Change {
  switch (event.type) {
    case 'RUN_STATE_CHANGED':
      return { fields: changeOfState(run, event.data) }
    case 'RESUME_REWIND':
      return { fields: changeOfRewind(run, event.data) }
    case 'RUN_FAILED':
    case 'RUN_CANCELLED':
      return { fields: { ended_because: event.data.reason } }
    case 'ARTIFACT_WRITTEN':
    case 'ARTIFACT_STALE':
    case 'ARTIFACT_REVALIDATED':
      return { entries: [artifactEntry(event.data.name, changeOfArtifact(run, event))] }
    case 'WORK_ITEM_STARTED':
    case 'WORK_ITEM_FINISHED':
    case 'WORK_ITEM_FAILED': {
      const { key } = event.data
      const item: Entry = { collection: 'work_items', key, value: changeOfItem(run, event) }
      const finished = event.type === 'WORK_ITEM_FINISHED'
      return { entries: finished ? [item, ...disownStale(run, key)] : [item] }
    }
    case 'SECTION_STATE_CHANGED': {
      const { section: key, to_state: value } = event.data
      return { entries: [{ collection: 'section_states', key, value }] }
    }
    case 'VALIDATION_RECORDED':
      return { fields: { validation: { ...event.data, ts: event.ts } } }
    case 'FIX_ATTEMPTED':
      return { fields: { fix_attempts: event.data.attempt, fix_pending: undefined } }
    case 'FIX_ATTEMPTS_RESET':
      return { fields: { fix_attempts: 0 } }
    case 'ISSUE_OPENED':
    case 'ISSUE_RESOLVED': {
      const value = changeOfIssue(run, event)
      return { entries: [{ collection: 'issues', key: event.data.issue, value }] }
    }
    case 'COMMIT_LINKED':
      return { fields: { commits: [...run.commits, event.data.sha] } }
    case 'LOG_TAIL_DISCARDED':
      return {}
  }
}

function artifactEntry(key: string, value: Artifact): Entry {
  return { collection: 'artifacts_index', key, value }
}

function changeOfState(run: Run, data: RunEventData['RUN_STATE_CHANGED']): Partial<Run> {
  return {
    run_state: data.to_state,
    ...(run.fix_pending && { fix_pending: undefined }),
    ...(data.fix_pending && { fix_pending: true }),
    ...(data.stable && { stable_trail: [...run.stable_trail, data.to_state] }),
    ...(data.fixing && { fix_attempts: run.fix_attempts + 1 }),
    ...(data.validating && { validation: null }),
  }
}

/** A rewind keeps the count of fix attempts; otherwise each crash would allow more of them. */
function changeOfRewind(run: Run, data: RunEventData['RESUME_REWIND']): Partial<Run> {
  const { to_state: run_state, keeps_validation } = data
  const end = run.stable_trail.lastIndexOf(run_state) + 1
  return {
    run_state,
    stable_trail: run.stable_trail.slice(0, end),
    ...(run.fix_pending && { fix_pending: undefined }),
    ...(!keeps_validation && { validation: null }),
  }
}

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

function changeOfArtifact(
  run: Run,
  event: Of<'ARTIFACT_WRITTEN' | 'ARTIFACT_STALE' | 'ARTIFACT_REVALIDATED'>,
): Artifact {
  if (event.type === 'ARTIFACT_WRITTEN') {
    const { path, sha256, schema_id, writer_worker, work_item } = event.data
    const { ts } = event
    return { path, sha256, schema_id, writer_worker, work_item, ts, stale_because: null }
  }
  const artifact = known(run, event, entryOf(run.artifacts_index, event.data.name))
  return { ...artifact, stale_because: event.type === 'ARTIFACT_STALE' ? event.data.because : null }
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

/** An output that is still stale when its item has finished is no longer an output of the item. */
function disownStale(run: Run, key: string): Entry[] {
  const disowned: Entry[] = []
  for (const name of staleNamesOf(run)) {
    const artifact = run.artifacts_index[name] as Artifact
    if (artifact.work_item !== key) continue
    disowned.push(artifactEntry(name, { ...artifact, work_item: null }))
  }
  return disowned
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

/** Throws if an event names something that no earlier event created. */
function known<T>(run: Run, event: RunEvent, found: T | undefined): T {
  if (found !== undefined) return found
  throw new LedgerBroken(
    `run ${run.run_id}`,
    event.seq,
    `${event.type} names something that does not exist`,
  )
}
